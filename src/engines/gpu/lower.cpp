// Lowering to a GPU program: see program.hpp.
#include "engines/gpu/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "engines/gpu/operands.hpp"
#include "engines/gpu/order.hpp"
#include "engines/gpu/task.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Blocks of a staging task at most: enough to keep the way to the host busy.
constexpr std::int64_t kStagingBlocks = 16;
constexpr std::int64_t kMostSpread = 4;
// Start and wait become two rounds if each is worth more than this many times the blocks because of scattered numbers.
constexpr std::int64_t kMostScattered = 2;

bool moves_data(Verb verb) {
  return verb == Verb::copy || verb == Verb::put || verb == Verb::reduce;
}

class Lowering {
  struct Lane {
    std::size_t first = 0;
    std::size_t last = 0;  // past the last command
    bool asks = false;     // has messages that a thread of the process carries, for which the kernel asks
    std::vector<LaneStep> steps;
    std::int64_t most = 0;  // blocks that may share it
    bool in_turn = false;   // it has loops or reductions, so blocks share single steps of it rather than all of it
    bool stages = false;    // packs messages into host memory, or unpacks them from there
    bool streams = false;   // has messages that are work of a stream
    bool wide = true;       // its reductions outside of stamped lines are of 16 bytes at a time
    bool by_need() const { return asks || (stages && !streams); }  // each command belongs to the part that it needs
  };

