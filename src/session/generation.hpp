// Generation: tells whether contexts and operations can still be used. They cannot in a forked child, nor once
// MPI_Finalize has begun.
#pragma once

#include <atomic>
#include <cstdint>

namespace tasuki {

/// A number that changes in the child of every fork, and at MPI_Finalize. A context keeps the number of its making and
/// compares it: `start` and `wait` need only one load for that.
class Generation {
 public:
  /// The present number. The first call installs the handlers that change it. With `mpi`, MPI must be running.
  static std::uint32_t enter(bool mpi);
  static std::uint32_t now() { return number.load(std::memory_order_relaxed); }
  /// Whether this process was forked after its parent had made a context.
  static bool forked() { return now() / kFork > 0; }
  /// Whether this process was forked after that number was read.
  static bool forked_since(std::uint32_t generation) { return now() / kFork != generation / kFork; }

 private:
  static constexpr std::uint32_t kFork = 2;  // what a fork adds; the lowest bit says that MPI has ended
  static void count_fork();
  static inline constinit std::atomic<std::uint32_t> number{0};

  friend struct EndOfMpi;
};

}  // namespace tasuki
