// Verifier, stage 2: execution. Signals advance counters, messages are rendezvous, and vector clocks record what
// happened before what.
#include "plan/verify/run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/label.hpp"
#include "plan/look.hpp"

namespace tasuki::detail {
namespace {

constexpr std::int64_t kCommandsALook = 1 << 12;

void join(Clock& clock, const Clock& with) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], with[i]);
}

}  // namespace

Runner::Runner(const World& world, Memory& memory, std::int32_t epochs)
    : world_(world),
      memory_(memory),
      epochs_(epochs),
      states_(world.lanes.size()),
      ranks_(world.plans.size()),
      counters_(world.areas.size()) {
  for (const LaneRange& lane : world.lanes) {
    std::int32_t moved = lane.end;
    const auto moves = [&](const Command& c) {
      return c.verb == Verb::copy || c.verb == Verb::put || c.verb == Verb::reduce;
    };
    while (moved > lane.begin && !moves(world.plans[lane.rank].commands[moved - 1])) --moved;
    moved_.push_back(moved);
  }
  // Users have clock entries after those of all lanes.
  const Clock zero(world.lanes.size() + world.plans.size(), 0);
  for (auto& state : states_) state.clock = zero;
  std::int32_t lane = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankState& rank = ranks_[r];
    rank.user = zero;
    rank.ended.assign(world.plans[r].commands.size(), 0);
    for (const std::int32_t dep : world.plans[r].deps) rank.end_of.try_emplace(dep, zero);
    rank.lane_begin = lane;
    while (lane < std::ssize(world.lanes) && world.lanes[lane].rank == static_cast<std::int32_t>(r)) ++lane;
    rank.lane_end = lane;
  }
}

/// Ranks in the earliest epoch run first. So an access that a rank makes too early is reported as such, and not as
/// another rank's access that came late.
void Runner::run() {
  for (std::int32_t r = 0; r < std::ssize(ranks_); ++r) wake(r);
  while (!awake_.empty()) {
    const std::int32_t rank = awake_.begin()->second;
    awake_.erase(awake_.begin());
    go_on(rank);
  }
}

void Runner::wake(std::int32_t rank) {
  if (ranks_[rank].epoch <= epochs_) awake_.emplace(ranks_[rank].epoch, rank);
}

/// Runs a rank until its lanes are blocked or its epoch has ended.
void Runner::go_on(std::int32_t rank) {
  RankState& state = ranks_[rank];
  if (!state.running) begin_epoch(rank);
  for (bool progress = true; progress;) {
    progress = false;
    bool all_done = true;
    for (std::int32_t lane = state.lane_begin; lane < state.lane_end; ++lane) {
      while (!done(lane) && step(lane)) progress = true;
      all_done = all_done && done(lane);
    }
    if (all_done) return end_epoch(rank);
  }
}

void Runner::begin_epoch(std::int32_t rank) {
  RankState& state = ranks_[rank];
  state.running = true;
  const auto user = static_cast<std::uint32_t>(world_.lanes.size()) + static_cast<std::uint32_t>(rank);
  const std::uint32_t event = memory_.record({rank, Event::kUserWrites, state.epoch, user, ++state.user[user]});
  memory_.user_writes(event, state.user);
  for (std::int32_t lane = state.lane_begin; lane < state.lane_end; ++lane) {
    states_[lane].command = world_.lanes[lane].begin;
    states_[lane].chunk = 0;
    states_[lane].clock = state.user;
  }
}

void Runner::end_epoch(std::int32_t rank) {
  RankState& state = ranks_[rank];
  for (std::int32_t lane = state.lane_begin; lane < state.lane_end; ++lane) join(state.user, states_[lane].clock);
  const auto user = static_cast<std::uint32_t>(world_.lanes.size()) + static_cast<std::uint32_t>(rank);
  const std::uint32_t event = memory_.record({rank, Event::kUserReads, state.epoch, user, ++state.user[user]});
  memory_.user_reads(event, state.user);
  awake_.erase({state.epoch, rank});
  ++state.epoch;
  state.running = false;
  wake(rank);
}

