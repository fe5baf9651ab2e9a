// Trace: a bounded record of this process's calls and commands with their times. It is written to DIR/rank-N.json,
// where TASUKI_TRACE names DIR; `tasuki trace` merges the ranks' files. Without the variable nothing is recorded, and a
// call only checks a null pointer.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/topology.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

/// Kinds of events: the user's calls, and commands of the plan from their first attempt to their end.
enum class Traced : std::uint8_t { start, test, wait, command };

/// Times of an operation's commands in one of its last epochs. Recorded after `Recorder::keep`.
struct EpochTimes {
  std::uint64_t epoch = 0;             ///< 0: this entry is unused
  std::int64_t start = 0;              ///< time of the first command's first attempt, ns
  std::int64_t end = 0;                ///< time of the last command's end, ns
  std::vector<std::int64_t> commands;  ///< duration of each command, ns; rounds of a loop are added up
};

/// Records the events of one operation. The user's thread records calls; the thread that drives the operation records
/// commands.
class Recorder {
 public:
  /// Makes a recorder, and copies the plan for the file. Null if there is no trace.
  static std::unique_ptr<Recorder> open(const Plan& plan);
  /// Makes a recorder whose events do not go into the file. It is for `keep`.
  static std::unique_ptr<Recorder> separate() { return std::unique_ptr<Recorder>(new Recorder(-1)); }
  /// From now on keeps the times of the last epochs. `commands` is the number of the plan's commands. Call it while no
  /// epoch is active.
  void keep(std::size_t commands);
  /// The epochs that were kept, in no particular order. Call it while no epoch is active.
  const std::vector<EpochTimes>& kept() const { return kept_; }
  static std::int64_t now();  ///< this process's monotonic clock, ns
  /// Records an event that began at `begin` and ends now. `command` and `round` (of its loop) are for commands only.
  void record(Traced what, std::uint64_t epoch, std::int64_t begin, std::int32_t command = -1, std::int64_t round = 0);
  /// What an epoch of the operation was predicted to take, which the file has beside its plan.
  void expect(double seconds) const;
  /// Records a command whose times were taken elsewhere, such as on the GPU, in ns of this process's clock.
  void record_command(std::uint64_t epoch, std::int64_t begin, std::int64_t end, std::int32_t command);

 private:
  explicit Recorder(std::int32_t operation) : operation_(operation) {}
  EpochTimes& times_of(std::uint64_t epoch);
  void keep_command(std::uint64_t epoch, std::int64_t begin, std::int64_t end, std::int32_t command);
  std::int32_t operation_;        // number in the file; -1: not in the file
  std::vector<EpochTimes> kept_;  // ring, indexed by epoch; empty without `keep`
};

/// Records a user's call that lasts as long as this object. Does nothing without a recorder.
class TracedCall {
 public:
  TracedCall(Recorder* recorder, Traced what, std::uint64_t epoch) : recorder_(recorder), what_(what), epoch_(epoch) {
    if (recorder_ != nullptr) [[unlikely]] {
      begin_ = Recorder::now();
    }
  }
  ~TracedCall() {
    if (recorder_ != nullptr) [[unlikely]] {
      recorder_->record(what_, epoch_, begin_);
    }
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

 private:
  Recorder* recorder_;
  Traced what_;
  std::uint64_t epoch_;
  std::int64_t begin_ = 0;
};

/// While one exists, new operations are not recorded. Tasuki's own measurements use it.
class TracePause {
 public:
  TracePause();
  ~TracePause();
  TracePause(const TracePause&) = delete;
  TracePause& operator=(const TracePause&) = delete;
};

/// Makes the folder; throws `Error` if this process cannot write there. Local.
void prepare_trace(const std::string& folder);
/// Begins to record, with times in rank 0's clock. Collective over `comm`. Does nothing if this process records
/// already.
void begin_trace(const std::string& folder, const Topology& topology, MPI_Comm comm);
/// Writes the file if there are events since it was last written. No events may be recorded meanwhile. Called when the
/// last context ends, and when the process exits.
void save_trace();

/// The offset to add to this rank's `clock` to get rank 0's, in ns. It is 0 if `shared(rank)`, which says whether a
/// rank shares rank 0's clock. The other ranks ask rank 0 for its time; the fastest answer counts. Collective over
/// `comm`.
std::int64_t clock_offset(MPI_Comm comm, const std::function<bool(int)>& shared,
                          const std::function<std::int64_t()>& clock);

}  // namespace tasuki
