// Handles of the C interface: numbers that name a slot of a table, never addresses. A slot knows which handle it was
// given out as, so one that is stale, made up, or of another kind is noticed without touching memory that is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tasuki::api {

/// What a handle names; part of its value.
enum class Kind : std::uint8_t { context = 1, grid, field, layout, memory, operation, fork, graph };

/// Where an object is kept. Slots live as long as the process.
struct Slot {
  std::atomic<std::uint64_t> handle{0};  ///< what names the object now; 0: nothing does
  void* object = nullptr;
  std::uint32_t generation = 0;  ///< how often the slot has been used
};

/// The slot that `handle` names, or null if it names nothing of `kind`. Never allocates; any thread may call it.
Slot* find_slot(std::uint64_t handle, Kind kind);
/// A new handle for `object`. Throws `Error` after 2^20 handles at one time.
std::uint64_t add_handle(Kind kind, void* object);
/// Forgets the handle; the slot may be used again.
void remove_handle(Slot& slot);
/// What a handle that was not found may be: `null`, `freed, or never a handle`, `a grid`.
const char* what_is(std::uint64_t handle);
/// What has a handle now, such as `1 context, 2 fields`; empty: nothing, or only layouts and memory, which keep no
/// context.
std::string living_handles();

}  // namespace tasuki::api
