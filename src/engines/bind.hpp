// Bind: makes a program of this process from a plan. It gets memory for scratch and counters, tells the peers the
// addresses and gets theirs, picks copy functions and opens channels. Nothing is reordered: what runs is the plan.
#pragma once

#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "session/attempt.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// Memory of the user on this rank that an operation touches.
struct UserBuffer {
  std::string name;
  Role role = Role::inout;
  std::int64_t bytes = 0;          ///< of one copy
  std::vector<std::byte*> memory;  ///< one pointer for each copy; empty: the rank has no part in the buffer
  const int* current = nullptr;    ///< the number of the current copy; nullptr: there is one copy
  bool alternating = false;        ///< the user promises to swap between starts
  Memory where = Memory::host;
};

/// The ranks with which a plan's commands deal, ascending, without its own rank.
std::vector<int> peers_of(const Plan& plan);

/// Tells addresses to `peers` (ascending), which bind their plans at the same time, and gets theirs. The plan's peers
/// are among them. What fails, here or on a peer, is the attempt's to settle; the program is whole only if nothing has.
/// All that it has taken is given back with it. The plan's user buffers are found in `buffers` by name.
Program bind(Runtime& runtime, Attempt& attempt, Plan plan, const std::vector<int>& peers,
             const std::vector<UserBuffer>& buffers, bool threaded);

}  // namespace tasuki
