// What lowering finds out about the lanes of a plan before it makes steps of them: who carries their messages, what
// depends on what, and to which part of an epoch each command belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/gpu/order.hpp"
#include "engines/gpu/program.hpp"
#include "engines/host/executor.hpp"

namespace tasuki {

/// Whether commands of this kind move bytes.
constexpr bool moves_data(Verb verb) {
  return verb == Verb::copy || verb == Verb::put || verb == Verb::reduce;
}

struct GpuLane {
  std::size_t first = 0;
  std::size_t last = 0;  ///< past the last command
  int stage = 0;
  bool asks = false;     ///< has messages that a thread of the process carries, for which the kernel asks
  bool stages = false;   ///< packs messages into host memory, or unpacks them from there
  bool streams = false;  ///< has messages that are work of a stream
  bool by_need() const { return asks || (stages && !streams); }  ///< each command belongs to the part that it needs
  // From here on by lower.cpp, which orders the steps:
  std::vector<LaneStep> steps;
  std::int64_t most = 0;   ///< blocks that may share it
  bool in_turn = false;    ///< it has loops or reductions, so blocks share single steps of it rather than all of it
  bool signaller = false;  ///< a warp of each block signals how far the block has come, and does nothing else
  bool wide = true;        ///< its reductions outside of LL lines are of 16 bytes at a time
};

class GpuLanes {
 public:
  /// `carried`: as `lower` has it. Both must live as long as this. `signals_puts`: each of several puts is signalled
  /// when it ends.
  GpuLanes(const Program& program, const ThreadChannels& carried, bool signals_puts);

  std::vector<GpuLane> all;
  std::vector<std::int32_t> messages;  ///< commands that channels carry in a stream
  bool in_line = false;                ///< GpuProgram::in_line
  bool forwards = false;               ///< commands other than reductions depend on others: what arrives is forwarded
  bool sends_on = false;               ///< a lane puts after it has waited for something that arrives
  std::vector<bool> awaited;           ///< by command: another one depends on it
  /// By command: what it waits for within the process. Of a message in a stream that is left to the command before it.
  std::vector<std::vector<std::int32_t>> deps;
  std::vector<std::int32_t>
      signal_after;  ///< by command: the put of a stream at whose end this signal is given; -1: none

  /// Whether commands of the wait use what messages of a stream have brought.
  bool wait_needs_beside() const;
  /// The part of an epoch to which a command belongs; 0 if no kernel runs it.
  int part_of(const GpuLane& lane, std::size_t command) const;
  /// The channel of a message that a thread of the process carries, or null.
  const ThreadChannel* thread_of(std::size_t command) const;
  bool asked(std::size_t command) const { return thread_of(command) != nullptr; }
  bool in_stream(std::size_t command) const { return in_.channels[command].stream != nullptr; }
  bool is_ll(std::int32_t buffer) const { return in_.where[static_cast<std::size_t>(buffer)].ll; }
  /// Whether a command signals before anything but signals in its lane. Then it says only that earlier work of the
  /// stream has ended and is visible. A thread that does nothing else can do it.
  bool signals_first(std::size_t command) const;

 private:
  void find_lanes();
  std::size_t arrives_from(const GpuLane& lane) const;
  void find_deps();
  bool stands_alone(const GpuLane& lane) const;
  void keep_order(const GpuLane& lane);
  void pass_deps_on(const GpuLane& lane);
  bool late_by_deps(const GpuLane& lane) const;
  bool waits(const GpuLane& lane) const;
  void find_late();
  bool find_late(const GpuLane& lane);
  void hold();
  bool hold(const GpuLane& lane);
  bool needs_wait(std::size_t command) const;
  int part_beside(const GpuLane& lane, std::size_t command) const;
  void find_stream_signals();
  void wait_before(std::size_t message);
  std::int32_t end_of_stream(std::int32_t dep) const;

  const Program& in_;
  const Plan& plan_;
  const ThreadChannels& carried_;
  std::vector<bool> late_;  // does not belong to the start
  std::vector<bool> held_;  // lies after messages of a stream, but belongs to the wait
};

}  // namespace tasuki
