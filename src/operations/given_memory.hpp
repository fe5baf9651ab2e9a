// The memory arguments of a collective: what kind of memory they are, which all ranks must agree on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "session/attempt.hpp"
#include "session/runtime.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// An argument that is memory, and what of it this rank uses.
struct Given {
  std::string name;
  const void* base = nullptr;  ///< as the user gave it
  std::int64_t bytes = 0;      ///< from the first byte that is used to the last
  std::int64_t begins_at = 0;  ///< of the first byte, from the base
  const void* at() const { return static_cast<const std::byte*>(base) + begins_at; }
  /// Whether there is an address: it is neither null nor `in_place`.
  bool has_address() const;
};

struct Settled {
  Memory memory = Memory::host;
  std::vector<std::uint64_t> also;
};

/// The kind of memory that all ranks' arguments are. Where nobody uses any, `hint` on some rank, or an argument of a
/// GPU that is not looked at, means memory of GPUs. `also` are words to AND over the ranks in the same round.
/// Collective. Throws `Error` on all ranks for memory of several kinds, naming who has which, or if the attempt has
/// failed on one.
Settled settle_memory(Runtime& runtime, Attempt& attempt, const std::string& operation,
                      std::span<const Given> arguments, bool hint, std::vector<std::uint64_t> also = {});

}  // namespace tasuki