/// Runs the lane's current command if nothing blocks it; false if something does.
bool Runner::step(std::int32_t lane) {
  LaneState& state = states_[lane];
  if (!state.posted && (stage_before(lane) >= 0 || !dependencies_ended(lane))) return false;
  switch (current(lane).verb) {
    case Verb::wait:
      if (!wait(lane)) return false;
      break;
    case Verb::signal:
      signal(lane);
      break;
    case Verb::send:
    case Verb::recv:
      if (!state.posted) post(lane);
      if (!state.matched) return false;
      break;
    case Verb::copy:
    case Verb::put:
    case Verb::reduce:
      move(lane);
      break;
  }
  advance(lane);
  return true;
}

// Signals at the beginning of a lane and waits at its end are done by others than those who move.
std::int32_t Runner::stage_before(std::int32_t lane) const {
  const Command& command = current(lane);
  if (command.stage == 0 || command.verb == Verb::signal || states_[lane].command >= moved_[lane]) return -1;
  const RankState& rank = ranks_[world_.lanes[lane].rank];
  for (std::int32_t other = rank.lane_begin; other < rank.lane_end; ++other) {
    if (states_[other].command >= moved_[other]) continue;
    if (current(other).stage < command.stage) return other;
  }
  return -1;
}

bool Runner::dependencies_ended(std::int32_t lane) {
  const Command& command = current(lane);
  RankState& rank = ranks_[world_.lanes[lane].rank];
  const auto deps = std::span(plan_of(lane).deps).subspan(command.first_dep, command.dep_count);
  if (!std::ranges::all_of(deps, [&](std::int32_t dep) { return rank.ended[dep] == rank.epoch; })) return false;
  for (const std::int32_t dep : deps) join(states_[lane].clock, rank.end_of.at(dep));
  return true;
}

/// The value that the lane's current wait waits for (0: none), or that its current signal sets.
std::int64_t Runner::counter_value(std::int32_t lane) const {
  const Command& command = current(lane);
  const Buffer& counter = plan_of(lane).buffers[command.verb == Verb::wait ? command.src : command.dst];
  std::int64_t epoch = std::int64_t{ranks_[world_.lanes[lane].rank].epoch} - command.lag;
  if (epoch < 1 && command.credit) return 0;
  epoch = std::max<std::int64_t>(epoch, 1);
  return (epoch - 1) * counter.per_epoch + command.index + states_[lane].chunk + 1;
}

bool Runner::wait(std::int32_t lane) {
  const std::int64_t value = counter_value(lane);
  if (value == 0) return true;
  const Moves& moves = world_.commands[world_.lanes[lane].rank][states_[lane].command];
  const auto& history = counters_[moves.src].history;
  const auto it = std::ranges::lower_bound(history, value, {}, &std::pair<std::int64_t, Clock>::first);
  if (it == history.end()) return false;
  join(states_[lane].clock, it->second);
  return true;
}

void Runner::signal(std::int32_t lane) {
  const std::int32_t area = world_.commands[world_.lanes[lane].rank][states_[lane].command].dst;
  Counter& counter = counters_[area];
  const std::int64_t value = counter_value(lane);
  record(lane);
  check_order(lane, counter.last, fmt::format("signal {}", label(world_.areas[area].buffer)));
  if (value != counter.value + 1) {
    problems_.push_back(
        fmt::format("{} sets {} to {} when it stands at {}: the indices of its signals are not in order", name(lane),
                    label(world_.areas[area].buffer), value, counter.value));
  }
  if (value <= counter.value) return;
  counter.value = value;
  counter.history.emplace_back(value, states_[lane].clock);
  wake(world_.areas[area].buffer.rank);
}

/// Complains unless the lane's current command is ordered after `last`, the previous command of the same kind.
void Runner::check_order(std::int32_t lane, Tick& last, const std::string& what) {
  const LaneState& state = states_[lane];
  if (last.command >= 0 && state.clock[last.lane] < last.tick) {
    problems_.push_back(fmt::format("{} and {} both {} and nothing orders the two: which comes first is chance",
                                    label(world_.plans[last.rank], last.command), name(lane), what));
  }
  const auto own = static_cast<std::uint32_t>(lane);
  last = {world_.lanes[lane].rank, state.command, own, state.clock[own]};
}

