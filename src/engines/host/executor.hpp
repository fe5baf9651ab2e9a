// Executor: runs one rank's lowered plan on a CPU, lane by lane, without ever blocking or allocating. Engines drive it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engines/host/stores.hpp"
#include "session/trace.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/strided_copy.hpp"
#include "transports/channel.hpp"
#include "transports/located.hpp"

namespace tasuki {

/// A plan bound to this process: addresses, copy functions, channels.
struct Program {
  /// An operator of the user's own (`Operator::Combine` in collectives.hpp).
  using Combine = std::function<void(const void* right, void* left, std::int64_t count)>;
  Plan plan;
  std::vector<Located> where;                ///< per buffer
  std::vector<CopyFunction> functions;       ///< of each command's strided copies, one after the other; null: `combine`
  std::vector<std::int32_t> first_function;  ///< per command
  std::vector<std::shared_ptr<void>> memory;  ///< scratch and counters; channels use it too
  std::vector<Channel> channels;              ///< per command
  std::shared_ptr<const Combine> combine;     ///< what reductions by `ReduceOp::own` do
  int blocks = 0;                             ///< OperationOptions::blocks, for GPUs
  std::int64_t bytes() const;                 ///< without scratch
};

class Executor {
 public:
  explicit Executor(Program program);

  const Plan& plan() const { return program_.plan; }
  const Program& program() const { return program_; }
  std::int64_t memory() const;
  std::uint64_t epoch() const { return epoch_; }
  /// null unless this process is traced or `keep_times` was called
  Recorder* recorder() const { return recorder_.get(); }
  /// From the next epoch on, the recorder keeps the times of commands. Call it while no epoch is active.
  void keep_times();

  /// Settles which copies the first epoch uses; otherwise its `begin` does.
  void settle_first();
  /// Others have run so many epochs of the plan in this process. Call it while none is active.
  void skip(std::uint64_t epochs) { epoch_ += epochs; }
  /// Begins the next epoch and settles which copy of each field it uses. Called by the user's thread, because it reads
  /// which copy is current.
  void begin();
  /// Does all that can be done now. The first call of an epoch first sends the signals and posts the receives with
  /// which lanes begin, so that peers can go on; of long messages it starts the sends before the receives. True when
  /// every lane has ended.
  bool progress();
  /// What the unfinished lanes wait for, for error messages: `#3 wait arrived.0<1 (at 4, needs 5) with rank 1`.
  std::string blocked() const;
  /// Withdraws outstanding messages after a failure.
  void cancel();

 private:
  /// What a run of lanes does: what peers wait for, in three passes, and then everything.
  enum class Pass : std::uint8_t { signals, sends, receives, everything };
  struct Step {
    Verb verb{};
    Pass pass = Pass::everything;  ///< the first one that may run it
    bool credit = false;
    bool awaited = false;  ///< a command of another lane depends on it
    bool own = false;      ///< a reduction by the user's own operator
    std::int32_t command = 0;
    std::int32_t src = -1;
    std::int32_t dst = -1;
    const StridedCopy* copies = nullptr;
    const CopyFunction* functions = nullptr;
    const CopyFunction* past_caches = nullptr;  ///< a put that is timed: the same, stored past the caches
    Stores* stores = nullptr;                   ///< of such a put
    std::int32_t copy_count = 0;
    std::int32_t loop_first = -1;  ///< last command of a loop: the step where its next round begins
    std::int64_t rounds = 1;
    std::int64_t src_step = 0;
    std::int64_t dst_step = 0;
    std::atomic<std::uint64_t>* counter = nullptr;
    std::uint64_t per_epoch = 0;
    std::uint64_t index = 0;
    std::uint64_t lag = 0;
    std::uint64_t seen = 0;  ///< value of the counter when it was last read; it is often enough for several epochs
    HostChannel* channel = nullptr;
    std::int32_t channel_buffer = -1;
    std::int32_t first_dep = 0;
    std::int32_t dep_count = 0;
  };
  struct RunningLane {
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int32_t at = 0;
    std::int64_t round = 0;
    bool running = false;    ///< the channel of the current step has been started
    std::int64_t begun = 0;  ///< traced: when the current step was first tried; 0 before
    bool within = false;     ///< it only copies within the rank
  };

  bool run(RunningLane& lane, Pass pass);
  static Pass pass_of(const Command& c);
  bool run_step(Step& step, RunningLane& lane);
  void combine(const Step& step, const std::byte* src, std::byte* dst) const;
  std::uint64_t target(const Step& step, std::int64_t round) const;
  int copy_of(std::size_t buffer) const;
  void time_puts();
  void put(const Step& step, const std::byte* src, std::byte* dst) const;

  Program program_;
  std::vector<Step> steps_;
  std::vector<CopyFunction> past_caches_;
  std::map<int, Stores> stores_;  ///< by peer
  std::vector<RunningLane> lanes_;
  std::vector<std::int32_t> open_;  ///< lanes that have not ended
  std::size_t open_count_ = 0;
  std::vector<std::byte*> base_;        ///< per buffer: start of the copy that this epoch uses
  std::vector<std::int32_t> changing_;  ///< buffers with more than one copy
  std::vector<int> copy_;               ///< per buffer: number of the copy that this epoch uses
  std::vector<int> first_;              ///< rings: number of the copy that epoch 1 used
  bool first_known_ = false;
  std::vector<std::uint64_t> ended_;  ///< per command: epoch in which it last ended
  std::uint64_t epoch_ = 0;
  bool announced_ = true;
  bool handed_over_ = false;  ///< a lane has handed over a slice in this sweep, and has more
  bool long_messages_ = false;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace tasuki
