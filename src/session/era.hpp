// Era: whether what this process has made with other ranks can still be used. It cannot be used in a forked child, nor
// once MPI_Finalize has begun.
#pragma once

#include <atomic>
#include <cstdint>

namespace tasuki {

/// Changes with every fork, in the child, and with MPI_Finalize. One load a call is all that hot paths spend on it.
class Era {
 public:
  /// The present one; from the first call on changes are noticed. With `mpi`, MPI must be running.
  static std::uint32_t enter(bool mpi);
  static std::uint32_t now() { return number.load(std::memory_order_relaxed); }
  /// This process is a child, forked after a context had been made in its parent.
  static bool forked() { return now() / kFork > 0; }
  static bool forked_since(std::uint32_t era) { return now() / kFork != era / kFork; }

 private:
  static constexpr std::uint32_t kFork = 2;  // the lowest bit is that of MPI's end
  static void count_fork();
  static inline constinit std::atomic<std::uint32_t> number{0};

  friend struct EndOfMpi;
};

}  // namespace tasuki
