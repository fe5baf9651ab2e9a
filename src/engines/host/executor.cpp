// Executor: see executor.hpp.
#include "engines/host/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "layout/nest_loop.hpp"

namespace tasuki {

std::int64_t Program::bytes() const {
  return plan.memory() +
         static_cast<std::int64_t>(where.size() * sizeof(Located) + functions.size() * sizeof(CopyFunction) +
                                   first_function.size() * sizeof(std::int32_t) + channels.size() * sizeof(Channel));
}

// Within a host MPI copies a long message in the call that posts its receive, if the send has started. A send that this
// rank starts after that copy keeps its receiver waiting for as long.
Executor::Pass Executor::pass_of(const Command& c) {
  constexpr std::int64_t kLong = 16 << 10;  // bytes, as Constants::message_read; shorter messages are eager
  if (c.verb == Verb::signal) return Pass::signals;
  if (c.verb == Verb::recv) return c.bytes > kLong ? Pass::receives : Pass::signals;
  return c.verb == Verb::send && c.bytes > kLong ? Pass::sends : Pass::everything;
}

Executor::Executor(Program program) : program_(std::move(program)), recorder_(Recorder::open(program_.plan)) {
  const Plan& plan = program_.plan;
  std::vector<bool> awaited(plan.commands.size(), false);
  for (const auto dep : plan.deps) awaited[static_cast<std::size_t>(dep)] = true;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& c = plan.commands[i];
    Step s;
    s.verb = c.verb;
    s.pass = pass_of(c);
    if (s.pass == Pass::sends || s.pass == Pass::receives) long_messages_ = true;
    s.credit = c.credit;
    s.awaited = awaited[i];
    s.command = static_cast<std::int32_t>(i);
    s.src = c.src;
    s.dst = c.dst;
    s.copies = plan.copies.data() + c.first_copy;
    s.own = c.verb == Verb::reduce && c.op == ReduceOp::own;
    s.functions = program_.functions.data() + program_.first_function[i];
    s.copy_count = c.copy_count;
    s.src_step = c.src_step;
    s.dst_step = c.dst_step;
    s.first_dep = c.first_dep;
    s.dep_count = c.dep_count;
    if (c.loop >= 0) {
      s.rounds = plan.loops[static_cast<std::size_t>(c.loop)].count;
      const bool last = i + 1 == plan.commands.size() || plan.commands[i + 1].loop != c.loop;
      if (last) {
        std::size_t first = i;
        while (first > 0 && plan.commands[first - 1].loop == c.loop) --first;
        s.loop_first = static_cast<std::int32_t>(first);
      }
    }
    if (c.verb == Verb::signal || c.verb == Verb::wait) {
      const auto buffer = static_cast<std::size_t>(c.verb == Verb::signal ? c.dst : c.src);
      s.counter = reinterpret_cast<std::atomic<std::uint64_t>*>(program_.where[buffer].base);
      s.per_epoch = static_cast<std::uint64_t>(plan.buffers[buffer].per_epoch);
      s.index = static_cast<std::uint64_t>(c.index);
      s.lag = static_cast<std::uint64_t>(c.lag);
    }
    s.channel = program_.channels[i].host.get();
    s.channel_buffer = c.verb == Verb::send ? c.src : c.dst;
    if (lanes_.empty() || plan.commands[static_cast<std::size_t>(lanes_.back().first)].lane != c.lane) {
      lanes_.push_back({s.command, s.command, s.command, 0, false, 0, true});
    }
    lanes_.back().last = s.command + 1;
    if (s.channel != nullptr || (s.verb != Verb::copy && s.verb != Verb::reduce)) lanes_.back().within = false;
    steps_.push_back(s);
  }
  time_puts();
  open_.resize(lanes_.size());
  ended_.assign(plan.commands.size(), 0);
  base_.resize(program_.where.size());
  first_.assign(program_.where.size(), 0);
  copy_.assign(program_.where.size(), 0);
  for (std::size_t b = 0; b < base_.size(); ++b) {
    base_[b] = program_.where[b].base;
    if (program_.where[b].copies > 1) changing_.push_back(static_cast<std::int32_t>(b));
  }
}

