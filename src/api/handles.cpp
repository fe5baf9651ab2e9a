// The table of handles. Its chunks are never moved or freed, so that looking one up takes no lock.
#include "api/handles.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layout/counted.hpp"
#include "tasuki/error.hpp"

namespace tasuki::api {
namespace {

// A handle: a mark that no address has, the generation of the slot, its index, the kind.
constexpr int kKindBits = 4;
constexpr int kIndexBits = 20;
constexpr int kGenerationBits = 32;
constexpr std::uint64_t kMark = 0xa5;
constexpr std::uint32_t kChunk = 1024;
constexpr std::uint32_t kSlots = 1U << kIndexBits;

using Chunk = std::array<Slot, kChunk>;

struct Table {
  std::array<std::atomic<Chunk*>, kSlots / kChunk> chunks{};
  std::mutex mutex;  // of what is below
  std::uint32_t used = 0;
  std::vector<std::uint32_t> vacant;
};

// Never destroyed: handles may be used by destructors at the end of the program.
Table& table() {
  static auto* one = new Table;
  return *one;
}

std::uint64_t handle_of(std::uint32_t generation, std::uint32_t index, Kind kind) {
  return (kMark << (kGenerationBits + kIndexBits + kKindBits)) |
         (std::uint64_t{generation} << (kIndexBits + kKindBits)) | (std::uint64_t{index} << kKindBits) |
         static_cast<std::uint64_t>(kind);
}

std::uint32_t index_of(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle >> kKindBits) & (kSlots - 1);
}

Slot* slot_at(std::uint32_t index) {
  Chunk* const chunk = table().chunks[index / kChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
}

}  // namespace

Slot* find_slot(std::uint64_t handle, Kind kind) {
  if (handle == 0 || (handle & ((1U << kKindBits) - 1)) != static_cast<std::uint64_t>(kind)) return nullptr;
  Slot* const slot = slot_at(index_of(handle));
  return slot != nullptr && slot->handle.load(std::memory_order_acquire) == handle ? slot : nullptr;
}

std::uint64_t add_handle(Kind kind, void* object) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  std::uint32_t index = all.used;
  if (!all.vacant.empty()) {
    index = all.vacant.back();
    all.vacant.pop_back();
  } else {
    if (all.used == kSlots) throw Error("there are 1048576 handles already; free some");
    if (index % kChunk == 0) {
      all.vacant.reserve(index + kChunk);  // so that removing need not allocate
      all.chunks[index / kChunk].store(std::make_unique<Chunk>().release(), std::memory_order_release);
    }
    ++all.used;
  }
  Slot& slot = *slot_at(index);
  slot.object = object;
  const std::uint64_t handle = handle_of(++slot.generation, index, kind);
  slot.handle.store(handle, std::memory_order_release);
  return handle;
}

void remove_handle(Slot& slot) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const std::uint32_t index = index_of(slot.handle.load(std::memory_order_relaxed));
  slot.handle.store(0, std::memory_order_release);
  slot.object = nullptr;
  if (slot.generation != ~std::uint32_t{0}) all.vacant.push_back(index);  // a number is never given out twice
}

std::string living_handles() {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  std::array<int, 1U << kKindBits> count{};
  for (std::uint32_t i = 0; i < all.used; ++i) {
    const std::uint64_t handle = slot_at(i)->handle.load(std::memory_order_relaxed);
    if (handle != 0) ++count[handle & ((1U << kKindBits) - 1)];
  }
  std::vector<std::string> texts;
  for (const auto& [kind, noun] : {std::pair(Kind::context, "context"), std::pair(Kind::grid, "grid"),
                                   std::pair(Kind::field, "field"), std::pair(Kind::memory, "piece of memory"),
                                   std::pair(Kind::operation, "operation"), std::pair(Kind::graph, "graph")}) {
    const int number = count[static_cast<std::size_t>(kind)];
    if (number == 0) continue;
    texts.push_back(kind == Kind::memory && number > 1 ? fmt::format("{} pieces of memory", number)
                                                       : counted(number, noun));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

const char* what_is(std::uint64_t handle) {
  if (handle == 0) return "null";
  constexpr const char* names[] = {"a context",         "a grid",       "a field", "a layout",
                                   "a piece of memory", "an operation", "a fork",  "a graph"};
  for (int kind = 1; kind <= 8; ++kind)
    if (find_slot(handle, static_cast<Kind>(kind)) != nullptr) return names[kind - 1];
  return "freed, or was never a handle";
}

}  // namespace tasuki::api
