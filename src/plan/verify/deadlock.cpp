// Verifier: when no lane can go on, finds who waits for whom. Every blocked lane needs a command of another blocked
// lane. Following these needs ends in a cycle, or at something that no lane will ever do.
#include <fmt/format.h>

#include <algorithm>

#include "plan/label.hpp"
#include "plan/verify/run.hpp"

namespace tasuki::detail {

std::vector<std::string> Runner::stuck() const {
  std::vector<std::string> sentences;
  std::vector<std::int32_t> walk_of(world_.lanes.size(), -1);
  for (std::int32_t start = 0; start < std::ssize(world_.lanes); ++start) {
    if (!ranks_[world_.lanes[start].rank].running || done(start) || walk_of[start] >= 0) continue;
    std::int32_t lane = start;
    while (walk_of[lane] < 0) {
      walk_of[lane] = start;
      const Need need = need_of(lane);
      if (!need.lane) {
        sentences.push_back(fmt::format("{} waits for ever in epoch {}: {}", name(lane),
                                        ranks_[world_.lanes[lane].rank].epoch, need.what));
        break;
      }
      lane = *need.lane;
      if (walk_of[lane] != start) continue;
      std::string cycle;
      const std::int32_t first = lane;
      do {
        const Need next = need_of(lane);
        cycle += fmt::format("{}{} needs {}", cycle.empty() ? "" : "; ", name(lane), next.what);
        if (next.what != name(*next.lane)) cycle += fmt::format(" behind {}", name(*next.lane));
        lane = *next.lane;
      } while (lane != first);
      sentences.push_back(
          fmt::format("deadlock in epoch {}: {}", ranks_[world_.lanes[first].rank].epoch, std::move(cycle)));
      break;
    }
  }
  return sentences;
}

Runner::Need Runner::need_of(std::int32_t lane) const {
  const std::int32_t r = world_.lanes[lane].rank;
  const Command& command = current(lane);
  if (!states_[lane].posted) {
    if (const std::int32_t other = stage_before(lane); other >= 0) return {other, name(other)};
    for (std::int32_t d = command.first_dep; d < command.first_dep + command.dep_count; ++d) {
      const std::int32_t dep = plan_of(lane).deps[d];
      if (ranks_[r].ended[dep] != ranks_[r].epoch) return behind(r, dep, ranks_[r].epoch);
    }
  }
  return command.verb == Verb::wait ? need_signal(lane) : need_message(lane);
}

Runner::Need Runner::need_signal(std::int32_t lane) const {
  const std::int32_t area = world_.commands[world_.lanes[lane].rank][states_[lane].command].src;
  const Buffer& counter = world_.areas[area].buffer;
  const std::int64_t value = counter_value(lane), index = (value - 1) % counter.per_epoch;
  const auto epoch = static_cast<std::int32_t>((value - 1) / counter.per_epoch + 1);
  for (std::int32_t r = 0; r < std::ssize(ranks_); ++r) {
    const Plan& plan = world_.plans[r];
    for (std::int32_t i = 0; i < std::ssize(plan.commands); ++i) {
      const Command& c = plan.commands[i];
      if (c.verb != Verb::signal || world_.commands[r][i].dst != area) continue;
      if (index < c.index || index >= c.index + chunks(plan, c)) continue;
      Need need = behind(r, i, epoch);
      if (need.lane) return need;
    }
  }
  return {std::nullopt, fmt::format("nobody brings {} from {} to {}", label(counter), counters_[area].value, value)};
}

Runner::Need Runner::need_message(std::int32_t lane) const {
  const std::int32_t r = world_.lanes[lane].rank;
  const Command& command = current(lane);
  const Verb other = command.verb == Verb::send ? Verb::recv : Verb::send;
  const Plan& peer = world_.plans[command.peer];
  for (std::int32_t i = 0; i < std::ssize(peer.commands); ++i) {
    const Command& c = peer.commands[i];
    if (c.verb != other || c.peer != r || c.tag != command.tag) continue;
    Need need = behind(command.peer, i, ranks_[r].epoch);
    if (need.lane) return need;
  }
  return {std::nullopt,
          fmt::format("rank {} has no {} left for it (tag {})", command.peer, to_string(other), command.tag)};
}

/// The lane that must advance before the command can run in `epoch`: its own, or any lane that has not ended the epoch
/// before.
Runner::Need Runner::behind(std::int32_t rank, std::int32_t command, std::int32_t epoch) const {
  const RankState& state = ranks_[rank];
  const std::string what = label(world_.plans[rank], command);
  if (state.epoch > epoch || state.epoch > epochs_) return {std::nullopt, what};
  for (std::int32_t lane = state.lane_begin; lane < state.lane_end; ++lane) {
    if (done(lane)) continue;
    const LaneRange& range = world_.lanes[lane];
    const bool ahead = command >= range.begin && command < range.end && state.ended[command] != state.epoch;
    if (state.epoch < epoch || ahead) return {lane, what};
  }
  return {std::nullopt, what};
}

}  // namespace tasuki::detail
