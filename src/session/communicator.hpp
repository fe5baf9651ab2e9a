// Communicator: how the ranks of a context exchange texts and words while contexts, grids and operations are made.
// There are two kinds: processes over MPI (mpi_communicator.cpp) and threads of one process (thread_communicator.cpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tasuki {

struct Topology;

/// A nonblocking call of a communicator. The caller polls it, and can stop when a rank has died or the deadline passes.
class Pending {
 public:
  virtual ~Pending() = default;  ///< After a failure it may be destroyed before it has ended.
  /// Makes progress; true once the results below are complete. Never blocks.
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

  /// Collects the texts of all ranks, in rank order. Collective: all ranks call `gather` and `combine` in the same
  /// order.
  virtual std::unique_ptr<Pending> gather(const std::string& text) = 0;
  /// Bitwise AND of each word over all ranks. Collective.
  virtual std::unique_ptr<Pending> combine(const std::vector<std::uint64_t>& words) = 0;
  /// Exchanges a text of less than 2 GiB with each of `peers`, which call it too. Results are in the order of `peers`.
  virtual std::unique_ptr<Pending> exchange(std::span<const int> peers, std::span<const std::string> texts) = 0;

  /// Makes a communicator of these ranks, numbered in this order. Only these ranks call it, and each must know that all
  /// of them do. `number` tells parts of the same ranks apart; `seconds` is the new communicator's `making_deadline`.
  virtual std::unique_ptr<Communicator> part(std::span<const int> ranks, int number, double seconds) = 0;
  /// Seconds for which the making of a context may wait for the other ranks: `creation_deadline`, or the deadline of
  /// the context that this is a part of.
  double making_deadline() const { return making_deadline_; }

  /// Whether calls are still possible; false once MPI has been finalised.
  virtual bool running() const = 0;
  /// Called when this rank has failed. Shared resources are not given back. Threads tell the other ranks through their
  /// team.
  virtual void abandon(const std::string& why) = 0;
  /// Why a context can no longer be made over this communicator, because a rank has failed; empty if it can.
  virtual std::string broken() { return {}; }
  /// The ranks' processes are known from now on.
  virtual void found(const Topology&) {}

  /// Duplicates of the user's communicator, for collectives and for the paths' messages; MPI_COMM_NULL without MPI.
  virtual MPI_Comm mpi() const { return MPI_COMM_NULL; }
  virtual MPI_Comm messages() const { return MPI_COMM_NULL; }
  /// Announces that this rank leaves, having sent so many messages over `messages()` more than it has received. The
  /// result's only word is the sum over all ranks. Collective, and like `combine` one call of MPI: it ends on every
  /// rank once all have made it, also where some rank does nothing afterwards.
  virtual std::unique_ptr<Pending> leave([[maybe_unused]] std::int64_t unreceived) { return combine({0}); }
  /// Never frees `messages()`, because a message of it may still arrive.
  virtual void keep_messages() {}
  bool threads() const { return mpi() == MPI_COMM_NULL; }  ///< Whether the ranks are threads of this process.

 protected:
  int rank_ = 0;
  int size_ = 1;
  double making_deadline_;
};

/// Makes a communicator over a duplicate of `comm`. Collective. Throws `Error` if a rank has not called it within
/// `creation_deadline`.
std::unique_ptr<Communicator> communicator_over(MPI_Comm comm);

/// Blocking forms of `gather`, `combine` and `exchange`, for use while a context is being made. They throw an `Error`
/// that contains `doing` after the communicator's `making_deadline`. They call `meanwhile` repeatedly while they wait.
std::vector<std::string> gather_now(Communicator& communicator, const std::string& text, const std::string& doing);
std::vector<std::uint64_t> combine_now(Communicator& communicator, const std::vector<std::uint64_t>& words,
                                       const std::string& doing);
std::vector<std::string> exchange_now(Communicator& communicator, std::span<const int> peers,
                                      std::span<const std::string> texts, const std::string& doing,
                                      const std::function<void()>& meanwhile = {});

}  // namespace tasuki
