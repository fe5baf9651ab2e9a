// Lowering to a GPU program: see program.hpp.
#include "engines/gpu/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>

#include "engines/gpu/deal.hpp"
#include "engines/gpu/lanes.hpp"
#include "engines/gpu/operands.hpp"
#include "engines/gpu/order.hpp"
#include "engines/gpu/task.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Several blocks share a large move although a single thread has to signal for them: if it is worth this many blocks.
constexpr std::int64_t kWorthSignaller = 8;
// Blocks of a staging task at most: enough to keep the way to the host busy.
constexpr std::int64_t kStagingBlocks = 16;

class Lowering {
 public:
  Lowering(const Program& program, int most_blocks, bool atomics, int warps, const ThreadChannels& carried,
           std::uint64_t* signal_words, bool own)
      : in_(program),
        plan_(program.plan),
        most_(most_blocks),
        atomics_(atomics),
        warps_(warps),
        signal_words_(signal_words),
        own_(own),
        lanes_(program, carried, signal_words != nullptr) {
    check_size();
    for (GpuLane& lane : lanes_.all) order(lane);
    in_stages_ = own && lanes_.messages.empty() && has_stages();
    out_.cooperative = out_.cooperative || in_stages_;
  }

  GpuProgram run() {
    out_.messages = lanes_.messages;
    out_.in_line = lanes_.in_line;
    out_.wait_after = lanes_.wait_needs_beside();
    Worth worth[kBoth];
    for (const int parts : {kPartStart, kPartWait, kBoth, kPartPack, kPartUnpack, kBefore, kAfter}) {
      if (parts > kBoth && out_.messages.empty()) break;
      if ((parts == kBefore || parts == kAfter) && !out_.in_line) continue;
      TaskDraft light;
      TaskDraft answers;
      std::vector<TaskDraft> tasks;
      for (const GpuLane& lane : lanes_.all) lower_lane(lane, parts, tasks, light, answers);
      if (own_) {
        light = spread(light, answers);
      } else {
        if (!answers.ends.empty()) light.fill_warp();
        light.add_lanes(answers);
      }
      if (parts == kBoth) out_.direct = !tasks.empty() || !light.steps.empty();
      // What is sent in the start must not wait for what another rank sends in its wait.
      if (parts == kBoth && !lanes_.forwards && !lanes_.sends_on &&
          both_want_most(worth[kPartStart], worth[kPartWait], most_) &&
          out_.tasks[kPartStart].size() + out_.tasks[kPartWait].size() <= kGpuTasks) {
        in_rounds(out_);
        continue;
      }
      if (parts < kBoth) worth[parts] = worth_of(tasks);
      tasks.insert(tasks.begin(), std::move(light));
      (in_stages_ ? deal_stages : deal_out)(plan_, tasks, parts, most_, out_);
    }
    return std::move(out_);
  }

 private:
  TaskDraft draft() const {
    TaskDraft task;
    task.warps = warps_;
    return task;
  }

  // Whether moves belong to more than one stage.
  bool has_stages() const {
    int first = -1;
    for (const Command& c : plan_.commands) {
      if (!moves_data(c.verb)) continue;
      if (first >= 0 && c.stage != first) return true;
      first = c.stage;
    }
    return false;
  }

  void check_size() const {
    std::int64_t steps = 0;
    for (const Command& c : plan_.commands) {
      const std::int64_t rounds = c.loop >= 0 ? plan_.loops[static_cast<std::size_t>(c.loop)].count : 1;
      steps += std::min(rounds, kGpuSteps + 1);
      if (steps <= kGpuSteps) continue;
      throw Error(
          ErrorKind::not_possible,
          fmt::format("rank {}: {}: more than {} commands with chunk loops unrolled, which engine 'stream' does "
                      "not take; use larger chunks",
                      plan_.rank, plan_.operation, kGpuSteps));
    }
  }