/// Ticks the lane's clock for its current command and makes the command known to the memory.
std::uint32_t Runner::record(std::int32_t lane) {
  LaneState& state = states_[lane];
  const auto own = static_cast<std::uint32_t>(lane);
  const std::int32_t rank = world_.lanes[lane].rank;
  state.event = memory_.record({rank, state.command, ranks_[rank].epoch, own, ++state.clock[own]});
  return state.event;
}

void Runner::move(std::int32_t lane) {
  const LaneState& state = states_[lane];
  const Moves& moves = world_.commands[world_.lanes[lane].rank][state.command];
  const std::uint32_t event = record(lane);
  const auto contents = memory_.take(event, state.clock, moves.src, moves.chunk(state.chunk));
  const Command& command = current(lane);
  const Kind kind{command.op, command.dtype, 0};
  memory_.store(event, state.clock, moves.dst, moves.chunk(state.chunk), contents,
                command.verb == Verb::reduce ? &kind : nullptr);
}

void Runner::post(std::int32_t lane) {
  const Command& command = current(lane);
  const std::int32_t rank = world_.lanes[lane].rank;
  const bool sends = command.verb == Verb::send;
  Channel& channel = channels_[{sends ? rank : command.peer, sends ? command.peer : rank, command.tag}];
  record(lane);
  states_[lane].posted = true;
  check_order(lane, sends ? channel.last_send : channel.last_recv,
              fmt::format("{} rank {} with tag {}", sends ? "send to" : "receive from", command.peer, command.tag));
  (sends ? channel.sends : channel.recvs).push_back(lane);
  meet(channel);
}

void Runner::meet(Channel& channel) {
  if (channel.sends.empty() || channel.recvs.empty()) return;
  const std::int32_t from = channel.sends.front(), to = channel.recvs.front();
  channel.sends.pop_front();
  channel.recvs.pop_front();
  const std::int64_t sent = current(from).bytes, awaited_bytes = current(to).bytes;
  if (sent != awaited_bytes) {
    problems_.push_back(fmt::format("{} has {} bytes, but meets {} of {} bytes (tag {})", name(from), sent, name(to),
                                    awaited_bytes, current(to).tag));
  }
  LaneState &sender = states_[from], &receiver = states_[to];
  const Moves& source = world_.commands[world_.lanes[from].rank][sender.command];
  const Moves& target = world_.commands[world_.lanes[to].rank][receiver.command];
  // The receiver now knows what the sender knew. The sender does not learn what the receiver knew, because small
  // messages leave before they are received.
  join(receiver.clock, sender.clock);
  const auto contents = memory_.take(sender.event, sender.clock, source.src, source.chunk(sender.chunk));
  memory_.store(receiver.event, receiver.clock, target.dst, target.chunk(receiver.chunk), contents, nullptr);
  sender.matched = receiver.matched = true;
  wake(world_.lanes[from].rank);
  wake(world_.lanes[to].rank);
}

/// Ends the lane's current command instance and goes to the next one of the loop or of the lane.
void Runner::advance(std::int32_t lane) {
  LaneState& state = states_[lane];
  const Plan& plan = plan_of(lane);
  const std::int32_t loop = current(lane).loop;
  RankState& rank = ranks_[world_.lanes[lane].rank];
  if (++executed_ % kCommandsALook == 0) look();
  state.posted = state.matched = false;
  const bool last_chunk = loop < 0 || state.chunk + 1 == plan.loops[loop].count;
  if (last_chunk) {
    rank.ended[state.command] = rank.epoch;
    const auto it = rank.end_of.find(state.command);
    if (it != rank.end_of.end()) it->second = state.clock;
  }
  const std::int32_t next = state.command + 1;
  if (loop >= 0 && next < world_.lanes[lane].end && plan.commands[next].loop == loop) {
    state.command = next;
  } else if (!last_chunk) {
    while (state.command > world_.lanes[lane].begin && plan.commands[state.command - 1].loop == loop) --state.command;
    ++state.chunk;
  } else {
    state.command = next;
    state.chunk = 0;
  }
}

std::string Runner::name(std::int32_t lane) const {
  return label(plan_of(lane), states_[lane].command);
}

std::vector<std::string> Runner::problems() const {
  std::vector<std::string> all = problems_;
  for (std::string& sentence : stuck()) all.push_back(std::move(sentence));
  return all;
}

}  // namespace tasuki::detail
