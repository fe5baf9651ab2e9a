// Trace: a bounded record of what this process did when, written as DIR/rank-N.json where TASUKI_TRACE names DIR.
// `tasuki trace` merges the ranks' files. Without the variable there is no recorder, and nothing but a test for one.
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

/// What an event is: a call of the user, or a command of the plan from its first attempt to its end.
enum class Traced : std::uint8_t { start, test, wait, command };

/// What the commands of an operation took in its last epochs. Kept by a recorder that was asked to.
struct EpochTimes {
  std::uint64_t epoch = 0;             ///< 0: none yet
  std::int64_t start = 0;              ///< ns: when the first command was tried
  std::int64_t end = 0;                ///< ns: when the last command ended
  std::vector<std::int64_t> commands;  ///< ns, the rounds of a loop together
};

/// Records the events of one operation. Calls are recorded by the user's thread, commands by the one that drives.
class Recorder {
 public:
  /// Null if nothing is recorded. Keeps a copy of the plan for the file.
  static std::unique_ptr<Recorder> open(const Plan& plan);
  /// One that is not in the file, for `keep`.
  static std::unique_ptr<Recorder> apart() { return std::unique_ptr<Recorder>(new Recorder(-1)); }
  /// From now on keeps the times of the last epochs as well, of a plan with so many commands. While none is active.
  void keep(std::size_t commands);
  /// The epochs that were kept, in no order. While none is active.
  const std::vector<EpochTimes>& kept() const { return kept_; }
  static std::int64_t now();  ///< ns of this process's monotonic clock
  /// An event that began at `begin` and ends now. `command` and `round` (of its loop) only count for commands.
  void record(Traced what, std::uint64_t epoch, std::int64_t begin, std::int32_t command = -1, std::int64_t round = 0);
  /// A command that somebody else has watched, in this process's clock.
  void record_command(std::uint64_t epoch, std::int64_t begin, std::int64_t end, std::int32_t command);

 private:
  explicit Recorder(std::int32_t operation) : operation_(operation) {}
  EpochTimes& times_of(std::uint64_t epoch);
  void keep_command(std::uint64_t epoch, std::int64_t begin, std::int64_t end, std::int32_t command);
  std::int32_t operation_;        // -1: not in the file
  std::vector<EpochTimes> kept_;  // a ring by epoch; empty unless asked for
};

/// A call of the user that lasts as long as this object.
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

/// While one exists, new operations are not recorded: Tasuki's own measurements are not the user's.
class TracePause {
 public:
  TracePause();
  ~TracePause();
  TracePause(const TracePause&) = delete;
  TracePause& operator=(const TracePause&) = delete;
};

/// Makes the folder; throws `Error` if this process cannot write there. Local.
void prepare_trace(const std::string& folder);
/// Begins to record, in the time of rank 0. Collective over `comm`; does nothing if this process records already.
void begin_trace(const std::string& folder, const Topology& topology, MPI_Comm comm);
/// Writes the file if something has been recorded since it was last written. Nothing may be recorded meanwhile; done
/// when the last context ends, and when the process does.
void save_trace();

/// What to add to this rank's `clock` to have rank 0's, both in ns; 0 where `shared(rank)`. Collective over `comm`:
/// ranks that do not share rank 0's clock ask it for the time, and the fastest answer counts.
std::int64_t clock_offset(MPI_Comm comm, const std::function<bool(int)>& shared,
                          const std::function<std::int64_t()>& clock);

}  // namespace tasuki