// Puts of long blocks into another rank's memory.
void Executor::time_puts() {
  const Plan& plan = program_.plan;
  const auto timed = [&](const Step& step) {
    const Command& c = plan.commands[static_cast<std::size_t>(step.command)];
    return c.verb == Verb::put && step.channel == nullptr && step.functions != nullptr && c.peer != plan.rank &&
           c.bytes >= Stores::kLeast &&
           std::all_of(step.copies, step.copies + step.copy_count, [](const StridedCopy& copy) {
             return select_copy(copy, CopyHint::streaming) != select_copy(copy);
           });
  };
  for (Step& step : steps_) {
    // What is so large that it is stored past the caches anyway, is.
    if (!timed(step) || step.functions[0] == select_copy(step.copies[0], CopyHint::streaming)) continue;
    step.stores = &stores_[plan.commands[static_cast<std::size_t>(step.command)].peer];
    for (std::int32_t k = 0; k < step.copy_count; ++k)
      past_caches_.push_back(select_copy(step.copies[k], CopyHint::streaming));
  }
  std::size_t at = 0;
  for (Step& step : steps_) {
    if (step.stores == nullptr) continue;
    step.past_caches = past_caches_.data() + at;
    at += static_cast<std::size_t>(step.copy_count);
  }
}

void Executor::put(const Step& step, const std::byte* src, std::byte* dst) const {
  using Clock = std::chrono::steady_clock;
  const bool past_caches = step.stores->past_caches();
  const CopyFunction* const functions = past_caches ? step.past_caches : step.functions;
  const Clock::time_point begin = Clock::now();
  for (std::int32_t k = 0; k < step.copy_count; ++k) functions[k](step.copies[k], src, dst);
  const std::chrono::nanoseconds took = Clock::now() - begin;
  step.stores->took(past_caches, program_.plan.commands[static_cast<std::size_t>(step.command)].bytes, took.count());
}

void Executor::keep_times() {
  if (recorder_ == nullptr) recorder_ = Recorder::separate();
  recorder_->keep(program_.plan.commands.size());
}

std::int64_t Executor::memory() const {
  return program_.bytes() +
         static_cast<std::int64_t>(steps_.size() * sizeof(Step) + lanes_.size() * sizeof(RunningLane) +
                                   ended_.size() * sizeof(std::uint64_t) + base_.size() * sizeof(std::byte*));
}

int Executor::copy_of(std::size_t buffer) const {
  const Located& where = program_.where[buffer];
  if (where.copies == 1) return 0;
  if (!where.takes_turns) return where.current != nullptr ? *where.current : 0;
  const auto first = static_cast<std::uint64_t>(first_[buffer]);
  return static_cast<int>((first + epoch_ - 1) % static_cast<std::uint64_t>(where.copies));
}

void Executor::settle_first() {
  if (first_known_) return;
  first_known_ = true;
  for (const auto b : changing_) {
    const auto i = static_cast<std::size_t>(b);
    if (program_.where[i].current != nullptr) first_[i] = *program_.where[i].current;
  }
}

void Executor::begin() {
  ++epoch_;
  settle_first();
  for (const auto b : changing_) {
    const auto i = static_cast<std::size_t>(b);
    const Located& where = program_.where[i];
    copy_[i] = copy_of(i);
    base_[i] = where.copy(copy_[i]);
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    RunningLane& lane = lanes_[i];
    lane.at = lane.first;
    lane.round = 0;
    lane.running = false;
    lane.begun = 0;
    open_[i] = static_cast<std::int32_t>(i);
  }
  open_count_ = lanes_.size();
  announced_ = false;
}

bool Executor::progress() {
  if (!announced_) {
    announced_ = true;
    for (RunningLane& lane : lanes_) run(lane, Pass::signals);
    for (const Pass pass : {Pass::sends, Pass::receives})
      for (std::size_t i = 0; long_messages_ && i < lanes_.size(); ++i) run(lanes_[i], pass);
  }
  std::size_t left = 0;
  handed_over_ = false;
  for (std::size_t i = 0; i < open_count_; ++i) {
    RunningLane& lane = lanes_[static_cast<std::size_t>(open_[i])];
    if ((lane.within && handed_over_) || !run(lane, Pass::everything)) open_[left++] = open_[i];
  }
  open_count_ = left;
  return left == 0;
}

std::uint64_t Executor::target(const Step& step, std::int64_t round) const {
  std::uint64_t epoch = epoch_;
  if (step.verb == Verb::wait) {
    if (epoch > step.lag) {
      epoch -= step.lag;
    } else if (step.credit) {
      return 0;
    } else {
      epoch = 1;
    }
  }
  return (epoch - 1) * step.per_epoch + step.index + static_cast<std::uint64_t>(round) + 1;
}

