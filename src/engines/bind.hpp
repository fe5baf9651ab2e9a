// Bind: makes a program of this process from a plan: scratch and counters are placed, addresses exchanged with the
// peers, copy functions picked and channels opened. Nothing is reordered: what runs is the plan.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// Memory of the user that an operation touches, on this rank.
struct UserBuffer {
  std::string name;
  Role role = Role::inout;
  std::int64_t bytes = 0;          ///< of one copy
  std::vector<std::byte*> memory;  ///< one pointer a copy; none: the rank has no part in the buffer
  const int* current = nullptr;    ///< which copy the user shows now; nullptr: there is one
  bool alternating = false;        ///< the user promises to change copies between starts
  Memory where = Memory::host;
};

/// Thrown on a rank whose peer could not do its part: that peer says why when the ranks agree on the outcome.
class PeerFailed : public std::exception {
 public:
  const char* what() const noexcept override { return "a peer could not make its part of the operation"; }
};

/// The ranks that a plan's commands deal with, ascending, without its own.
std::vector<int> peers_of(const Plan& plan);

/// Exchanges addresses with the plan's peers, who bind theirs meanwhile. Throws `Error`, on this rank alone: the caller
/// tells the others; `PeerFailed` if a peer sent nothing. The plan's user buffers are found in `buffers` by name.
Program bind(Runtime& runtime, Plan plan, const std::vector<UserBuffer>& buffers, bool threaded);

}  // namespace tasuki