 public:
  Lowering(const Program& program, int most_blocks, bool atomics, int warps, const ThreadChannels& carried)
      : in_(program),
        plan_(program.plan),
        most_(most_blocks),
        atomics_(atomics),
        warps_(warps),
        carried_(carried),
        awaited_(plan_.commands.size(), false),
        asked_(plan_.commands.size(), false),
        late_(plan_.commands.size(), false),
        told_after_(plan_.commands.size(), -1) {
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      asked_[i] = thread_of(i) != nullptr;
      const bool fresh = i == 0 || plan_.commands[i].lane != plan_.commands[i - 1].lane;
      if (fresh) {
        lanes_.emplace_back();
        lanes_.back().first = i;
      }
      Lane& lane = lanes_.back();
      lane.last = i + 1;
      lane.asks = lane.asks || asked_[i];
      lane.stages = lane.stages || stages(plan_.commands[i]);
      lane.streams = lane.streams || in_stream(i);
    }
    deps_.resize(plan_.commands.size());
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      const Command& c = plan_.commands[i];
      for (auto d = c.first_dep; d < c.first_dep + c.dep_count; ++d) {
        deps_[i].push_back(told_end(plan_.deps[static_cast<std::size_t>(d)]));
      }
      relays_ = relays_ || (c.dep_count > 0 && c.verb != Verb::reduce);
    }
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      if (in_stream(i) && !deps_[i].empty()) wait_before(i);
    }
    for (const Lane& lane : lanes_) {
      if (lane.asks) keep_order(lane);
    }
    for (const auto& deps : deps_) {
      for (const auto dep : deps) awaited_[static_cast<std::size_t>(dep)] = true;
    }
    find_late();
    check_size();
    for (Lane& lane : lanes_) order(lane);
  }

  GpuProgram run() {
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      if (in_stream(i)) out_.messages.push_back(static_cast<std::int32_t>(i));
    }
    out_.in_line = !out_.messages.empty() &&
                   std::none_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) { return stands_alone(lane); });
    find_tells();
    Worth worth[kBoth];
    for (const int parts : {kPartStart, kPartWait, kBoth, kPartPack, kPartUnpack, kBefore, kAfter}) {
      if (parts > kBoth && out_.messages.empty()) break;
      if ((parts == kBefore || parts == kAfter) && !out_.in_line) continue;
      TaskDraft light;
      TaskDraft answers;
      std::vector<TaskDraft> tasks;
      for (const Lane& lane : lanes_) lower_lane(lane, parts, tasks, light, answers);
      // Reading a word in host memory takes long. So these lanes have warps of their own, and no other lane waits for
      // it.
      if (!answers.ends.empty()) light.fill_warp();
      light.add_lanes(answers);
      if (parts == kBoth) out_.direct = !tasks.empty() || !light.steps.empty();
      if (parts == kBoth && both_want_most(worth[kPartStart], worth[kPartWait]) &&
          out_.tasks[kPartStart].size() + out_.tasks[kPartWait].size() <= kGpuTasks) {
        in_rounds();
        continue;
      }
      if (parts < kBoth) worth[parts] = worth_of(tasks);
      tasks.insert(tasks.begin(), std::move(light));
      deal_out(tasks, parts);
    }
    lower_tells();
    return std::move(out_);
  }

 private:
  TaskDraft draft() const {
    TaskDraft task;
    task.warps = warps_;
    return task;
  }

  void check_size() const {
    std::int64_t steps = 0;
    for (const Command& c : plan_.commands) {
      const std::int64_t rounds = c.loop >= 0 ? plan_.loops[static_cast<std::size_t>(c.loop)].count : 1;
      steps += std::min(rounds, kGpuSteps + 1);
      if (steps <= kGpuSteps) continue;
      throw Error(
          fmt::format("rank {}: {}: more than {} commands with chunk loops unrolled, which engine 'stream' does "
                      "not take; use larger chunks",
                      plan_.rank, plan_.operation, kGpuSteps));
    }
  }

  // The lane's steps one by one: which of them wait for which, and how many blocks may run them.
  void order(Lane& lane) {
    lane.steps = unrolled(plan_, lane.first, lane.last);
    if (!lane.by_need() && !lane.streams) join_operands(in_, awaited_, lane.steps);
    order_moves(plan_, lane.steps, out_.more_ends);
    bool loops = false;
    bool reduces = false;
    std::int64_t widest = 1;  // blocks that one step is worth
    std::vector<bool> spared(plan_.commands.size(), false);
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Command& c = plan_.commands[i];
      loops = loops || c.loop >= 0;
      reduces = reduces || c.verb == Verb::reduce;
      spared[i] =
          tells_first(i) || (c.verb == Verb::signal && stamped(c.dst)) || (c.verb == Verb::wait && stamped(c.src));
      if (c.loop >= 0 && in_.channels[i].carried()) {
        throw Error(
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
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      if (!moves_data(plan_.commands[i].verb)) continue;
      TaskDraft one = draft();
      add_copies(one, plan_.commands[i], 0, form_of(lane, plan_.commands[i]));
      widest = std::max(widest, one.blocks());
    }
    out_.reduces = out_.reduces || reduces;
    // Several blocks add their shares to one counter. A counter that advances several times in an epoch has no room for
    // shares.
    const bool shares = may_share(lane);
    if (!shares && widest > 1 && (loops || reduces)) tell_apart(plan_, lane.steps, spared, out_.more_ends);
    const bool told = std::any_of(lane.steps.begin(), lane.steps.end(), [](const auto& step) { return step.told; });
    const auto moves = std::count_if(lane.steps.begin(), lane.steps.end(), [&](const LaneStep& step) {
      return !step.joined && moves_data(plan_.commands[static_cast<std::size_t>(step.command)].verb);
    });
    lane.in_turn = loops || (reduces && moves > 1);
    lane.most = !shares && !told ? 1 : lane.in_turn ? widest : std::numeric_limits<std::int64_t>::max();
    const bool waits = std::any_of(lane.steps.begin(), lane.steps.end(), [](const auto& s) { return s.after >= 0; });
    out_.meets = out_.meets || (waits && lane.most > 1);
  }

  void check_reduction(std::size_t command) const {
    const Command& c = plan_.commands[command];
    if (!stamped(c.dst)) return;
    throw Error(fmt::format(
        "rank {}: {}: command #{} reduces {} of {} into stamped lines, which engine 'stream' cannot; use another path",
        plan_.rank, plan_.operation, command, to_string(c.op), to_string(c.dtype)));
  }

  // Whether a move may be done 16 bytes at a time, in every round of its loop.
  bool can_be_wide(const Command& c) const {
    if (stamped(c.src)) return true;  // it is done in words, whatever the others are
    if (c.src_step % kWide != 0 || c.dst_step % kWide != 0) return false;
    if (c.dtype != DType::none && kWide % size_of(c.dtype) != 0) return false;
    const auto first = plan_.copies.begin() + c.first_copy;
    return std::all_of(first, first + c.copy_count, [&](const StridedCopy& copy) {
      return unit_of(copy, in_.where[static_cast<std::size_t>(c.src)], in_.where[static_cast<std::size_t>(c.dst)]) ==
             kWide;
    });
  }

  // How a move of the lane is cut, as `TaskDraft::add_copy` wants it.
  std::int64_t form_of(const Lane& lane, const Command& c) const {
    if (c.verb != Verb::reduce) return 0;
    if (stamped(c.src)) return kByLines;
    return lane.wide ? kByWide : size_of(c.dtype);
  }
  // The same for a step and those that are one with it.
  std::int64_t form_of(const Lane& lane, const LaneStep& step) const {
    std::int64_t form = form_of(lane, plan_.commands[static_cast<std::size_t>(step.command)]);
    for (const LaneStep* other = &step; other <= &step + step.more && step.more > 0; ++other) {
      const Command& c = plan_.commands[static_cast<std::size_t>(other->command)];
      if (stamped(c.src)) return kByLines;
      if (c.verb == Verb::reduce) form = form_of(lane, c);
    }
    return form;
  }

  // The lane's steps of these parts: a task or a thread for its moves, and threads that ask for messages and wait for
  // them.
  void lower_lane(const Lane& lane, int parts, std::vector<TaskDraft>& tasks, TaskDraft& light, TaskDraft& answers) {
    TaskDraft task = draft();
    TaskDraft tells;
    TaskDraft asks;
    TaskDraft waits;
    const auto now = [&](std::size_t i) { return (part_of(lane, i) & parts) != 0; };
    bool moves = false;
    for (std::size_t i = lane.first; i < lane.last; ++i)
      moves = moves || (now(i) && moves_data(plan_.commands[i].verb));
    for (const LaneStep& step : lane.steps) {
      const auto i = static_cast<std::size_t>(step.command);
      if (now(i) && asked_[i]) add_ask(asks, step.command);
      if (now(i) && !asked_[i] && !step.joined)
        add_step(lane, moves && (step.told || tells_first(i)) ? tells : task, step);
      if (asked_[i] && (kPartWait & parts) != 0) add_answer(waits, step.command);
    }
    if (!task.copies.empty()) {
      task.most = std::min(task.most, lane.most);
      task.in_turn = lane.in_turn;
      task.staging = lane.by_need();
      if (task.staging) task.most = std::min(task.most, kStagingBlocks);
      task.ends.push_back(static_cast<std::int32_t>(task.steps.size()));
      tasks.push_back(std::move(task));
    } else {
      light.add_lane(task);
    }
    light.add_lane(tells);
    light.add_lane(asks);
    answers.add_lane(waits);
  }

  // Whether the lane's message cannot lie between two kernels that serve all lanes. That is so if the message depends
  // on something that arrives. It is also so for a put by the copy engine: it takes long to begin, and should do so
  // while the first kernel serves other lanes.
  bool stands_alone(const Lane& lane) const {
    bool depends = false;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      depends = depends || plan_.commands[i].dep_count > 0;
      const bool copies = plan_.commands[i].verb == Verb::put && lanes_.size() > 1;
      if (in_stream(i) && (depends || copies)) return true;
    }
    return false;
  }

  // A lane is in order, but a thread of the process carries its messages while the lane goes on. So a command that
  // follows a message waits for the message, and a message waits for the commands that it follows. Messages need not
  // wait for each other, because they are asked for in their order, unless they touch the same bytes. (If a lane moves
  // data for its messages, the pass `message order` has already given the messages a lane of their own.)
  void keep_order(const Lane& lane) {
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      bool after_own = false;  // commands that the lane carries out itself end in order, so the last one is enough
      for (std::size_t before = i; before-- > lane.first;) {
        if (!asked_[before] && (!asked_[i] || after_own)) continue;
        if (asked_[before] && asked_[i] && !touch_the_same(plan_.commands[before], plan_.commands[i])) continue;
        after_own = after_own || !asked_[before];
        deps_[i].push_back(static_cast<std::int32_t>(before));
      }
    }
  }

  // Whether one of two messages writes bytes that the other reads or writes.
  static bool touch_the_same(const Command& a, const Command& b) {
    const bool both_send = a.verb == Verb::send && b.verb == Verb::send;
    const auto buffer = [](const Command& c) { return c.verb == Verb::send ? c.src : c.dst; };
    return !both_send && buffer(a) == buffer(b) && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  // Finds the commands that do not belong to the start. In most lanes `part_of` decides that. In lanes with messages
  // that are asked for, or with their staging, a command is late if it cannot begin before something has arrived: a
  // wait, what follows it in its lane, and what depends on a message or on another late command. A message is late only
  // if it depends on something late. Dependencies may lead from any lane to any other.
  void find_late() {
    for (const Lane& lane : lanes_) {
      if (lane.asks && lane.streams) {
        throw Error(fmt::format("rank {}: {}: lane {} has messages of two kinds (a defect in Tasuki)", plan_.rank,
                                plan_.operation, plan_.commands[lane.first].lane));
      }
      for (std::size_t i = lane.first; i < lane.last && !lane.by_need(); ++i) late_[i] = part_of(lane, i) != kPartStart;
    }
    for (bool more = true; more;) {
      more = false;
      for (const Lane& lane : lanes_) {
        if (lane.by_need()) more = find_late(lane) || more;
      }
    }
  }

  // True if it has found another late command in the lane.
  bool find_late(const Lane& lane) {
    bool found = false;
    bool after = false;  // an earlier command of the lane, other than a message, is late
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const bool late = (after && !asked_[i]) || plan_.commands[i].verb == Verb::wait ||
                        std::any_of(deps_[i].begin(), deps_[i].end(), [&](std::int32_t dep) {
                          return asked_[static_cast<std::size_t>(dep)] || late_[static_cast<std::size_t>(dep)];
                        });
      found = found || late != late_[i];
      late_[i] = late;
      after = after || (late && !asked_[i]);
    }
    return found;
  }

  // Whether a command moves bytes into host memory that messages leave from, or out of host memory that messages
  // arrived in.
  bool stages(const Command& c) const {
    const auto pinned = [&](std::int32_t b) {
      return b >= 0 && plan_.buffers[static_cast<std::size_t>(b)].home == Home::pinned;
    };
    return moves_data(c.verb) && (pinned(c.src) || pinned(c.dst));
  }

  // In thread blocks. Staging tasks do not count: they should pack some messages while they unpack others.
  struct Worth {
    std::int64_t waiting = 0;    // of lanes that wait for signals, that signal, or that copy within the GPU
    std::int64_t scattered = 0;  // of lanes that move scattered units into or out of stamped lines
  };
  static Worth worth_of(const std::vector<TaskDraft>& tasks) {
    Worth worth;
    for (const TaskDraft& task : tasks) {
      if (task.staging) continue;
      if (task.lines == 0) worth.waiting += task.blocks();
      if (task.lines > 0 && task.scattered()) worth.scattered += task.blocks();
    }
    return worth;
  }

  // Whether start and wait become two rounds. They do if each would keep more than half of the blocks from the other.
  // Stamped lines are normally received while others are sent, because they are unpacked as they arrive. But with many
  // scattered numbers the SMs are the bottleneck, not the links, and two rounds are faster.
  // But what is sent in the start must not wait for what another rank sends in its wait.
  bool both_want_most(const Worth& start, const Worth& wait) const {
    if (relays_) return false;
    return 2 * std::min(start.waiting, wait.waiting) > most_ ||
           std::min(start.scattered, wait.scattered) > kMostScattered * most_;
  }

  // The two parts one after the other, each by all blocks, with the tasks that they have as kernels of their own.
  void in_rounds() {
    const auto& start = out_.tasks[kPartStart];
    const auto& wait = out_.tasks[kPartWait];
    auto& both = out_.tasks[kBoth];
    both = start;
    both.insert(both.end(), wait.begin(), wait.end());
    out_.blocks[kBoth] = std::max(out_.blocks[kPartStart], out_.blocks[kPartWait]);
    const auto first = static_cast<std::int32_t>(start.size());
    out_.rounds[kBoth] = {{0, first, out_.blocks[kPartStart]},
                          {first, static_cast<std::int32_t>(both.size()), out_.blocks[kPartWait]}};
  }

  const ThreadChannel* thread_of(std::size_t command) const {
    return carried_.empty() ? in_.channels[command].thread.get() : carried_[command];
  }

  bool in_stream(std::size_t command) const { return in_.channels[command].stream != nullptr; }

  // A lane that waits, and unpacks what it waited for, belongs to the wait. The signals with which it begins belong to
  // the start. Where commands depend on those of other lanes, permissions may come late, so that all waits belong to
  // the wait.
  int part_of(const Lane& lane, std::size_t command) const {
    if (in_stream(command)) return 0;
    if (lane.by_need()) return late_[command] ? kPartWait : kPartStart;
    if (lane.streams) return part_beside(lane, command);
    const auto begin = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.first);
    const auto end = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.last);
    const bool waits = std::any_of(begin, end, [](const Command& c) { return c.verb == Verb::wait; });
    const bool puts = std::any_of(begin, end, [](const Command& c) { return c.verb == Verb::put; });
    const bool depends = std::any_of(begin, end, [](const Command& c) { return c.dep_count > 0; });
    if ((!waits || (puts && !relays_)) && !depends) {
      // Waits at its end are for what the peers tell in their waits.
      const auto rest = std::find_if(plan_.commands.begin() + static_cast<std::ptrdiff_t>(command), end,
                                     [](const Command& c) { return c.verb != Verb::wait; });
      return rest == end ? kPartWait : kPartStart;
    }
    const auto told =
        std::find_if(begin, end, [](const Command& c) { return c.verb != Verb::signal || c.dep_count > 0; });
    return static_cast<std::size_t>(told - plan_.commands.begin()) > command ? kPartStart : kPartWait;
  }

  // The part of a command in a lane with messages of a stream, which all come between two kernels. Between two messages
  // a lane waits or packs for the next one, or it signals or unpacks after the last one.
  int part_beside(const Lane& lane, std::size_t command) const {
    if (told_after_[command] >= 0) return 0;
    std::size_t before = command;
    while (before > lane.first && !in_stream(before)) --before;
    if (!in_stream(before)) return kPartPack;
    std::size_t next = command;
    while (next < lane.last && !in_stream(next)) ++next;
    const bool after =
        next == lane.last || plan_.commands[command].verb == Verb::signal || plan_.commands[before].verb == Verb::recv;
    return after ? kPartUnpack : kPartPack;
  }

  // Of several puts of a stream each is told of when it has ended: what the peer does with it takes time, too.
  void find_tells() {
    const auto& commands = plan_.commands;
    const auto puts = std::count_if(out_.messages.begin(), out_.messages.end(), [&](std::int32_t m) {
      return commands[static_cast<std::size_t>(m)].verb == Verb::put;
    });
    if (puts < 2 || out_.in_line) return;
    for (const std::int32_t m : out_.messages) {
      const auto message = static_cast<std::size_t>(m);
      if (commands[message].verb != Verb::put) continue;
      for (std::size_t i = message + 1; i < commands.size() && commands[i].lane == commands[message].lane; ++i) {
        if (commands[i].verb != Verb::signal || !deps_[i].empty()) break;
        told_after_[i] = m;
      }
    }
  }

  void lower_tells() {
    for (const Lane& lane : lanes_) {
      for (std::size_t m = lane.first; m < lane.last; ++m) {
        TaskDraft signals;
        for (const LaneStep& step : lane.steps)
          if (told_after_[static_cast<std::size_t>(step.command)] == static_cast<std::int32_t>(m))
            add_step(lane, signals, step);
        if (signals.steps.empty()) continue;
        TaskDraft task;
        task.add_lane(signals);
        task.cut(1);
        GpuTell tell{static_cast<std::int32_t>(m), {}};
        tell.task.offset = static_cast<std::uint32_t>(out_.bytes.size());
        task.write(out_.bytes);
        tell.task.bytes = static_cast<std::uint32_t>(out_.bytes.size()) - tell.task.offset;
        out_.tells.push_back(tell);
      }
    }
  }

  // A message of a stream waits for nothing by itself: the command before it in its lane waits for what it depends on.
  void wait_before(std::size_t message) {
    std::size_t i = message;
    while (i > 0 && in_stream(i) && plan_.commands[i - 1].lane == plan_.commands[message].lane) --i;
    if (in_stream(i))
      throw Error(fmt::format("rank {}: {}: command #{} is a message that nothing waits for (a defect in Tasuki)",
                              plan_.rank, plan_.operation, message));
    deps_[i].insert(deps_[i].end(), deps_[message].begin(), deps_[message].end());
    deps_[message].clear();
  }

  // A dependency on a put of a stream is one on what follows it in its lane, which runs when it has ended.
  std::int32_t told_end(std::int32_t dep) const {
    const auto& commands = plan_.commands;
    auto i = static_cast<std::size_t>(dep);
    while (in_stream(i) && i + 1 < commands.size() && commands[i + 1].lane == commands[i].lane) ++i;
    return static_cast<std::int32_t>(i);
  }

  GpuPlace place(std::int32_t buffer) {
    const Located& where = in_.where[static_cast<std::size_t>(buffer)];
    GpuPlace place;
    place.base = where.base;
    place.stride = where.stride;
    place.copies = static_cast<std::uint32_t>(where.copies);
    const Home home = plan_.buffers[static_cast<std::size_t>(buffer)].home;
    if (!std::has_single_bit(place.copies) && (home == Home::device || home == Home::stamped)) {
      throw Error(fmt::format("rank {}: {}: a ring of {} copies; on GPUs a power of two is needed (a defect in Tasuki)",
                              plan_.rank, plan_.operation, where.copies));
    }
    // Of a field with two copies, the copy is the one that is current at each launch: for a graph nothing else is
    // known.
    place.takes_turns = where.takes_turns && where.current == nullptr ? 1 : 0;
    if (where.copies < 2 || where.current == nullptr) return place;
    const auto known = std::find(out_.pairs.begin(), out_.pairs.end(), where.current);
    place.pair = static_cast<std::int16_t>(known - out_.pairs.begin());
    if (known == out_.pairs.end()) out_.pairs.push_back(where.current);
    if (out_.pairs.size() > kGpuPairs) {
      throw Error(fmt::format("rank {}: {}: {} fields with two copies; one operation on GPU memory takes at most {}",
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
    for (const auto dep : deps_[static_cast<std::size_t>(command)]) {
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
    s.counter = thread_of(static_cast<std::size_t>(index))->asked();
    s.per_epoch = 1;
    s.untold = 1;
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
    s.counter = const_cast<std::uint64_t*>(thread_of(static_cast<std::size_t>(index))->ended());  // waits only read
    s.per_epoch = 1;
    s.awaited = awaited_[static_cast<std::size_t>(index)] ? 1 : 0;
    lane.steps.push_back(s);
  }

  void add_step(const Lane& lane, TaskDraft& task, const LaneStep& step) {
    const auto index = static_cast<std::size_t>(step.command);
    const Command& c = plan_.commands[index];
    GpuStep s;
    s.verb = c.verb;
    s.dtype = c.dtype;
    s.op = c.op;
    s.command = step.command;
    s.end = step.end;
    const auto told_as = static_cast<std::size_t>(step.more > 0 ? step.told_as : step.command);
    s.awaited = static_cast<std::int8_t>(step.awaited | (awaited_[told_as] && step.last ? kAwaited : 0));
    if (c.verb == Verb::signal || c.verb == Verb::wait) {
      const auto buffer = static_cast<std::size_t>(c.verb == Verb::signal ? c.dst : c.src);
      if (in_.where[buffer].stamped) return;  // the stamps replace the counter
      s.counter = reinterpret_cast<std::uint64_t*>(in_.where[buffer].base);
      s.per_epoch = static_cast<std::uint64_t>(plan_.buffers[buffer].per_epoch);
      s.index = static_cast<std::uint64_t>(c.index + step.round);
      s.lag = static_cast<std::uint32_t>(c.lag);
      s.credit = c.credit ? 1 : 0;
      // Who is told that data are available loads them.
      s.alone = tells_first(index) && plan_.buffers[buffer].purpose != Purpose::available ? 1 : 0;
    }
    add_deps(task, s);
    for (const LaneStep* other = &step + 1; other <= &step + step.more; ++other) add_deps(task, s, other->command);
    if (step.after >= 0 && std::find(task.deps.begin(), task.deps.end(), step.after) == task.deps.end()) {
      task.deps.push_back(step.after);
      ++s.deps;
      s.follows = step.told ? 0 : 1;
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
    if (stamped(c.src)) s.stamped = kStampedSource;
    if (stamped(c.dst)) s.stamped = kStampedTarget;
    s.by_lines = form == kByLines ? 1 : 0;
    s.first_copy = static_cast<std::int32_t>(task.copies.size());
    add_copies(task, c, round, form);
    s.copies = static_cast<std::int32_t>(task.copies.size()) - s.first_copy;
  }

  // A step of several operands, of which `s` has the first one, and a step for each of the others, which is not dealt
  // out.
  void add_operands(TaskDraft& task, GpuStep& s, const LaneStep& step, std::int64_t form) {
    const Command& last = plan_.commands[static_cast<std::size_t>(step.told_as)];
    s.begins = s.verb == Verb::copy ? 1 : 0;
    s.verb = Verb::reduce;
    s.dtype = last.dtype;
    s.op = last.op;
    s.joined = static_cast<std::int8_t>(step.more);
    if (form > 0) form = size_of(last.dtype);
    task.steps.push_back(s);
    const std::int64_t rows = task.rows;
    const std::int64_t lines = task.lines;
    for (const LaneStep* other = &step + 1; other <= &step + step.more; ++other) {
      GpuStep operand;
      operand.verb = Verb::reduce;
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

  bool stamped(std::int32_t buffer) const { return in_.where[static_cast<std::size_t>(buffer)].stamped; }

  // Whether a command signals before anything but signals in its lane. Then it says only that earlier work of the
  // stream has ended and is visible. A thread that does nothing else can do it.
  bool tells_first(std::size_t command) const {
    const Command& c = plan_.commands[command];
    if (c.verb != Verb::signal || c.dep_count > 0) return false;
    std::size_t i = command;
    while (i > 0 && plan_.commands[i - 1].lane == c.lane && plan_.commands[i - 1].verb == Verb::signal) --i;
    return i == 0 || plan_.commands[i - 1].lane != c.lane;
  }

  // Whether several blocks may run the lane and add their shares to its signals.
  bool may_share(const Lane& lane) const {
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Command& c = plan_.commands[i];
      if (c.verb != Verb::signal || stamped(c.dst) || tells_first(i)) continue;
      if (!atomics_ || plan_.buffers[static_cast<std::size_t>(c.dst)].per_epoch > 1) return false;
    }
    return true;
  }

  // Factor by which tasks with stamped lines may have more blocks than they are worth, if blocks are left over: an SM
  // with little work is done sooner. Other tasks get no more blocks, because every block has to add a share to their
  // signals.
  static std::int64_t spread_of(const std::vector<TaskDraft>& tasks, std::int64_t left) {
    std::int64_t sum = 0;
    for (const TaskDraft& task : tasks) sum += task.lines > 0 ? task.blocks() : 0;
    return 1 + (sum > 0 ? std::clamp<std::int64_t>(left / sum, 0, kMostSpread - 1) : 0);
  }

  // Gives blocks to the tasks of a kind, one each and then up to `room` in all. Each further block goes to the task
  // that would end last without it, unless it has as many as it is worth.
  static void give(std::vector<TaskDraft>& tasks, bool staging, std::int64_t room, std::vector<std::int64_t>& blocks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].staging == staging) room -= blocks[i] = 1;
    }
    for (; room > 0; --room) {
      std::size_t last = tasks.size();
      double latest = -1;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].staging != staging || blocks[i] == tasks[i].blocks()) continue;
        if (const double time = tasks[i].time(blocks[i]); time > latest) {
          last = i;
          latest = time;
        }
      }
      if (last == tasks.size()) return;
      ++blocks[last];
    }
  }

  // Decides how many thread blocks each task has. Staging tasks keep their blocks: the way to the host takes longer
  // than copying within the GPUs beside it.
  void deal_out(std::vector<TaskDraft>& tasks, int parts) {
    if (tasks.size() > kGpuTasks) {
      throw Error(fmt::format("rank {}: {}: {} lanes move data; one operation on GPU memory takes at most {}",
                              plan_.rank, plan_.operation, tasks.size(), kGpuTasks - 1));
    }
    if (tasks[0].ends.size() > kGpuThreads) {
      throw Error(
          fmt::format("rank {}: {}: {} threads would tell other ranks or wait for them; one operation on GPU "
                      "memory takes at most {}",
                      plan_.rank, plan_.operation, tasks[0].ends.size(), kGpuThreads));
    }
    std::int64_t sum[2] = {};  // of other tasks, of staging tasks
    std::int64_t count[2] = {};
    for (const TaskDraft& task : tasks) {
      sum[task.staging ? 1 : 0] += task.blocks();
      ++count[task.staging ? 1 : 0];
    }
    std::int64_t room[2] = {sum[0], sum[1]};
    if (sum[0] + sum[1] > most_) {
      // What others need at least is theirs: all together have more than `most_` only if each has one.
      const std::int64_t left = std::max(count[1], most_ - count[0]);
      room[1] = std::max(count[1], std::min({sum[1], left, sum[0] > 0 ? (most_ + 1) / 2 : std::int64_t{most_}}));
      room[0] = std::min(sum[0], most_ - room[1]);
    }
    std::vector<std::int64_t> blocks_of(tasks.size());
    give(tasks, false, room[0], blocks_of);
    give(tasks, true, room[1], blocks_of);
    const std::int64_t spread = spread_of(tasks, most_ - sum[0] - sum[1]);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      TaskDraft& task = tasks[i];
      const std::int64_t blocks =
          task.lines == 0 ? blocks_of[i] : std::min({task.lines, blocks_of[i] * spread, task.most});
      task.cut(blocks);
      GpuTask out;
      out.offset = static_cast<std::uint32_t>(out_.bytes.size());
      out.first_block = out_.blocks[parts];
      task.write(out_.bytes);
      out.bytes = static_cast<std::uint32_t>(out_.bytes.size()) - out.offset;
      out_.blocks[parts] += static_cast<int>(blocks);
      out_.tasks[parts].push_back(out);
    }
    out_.rounds[parts] = {{0, static_cast<std::int32_t>(out_.tasks[parts].size()), out_.blocks[parts]}};
  }

  const Program& in_;
  const Plan& plan_;
  int most_;
  bool atomics_;
  int warps_;  // of a block
  const ThreadChannels& carried_;
  bool relays_ = false;                   // commands other than reductions depend on others: what arrives is sent on
  std::vector<bool> awaited_;             // a command depends on it
  std::vector<bool> asked_;               // messages for which the kernel asks a thread of the process
  std::vector<bool> late_;                // does not belong to the start
  std::vector<std::int32_t> told_after_;  // signals that are given when this put of a stream has ended; -1: others
  std::vector<std::vector<std::int32_t>> deps_;
  std::vector<Lane> lanes_;
  GpuProgram out_;
};

}  // namespace

GpuProgram lower(const Program& program, int most_blocks, bool atomics, int warps, const ThreadChannels& carried) {
  return Lowering(program, most_blocks, atomics, warps, carried).run();
}

std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target) {
  const Command& c = plan.commands[static_cast<std::size_t>(command)];
  const std::string what =
      c.verb == Verb::wait ? plan.buffers[static_cast<std::size_t>(c.src)].label() : std::string(to_string(c.verb));
  const std::string dead = runtime.liveness().failure(runtime.everyone());
  return fmt::format("rank {}: {}: epoch {} did not end: the GPU waited for #{} {} with rank {} (at {}, needs {}){}",
                     plan.rank, plan.operation, epoch, command, what, c.peer, value / kSignal, target / kSignal,
                     dead.empty() ? fmt::format(" for {} s", runtime.deadline) : "; " + dead);
}

}  // namespace tasuki
