// Communicator: how the ranks of a context talk to each other while they make things. Two kinds: processes over MPI
// (mpi_communicator.cpp) and threads of one process (thread_communicator.cpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tasuki {

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
  Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// The texts of all ranks, in rank order. Collective, like `combine`: in the same order everywhere.
  virtual std::unique_ptr<Pending> gather(const std::string& text) = 0;
  /// Bitwise AND of each word over all ranks. Collective.
  virtual std::unique_ptr<Pending> combine(const std::vector<std::uint64_t>& words) = 0;
  /// Swaps a text, below 2 GiB, with each of `peers`, who do the same. Results in the order of `peers`.
  virtual std::unique_ptr<Pending> exchange(std::span<const int> peers, std::span<const std::string> texts) = 0;

  /// A communicator of these of its ranks, numbered in this order. Called by these ranks alone, when each knows that
  /// all of them come. `number` tells parts of the same ranks apart; `seconds` is the new one's `patience`.
  virtual std::unique_ptr<Communicator> part(std::span<const int> ranks, int number, double seconds) = 0;
  /// Seconds that making a context over it may wait for the other ranks: `creation_deadline`, or that of the context
  /// which it is a part of.
  double patience() const { return patience_; }

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
  int size_ = 1;
  double patience_;
};

/// Collective over `comm`, which stays the caller's. Throws `Error` after `creation_deadline` if a rank does not come.
std::unique_ptr<Communicator> communicator_over(MPI_Comm comm);

/// `gather`, `combine` and `exchange`, to the end, for the time when a context is being made. They throw `Error`,
/// saying what was being done, after the communicator's `patience`. `meanwhile` is called again and again until then.
std::vector<std::string> gather_now(Communicator& communicator, const std::string& text, const std::string& doing);
std::vector<std::uint64_t> combine_now(Communicator& communicator, const std::vector<std::uint64_t>& words,
                                       const std::string& doing);
std::vector<std::string> exchange_now(Communicator& communicator, std::span<const int> peers,
                                      std::span<const std::string> texts, const std::string& doing,
                                      const std::function<void()>& meanwhile = {});

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