  // The lane's steps one by one: which of them wait for which, and how many blocks may run them.
  void order(GpuLane& lane) {
    lane.steps = unrolled(plan_, lane.first, lane.last);
    if (!lane.by_need() && !lane.streams) join_operands(in_, lanes_.awaited, lane.steps);
    bool loops = false;
    bool reduces = false;
    std::vector<bool> spared(plan_.commands.size(), false);
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Command& c = plan_.commands[i];
      loops = loops || c.loop >= 0;
      reduces = reduces || c.verb == Verb::reduce;
      // What a stream moves, and what it signals after that, no step of a kernel may wait for: the kernel comes first.
      spared[i] = lanes_.signals_first(i) || (c.verb == Verb::signal && lanes_.is_ll(c.dst)) ||
                  (c.verb == Verb::wait && lanes_.is_ll(c.src)) || lanes_.in_stream(i) || lanes_.signal_after[i] >= 0;
      if (c.loop >= 0 && in_.channels[i].carried()) {
        throw Error(ErrorKind::not_possible,
                    fmt::format("rank {}: {}: command #{} is a message in a chunk loop, which engine 'stream' does not "
                                "run; use a path by which the GPUs reach each other, or host memory",
                                plan_.rank, plan_.operation, i));
      }
      if (!moves_data(c.verb)) continue;
      if (c.verb == Verb::reduce) {
        check_reduction(i);
        lane.wide = lane.wide && can_be_wide(c);
      }
    }
    // A copy that is joined to reductions is dealt out as they are.
    for (const LaneStep& step : lane.steps) {
      const Command& c = plan_.commands[static_cast<std::size_t>(step.command)];
      if (step.more > 0 || step.joined) lane.wide = lane.wide && (size_of(c.dtype) > 0 || can_be_wide(c));
    }
    const std::int64_t widest = widest_of(lane);
    if (!lane.by_need() && !lane.streams)
      join_puts(
          in_, lanes_, [this](const Command& c) { return can_be_wide(c); },
          lane.wide && reduces && widest >= kWorthSignaller, own_, lane.steps);
    for (const LaneStep& step : lane.steps) reduces = reduces || step.sends > 0;
    order_moves(plan_, lane.steps, out_.more_ends);
    leave_streams_order(lane);
    out_.reduces = out_.reduces || reduces;
    // Several blocks add their shares to one counter. A counter that advances several times in an epoch has no room for
    // shares.
    const bool shares = may_share(lane);
    const auto moves = std::count_if(lane.steps.begin(), lane.steps.end(), [&](const LaneStep& step) {
      return !step.joined && moves_data(plan_.commands[static_cast<std::size_t>(step.command)].verb);
    });
    // Several large moves, each with a signal: of a ring, which sends on what has come.
    const bool several = !shares && moves > 1 && widest >= kWorthSignaller;
    if (!shares && widest > 1 && (loops || reduces || several))
      single_out_signals(plan_, lane.steps, spared, out_.more_ends);
    const bool single = std::any_of(lane.steps.begin(), lane.steps.end(), [](const auto& step) { return step.single; });
    lane.in_turn = loops || several || (reduces && moves > 1);
    const auto signals = std::count_if(lane.steps.begin(), lane.steps.end(), [&](const LaneStep& step) {
      return plan_.commands[static_cast<std::size_t>(step.command)].verb == Verb::signal &&
             !spared[static_cast<std::size_t>(step.command)];
    });
    lane.signaller = own_ && widest >= kWorthSignaller && moves > 1 && signals > 1;
    lane.most = !shares && !single ? 1 : lane.in_turn ? widest : std::numeric_limits<std::int64_t>::max();
    const bool waits = std::any_of(lane.steps.begin(), lane.steps.end(), [](const auto& s) { return s.after >= 0; });
    out_.cooperative = out_.cooperative || (waits && lane.most > 1);
  }

  // A step of the kernel after the messages need not wait for the end of one: it comes later in the stream. Nor could
  // it, because no kernel gives such an end. A step of the kernel before the messages must not wait for one at all.
  void leave_streams_order(GpuLane& lane) const {
    for (LaneStep& step : lane.steps) {
      const auto i = static_cast<std::size_t>(step.command);
      if (step.after < 0 || lanes_.in_stream(i)) continue;
      const bool of_stream = std::any_of(lane.steps.begin(), lane.steps.end(), [&](const LaneStep& earlier) {
        return earlier.end == step.after && lanes_.in_stream(static_cast<std::size_t>(earlier.command));
      });
      if (!of_stream) continue;
      if (lanes_.part_of(lane, i) != kPartUnpack)
        throw Error(
            fmt::format("rank {}: {}: command #{} must wait for a message that the stream sends after it (a "
                        "defect in Tasuki)",
                        plan_.rank, plan_.operation, i));
      step.after = -1;
    }
  }

  // Blocks that one step is worth.
  std::int64_t widest_of(const GpuLane& lane) const {
    std::int64_t widest = 1;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      if (!moves_data(plan_.commands[i].verb)) continue;
      TaskDraft one = draft();
      add_copies(one, plan_.commands[i], 0, form_of(lane, plan_.commands[i]));
      widest = std::max(widest, one.blocks());
    }
    return widest;
  }

  void check_reduction(std::size_t command) const {
    const Command& c = plan_.commands[command];
    if (!lanes_.is_ll(c.dst)) return;
    throw Error(ErrorKind::not_possible,
                fmt::format("rank {}: {}: command #{} reduces {} of {} into LL lines, which engine 'stream' "
                            "cannot; use another path",
                            plan_.rank, plan_.operation, command, to_string(c.op), to_string(c.dtype)));
  }

  // Whether a move may be done 16 bytes at a time, in every round of its loop.
  bool can_be_wide(const Command& c) const {
    if (lanes_.is_ll(c.src)) return true;  // it is done in words, whatever the others are
    if (c.src_step % kWide != 0 || c.dst_step % kWide != 0) return false;
    if (c.dtype != DType::none && kWide % size_of(c.dtype) != 0) return false;
    const auto first = plan_.copies.begin() + c.first_copy;
    return std::all_of(first, first + c.copy_count, [&](const StridedCopy& copy) {
      return unit_of(copy, in_.where[static_cast<std::size_t>(c.src)], in_.where[static_cast<std::size_t>(c.dst)]) ==
             kWide;
    });
  }

  // How a move of the lane is cut, as `TaskDraft::add_copy` wants it.
  std::int64_t form_of(const GpuLane& lane, const Command& c) const {
    if (c.verb != Verb::reduce) return 0;
    if (lanes_.is_ll(c.src)) return kByLines;
    return lane.wide ? kByWide : size_of(c.dtype);
  }
  // The same for a step and those that are one with it.
  std::int64_t form_of(const GpuLane& lane, const LaneStep& step) const {
    std::int64_t form = form_of(lane, plan_.commands[static_cast<std::size_t>(step.command)]);
    for (const LaneStep* other = &step; other <= &step + step.more && step.more > 0; ++other) {
      const Command& c = plan_.commands[static_cast<std::size_t>(other->command)];
      if (lanes_.is_ll(c.src)) return kByLines;
      if (c.verb == Verb::reduce) form = form_of(lane, c);
    }
    return form;
  }

  // The lane's steps of these parts: a task or a thread for its moves, and threads that ask for messages and wait for
  // them.
  void lower_lane(const GpuLane& lane, int parts, std::vector<TaskDraft>& tasks, TaskDraft& light, TaskDraft& answers) {
    TaskDraft task = draft();
    TaskDraft signals;
    TaskDraft asks;
    TaskDraft waits;
    const auto now = [&](std::size_t i) { return (lanes_.part_of(lane, i) & parts) != 0; };
    bool moves = false;
    std::size_t last_move = 0;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      if (!now(i) || !moves_data(plan_.commands[i].verb)) continue;
      moves = true;
      last_move = i;
    }
    TaskDraft rest;  // in stages: waits at the end, which may be for what peers do in later stages
    for (const LaneStep& step : lane.steps) {
      const auto i = static_cast<std::size_t>(step.command);
      if (in_stages_ && moves && now(i) && i > last_move && plan_.commands[i].verb == Verb::wait) {
        add_step(lane, rest, step);
        continue;
      }
      if (now(i) && lanes_.asked(i)) add_ask(asks, step.command);
      if (now(i) && !lanes_.asked(i) && !step.joined)
        add_step(lane, moves && (step.single || lanes_.signals_first(i)) ? signals : task, step);
      if (lanes_.asked(i) && (kPartWait & parts) != 0) add_answer(waits, step.command);
      if (lanes_.signal_after[i] >= 0 && (kPartPack & parts) != 0) add_stream_signal(lane, signals, step, parts);
    }
    if (!task.copies.empty()) {
      task.most = std::min(task.most, lane.most);
      task.stage = lane.stage;
      task.in_turn = lane.in_turn;
      task.signaller = lane.signaller;
      task.warps -= lane.signaller ? 1 : 0;
      task.staging = lane.by_need();
      if (task.staging) task.most = std::min(task.most, kStagingBlocks);
      task.ends.push_back(static_cast<std::int32_t>(task.steps.size()));
      tasks.push_back(std::move(task));
    } else {
      light.add_lane(task);
    }
    light.add_lane(signals);
    light.add_lane(rest);
    light.add_lane(asks);
    answers.add_lane(waits);
  }

  // Sets the word that the copy engine copies into the signal's counter when the put before it has ended.
  void add_stream_signal(const GpuLane& lane, TaskDraft& signals, const LaneStep& step, int parts) {
    add_step(lane, signals, step);
    GpuStep& s = signals.steps.back();
    StreamSignal signal{lanes_.signal_after[static_cast<std::size_t>(step.command)], s.counter,
                        signal_words_ + step.command};
    if (s.awaited != 0) {
      signal.end = s.end;
      auto& prepared = prepared_[step.command];
      if (prepared == 0) {
        prepared = static_cast<std::int32_t>(plan_.commands.size() + out_.more_ends.size());
        out_.more_ends.push_back(step.command);
      }
      s.end = signal.prepared = prepared;
    }
    if (parts == kPartPack) out_.stream_signals.push_back(signal);
    s.counter = signal_words_ + step.command;
    s.alone = 1;
    s.untraced = 1;
  }

  GpuPlace place(std::int32_t buffer) {
    const Located& where = in_.where[static_cast<std::size_t>(buffer)];
    GpuPlace place;
    place.base = where.base;
    place.stride = where.stride;
    place.copies = static_cast<std::uint32_t>(where.copies);
    const Home home = plan_.buffers[static_cast<std::size_t>(buffer)].home;
    if (!std::has_single_bit(place.copies) && (home == Home::device || home == Home::ll)) {
      throw Error(fmt::format("rank {}: {}: a ring of {} copies; on GPUs a power of two is needed (a defect in Tasuki)",
                              plan_.rank, plan_.operation, where.copies));
    }
    // Of a field with two copies, the copy is the one that is current at each launch: for a graph nothing else is
    // known.
    place.takes_turns = where.takes_turns && where.current == nullptr ? 1 : 0;
    if (where.current == nullptr && place.takes_turns == 0) place.copies = 1;  // always the first
    if (where.copies < 2 || where.current == nullptr) return place;
    const auto known = std::find(out_.pairs.begin(), out_.pairs.end(), where.current);
    place.pair = static_cast<std::int16_t>(known - out_.pairs.begin());
    if (known == out_.pairs.end()) out_.pairs.push_back(where.current);
    if (out_.pairs.size() > kGpuPairs) {
      throw Error(ErrorKind::not_possible,
                  fmt::format("rank {}: {}: {} fields with two copies; one operation on GPU memory takes at most {}",
                              plan_.rank, plan_.operation, out_.pairs.size(), kGpuPairs));
    }
    return place;
  }

  // Leaves out dependencies for which earlier steps of the task have waited.
  void add_deps(TaskDraft& task, GpuStep& step) const {
    step.first_dep = static_cast<std::int32_t>(task.deps.size());
    add_deps(task, step, step.command);
  }
  void add_deps(TaskDraft& task, GpuStep& step, std::int32_t command) const {
    for (const auto dep : lanes_.deps[static_cast<std::size_t>(command)]) {
      if (std::find(task.deps.begin(), task.deps.end(), dep) == task.deps.end()) task.deps.push_back(dep);
    }
    step.deps = static_cast<std::int32_t>(task.deps.size()) - step.first_dep;
  }

  // Asks for a message. Its staging memory has been packed, or is free, because earlier epochs are in the same stream.
  void add_ask(TaskDraft& lane, std::int32_t index) {
    GpuStep s;
    s.verb = Verb::signal;
    s.command = s.end = index;
    s.asks = 1;
    s.counter = lanes_.thread_of(static_cast<std::size_t>(index))->asked();
    s.per_epoch = 1;
    s.untraced = 1;
    const Command& c = plan_.commands[static_cast<std::size_t>(index)];
    s.src = place(c.verb == Verb::send ? c.src : c.dst);
    add_deps(lane, s);
    lane.steps.push_back(s);
  }

  // Waits until the message has ended. Only this thread reads the word in host memory; commands that depend on the
  // message wait in GPU memory.
  void add_answer(TaskDraft& lane, std::int32_t index) const {
    GpuStep s;
    s.verb = Verb::wait;
    s.command = s.end = index;
    s.counter =
        const_cast<std::uint64_t*>(lanes_.thread_of(static_cast<std::size_t>(index))->ended());  // waits only read
    s.per_epoch = 1;
    s.awaited = lanes_.awaited[static_cast<std::size_t>(index)] ? 1 : 0;
    lane.steps.push_back(s);
  }

  void add_step(const GpuLane& lane, TaskDraft& task, const LaneStep& step) {
    const auto index = static_cast<std::size_t>(step.command);
    const Command& c = plan_.commands[index];
    GpuStep s;
    s.verb = c.verb;
    s.dtype = c.dtype;
    s.op = c.op;
    s.command = step.command;
    s.end = step.end;
    const auto counts_as = static_cast<std::size_t>(step.more > 0 ? step.counts_as : step.command);
    s.awaited = static_cast<std::int8_t>(step.awaited | (lanes_.awaited[counts_as] && step.last ? kAwaited : 0));
    if (c.verb == Verb::signal || c.verb == Verb::wait) {
      const auto buffer = static_cast<std::size_t>(c.verb == Verb::signal ? c.dst : c.src);
      if (in_.where[buffer].ll) return;  // the flags replace the counter
      s.counter = reinterpret_cast<std::uint64_t*>(in_.where[buffer].base);
      s.per_epoch = static_cast<std::uint64_t>(plan_.buffers[buffer].per_epoch);
      s.index = static_cast<std::uint64_t>(c.index + step.round);
      s.lag = static_cast<std::uint32_t>(c.lag);
      s.credit = c.credit ? 1 : 0;
      // The rank that gets this signal loads the data.
      s.alone = lanes_.signals_first(index) && plan_.buffers[buffer].purpose != Purpose::available ? 1 : 0;
    }
    add_deps(task, s);
    for (const LaneStep* other = &step + 1; other <= &step + step.more; ++other) add_deps(task, s, other->command);
    if (step.after >= 0 && std::find(task.deps.begin(), task.deps.end(), step.after) == task.deps.end()) {
      task.deps.push_back(step.after);
      ++s.deps;
      s.follows = step.single ? 0 : 1;
    }
    if (moves_data(c.verb)) {
      const std::int64_t form = form_of(lane, step);
      add_move(task, s, c, step.round, form);
      if (step.more > 0) return add_operands(task, s, step, form);
      if (step.alike) {
        const auto before = std::find_if(task.steps.rbegin(), task.steps.rend(),
                                         [](const GpuStep& earlier) { return moves_data(earlier.verb); });
        if (before != task.steps.rend()) before->keeps_turn = 1;
      }
    }
    task.steps.push_back(s);
  }

  void add_move(TaskDraft& task, GpuStep& s, const Command& c, std::int64_t round, std::int64_t form) {
    s.src = place(c.src);
    s.dst = place(c.dst);
    if (lanes_.is_ll(c.src)) s.ll_side = kLLSource;
    if (lanes_.is_ll(c.dst)) s.ll_side = kLLTarget;
    s.by_lines = form == kByLines ? 1 : 0;
    s.first_copy = static_cast<std::int32_t>(task.copies.size());
    add_copies(task, c, round, form);
    s.copies = static_cast<std::int32_t>(task.copies.size()) - s.first_copy;
  }

  // A step of several operands, of which `s` has the first one, and a step for each of the others, which is not dealt
  // out.
  void add_operands(TaskDraft& task, GpuStep& s, const LaneStep& step, std::int64_t form) {
    const Command& last = plan_.commands[static_cast<std::size_t>((&step)[step.more - step.sends].command)];
    s.begins = s.verb == Verb::copy ? 1 : 0;
    s.verb = Verb::reduce;
    s.dtype = last.dtype;
    s.op = last.op;
    s.joined = static_cast<std::int8_t>(step.more);
    s.sends = static_cast<std::int8_t>(step.sends);
    if (form > 0) form = size_of(last.dtype);
    task.steps.push_back(s);
    const std::int64_t rows = task.rows;
    const std::int64_t lines = task.lines;
    for (const LaneStep* other = &step + 1; other <= &step + step.more; ++other) {
      GpuStep operand;
      operand.verb = other > &step + step.more - step.sends ? Verb::put : Verb::reduce;
      operand.command = operand.end = other->command;
      operand.first_dep = static_cast<std::int32_t>(task.deps.size());
      add_move(task, operand, plan_.commands[static_cast<std::size_t>(other->command)], other->round, form);
      task.steps.push_back(operand);
    }
    task.rows = rows;
    task.lines = lines;
  }

  void add_copies(TaskDraft& task, const Command& c, std::int64_t round, std::int64_t form) const {
    for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
      StridedCopy copy = plan_.copies[static_cast<std::size_t>(k)];
      copy.src_offset += round * c.src_step;
      copy.dst_offset += round * c.dst_step;
      task.add_copy(copy, in_.where[static_cast<std::size_t>(c.src)], in_.where[static_cast<std::size_t>(c.dst)], form);
    }
  }

  // Whether several blocks may run the lane and add their shares to its signals.
  bool may_share(const GpuLane& lane) const {
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Command& c = plan_.commands[i];
      if (c.verb != Verb::signal || lanes_.is_ll(c.dst) || lanes_.signals_first(i)) continue;
      if (!atomics_ || plan_.buffers[static_cast<std::size_t>(c.dst)].per_epoch > 1) return false;
    }
    return true;
  }

  const Program& in_;
  const Plan& plan_;
  int most_;
  bool atomics_;
  int warps_;  // of a block
  std::uint64_t* signal_words_;
  bool own_;
  bool in_stages_ = false;
  std::map<std::int32_t, std::int32_t> prepared_;  // by command: StreamSignal::prepared
  GpuLanes lanes_;
  GpuProgram out_;
};

}  // namespace

GpuProgram lower(const Program& program, int most_blocks, bool atomics, int warps, const ThreadChannels& carried,
                 std::uint64_t* signal_words, bool own) {
  return Lowering(program, most_blocks, atomics, warps, carried, signal_words, own).run();
}

std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target) {
  const Command& c = plan.commands[static_cast<std::size_t>(command)];
  const std::string what =
      c.verb == Verb::wait ? plan.buffers[static_cast<std::size_t>(c.src)].label() : std::string(to_string(c.verb));
  const std::string dead = runtime.liveness().failure(runtime.everyone());
  return fmt::format("rank {}: {}: epoch {} did not end: the GPU waited for #{} {} with rank {} (at {}, needs {}){}",
                     plan.rank, plan.operation, epoch, command, what, c.peer, value / kSignal, target / kSignal,
                     dead.empty() ? fmt::format(" for {:.3g} s", seconds_in_kernel(runtime)) : "; " + dead);
}

}  // namespace tasuki
