// Communicator: how the ranks of a context talk to each other while they make things, and the memory that those of one
// host share. Two kinds: processes over MPI (mpi_communicator.cpp) and threads of one process
// (thread_communicator.cpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tasuki {

struct Window;

/// What a communicator has begun and the caller polls for, so that waiting for it can fail instead of hanging.
class Pending {
 public:
  virtual ~Pending() = default;  ///< Also before the end, after a failure.
  /// True once the results are there. Never blocks.
  virtual bool ended() = 0;

  std::vector<std::string> texts;    ///< results of `gather` and `exchange`
  std::vector<std::uint64_t> words;  ///< result of `combine`
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.size()); }
  /// Place of every rank among the ranks of this host, in their order; -1 for ranks of other hosts.
  const std::vector<int>& places() const { return places_; }

  /// The texts of all ranks, in rank order. Collective, like `combine` and the windows: in the same order everywhere.
  virtual std::unique_ptr<Pending> gather(const std::string& text) = 0;
  /// Bitwise AND of each word over all ranks. Collective.
  virtual std::unique_ptr<Pending> combine(const std::vector<std::uint64_t>& words) = 0;
  /// Swaps a text, below 2 GiB, with each of `peers`, who do the same. Results in the order of `peers`.
  virtual std::unique_ptr<Pending> exchange(std::span<const int> peers, std::span<const std::string> texts) = 0;

  /// Makes the window's parts, `bytes` on this rank. Collective over the host. Empty if it worked, else what went wrong
  /// (then `window.exists` says whether it must be freed).
  virtual std::string create_window(Window& window, std::int64_t bytes) = 0;
  virtual void free_window(Window& window) = 0;  ///< Collective over the host.

  /// Whether ranks can still talk; MPI may have ended.
  virtual bool running() const = 0;
  /// This rank has failed: what is shared stays as it is, and ranks that cannot know otherwise are told.
  virtual void abandon(const std::string& why) = 0;
  /// Why a rank that has no context yet cannot have one any more; empty if it can.
  virtual std::string broken() const { return {}; }

  /// Duplicates of the user's communicator, for collectives and for the paths' messages; MPI_COMM_NULL without MPI.
  virtual MPI_Comm mpi() const { return MPI_COMM_NULL; }
  virtual MPI_Comm messages() const { return MPI_COMM_NULL; }
  bool threads() const { return mpi() == MPI_COMM_NULL; }  ///< The ranks are threads of this process.

 protected:
  int rank_ = 0;
  std::vector<int> places_;
};

/// Collective over `comm`, which stays the caller's.
std::unique_ptr<Communicator> communicator_over(MPI_Comm comm);

/// `Communicator::gather` and `combine`, to the end. For the time when a context is being made: without a deadline.
std::vector<std::string> gather_now(Communicator& communicator, const std::string& text);
std::vector<std::uint64_t> combine_now(Communicator& communicator, const std::vector<std::uint64_t>& words);

/// The bytes of plain data as text, and back.
template <class T>
std::string as_text(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T from_text(const std::string& text) {
  T value{};
  text.copy(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

}  // namespace tasuki