void Executor::combine(const Step& step, const std::byte* src, std::byte* dst) const {
  const std::int64_t element = size_of(program_.plan.commands[static_cast<std::size_t>(step.command)].dtype);
  for (std::int32_t k = 0; k < step.copy_count; ++k) {
    const StridedCopy& copy = step.copies[k];
    for_each_offset(copy, [&](std::int64_t from, std::int64_t to) {
      (*program_.combine)(src + from, dst + to, copy.block / element);
    });
  }
}

// True when the step has ended, false if it must be tried again later.
bool Executor::run_step(Step& step, RunningLane& lane) {
  if (step.channel != nullptr) {
    if (!lane.running) {
      step.channel->start(lane.round, copy_[static_cast<std::size_t>(step.channel_buffer)]);
      lane.running = true;
    }
    if (!step.channel->test()) return false;
    lane.running = false;
    return true;
  }
  switch (step.verb) {
    case Verb::copy:
    case Verb::put:
    case Verb::reduce: {
      const std::byte* src = base_[static_cast<std::size_t>(step.src)] + lane.round * step.src_step;
      std::byte* dst = base_[static_cast<std::size_t>(step.dst)] + lane.round * step.dst_step;
      if (step.own) [[unlikely]] {
        combine(step, src, dst);
        return true;
      }
      if (step.stores != nullptr) {
        put(step, src, dst);
        return true;
      }
      for (std::int32_t k = 0; k < step.copy_count; ++k) step.functions[k](step.copies[k], src, dst);
      return true;
    }
    case Verb::signal:
      // A counter has one writer, so a store is enough. It releases everything that this lane has stored.
      step.counter->store(target(step, lane.round), std::memory_order_release);
      return true;
    case Verb::wait:
      if (step.seen >= target(step, lane.round)) return true;
      step.seen = step.counter->load(std::memory_order_acquire);
      return step.seen >= target(step, lane.round);
    case Verb::send:
    case Verb::recv:
      break;  // these always have a channel
  }
  return true;
}

bool Executor::run(RunningLane& lane, Pass pass) {
  while (lane.at < lane.last) {
    Step& step = steps_[static_cast<std::size_t>(lane.at)];
    if (step.pass > pass) return false;
    for (std::int32_t d = step.first_dep; d < step.first_dep + step.dep_count; ++d) {
      const auto dep = program_.plan.deps[static_cast<std::size_t>(d)];
      if (ended_[static_cast<std::size_t>(dep)] != epoch_) return false;
    }
    if (recorder_ && lane.begun == 0) lane.begun = Recorder::now();
    if (!run_step(step, lane)) return false;
    if (recorder_) recorder_->record(Traced::command, epoch_, std::exchange(lane.begun, 0), step.command, lane.round);
    // What depends on a command inside a loop waits for the command's last round.
    if (step.awaited && lane.round + 1 == step.rounds) ended_[static_cast<std::size_t>(step.command)] = epoch_;
    if (step.loop_first >= 0) {
      if (++lane.round < step.rounds) {
        lane.at = step.loop_first;
        continue;
      }
      lane.round = 0;
    }
    ++lane.at;
    // After handing over a slice a lane lets other lanes run, which work on the same cache lines. Those that only copy
    // within the rank wait until nothing more can be handed over: other ranks wait for that.
    if (step.verb == Verb::signal && step.rounds == 1 && pass == Pass::everything && lane.at < lane.last) {
      handed_over_ = true;
      return false;
    }
  }
  return true;
}

std::string Executor::blocked() const {
  const Plan& plan = program_.plan;
  std::string text;
  for (std::size_t i = 0; i < open_count_; ++i) {
    const RunningLane& lane = lanes_[static_cast<std::size_t>(open_[i])];
    if (lane.at >= lane.last) continue;
    const Step& step = steps_[static_cast<std::size_t>(lane.at)];
    const Command& c = plan.commands[static_cast<std::size_t>(lane.at)];
    if (!text.empty()) text += ", ";
    text += fmt::format("#{} {}", lane.at, to_string(c.verb));
    if (c.verb == Verb::wait) {
      text += fmt::format(" {} (at {}, needs {})", plan.buffers[static_cast<std::size_t>(c.src)].label(),
                          step.counter->load(std::memory_order_relaxed), target(step, lane.round));
    }
    if (c.peer >= 0) text += fmt::format(" with rank {}", c.peer);
  }
  return text;
}

void Executor::cancel() {
  for (std::size_t i = 0; i < open_count_; ++i) {
    RunningLane& lane = lanes_[static_cast<std::size_t>(open_[i])];
    if (lane.at < lane.last && lane.running) steps_[static_cast<std::size_t>(lane.at)].channel->cancel();
    lane.running = false;
  }
}

}  // namespace tasuki
