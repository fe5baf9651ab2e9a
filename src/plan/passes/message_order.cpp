// Pass `message order`: see pass.hpp.
#include <algorithm>
#include <map>
#include <utility>

#include "layout/cut.hpp"
#include "plan/passes/pass.hpp"

namespace tasuki {

namespace {

// What a command reads or writes of a buffer.
struct Touched {
  std::int32_t buffer = -1;
  ByteRange range;
  bool meets(const Touched& other) const { return buffer >= 0 && buffer == other.buffer && range.meets(other.range); }
};

struct Access {
  Touched read;
  Touched written;
};

bool is_message(const Command& c) {
  return c.verb == Verb::send || c.verb == Verb::recv;
}

bool is_move(const Command& c) {
  return c.verb == Verb::copy || c.verb == Verb::put || c.verb == Verb::reduce;
}

Access access(const Plan& plan, const Command& c) {
  Access all;
  if (is_message(c)) {
    const bool sends = c.verb == Verb::send;
    (sends ? all.read : all.written) = {sends ? c.src : c.dst, {c.offset, c.offset + c.bytes}};
    return all;
  }
  all.read.buffer = c.src;
  all.written.buffer = c.dst;
  for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
    const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
    all.read.range.include(read_range(copy));
    all.written.range.include(written_range(copy));
  }
  return all;
}

bool ordered(const Access& a, const Access& b) {
  return a.written.meets(b.written) || a.written.meets(b.read) || a.read.meets(b.written);
}

// The commands of a lane: [begin, end).
struct CommandRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<CommandRange> lanes_of(const Plan& plan) {
  std::vector<CommandRange> lanes;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    if (i == 0 || plan.commands[i].lane != plan.commands[i - 1].lane) lanes.push_back({i, i});
    lanes.back().end = i + 1;
  }
  return lanes;
}

using InBackground = std::vector<bool>;  // per path

// Whether the command is a message of a path that carries it in the background. Other messages stay with the moves: in
// a stream they come after what packs for them, and only what precedes them in their lane waits for that.
bool goes_behind(const Command& c, const InBackground& in_background) {
  return is_message(c) && in_background[static_cast<std::size_t>(c.path)];
}

bool to_be_split(const Plan& plan, const CommandRange& lane, const InBackground& in_background) {
  bool messages = false;
  bool moves = false;
  for (std::size_t i = lane.begin; i < lane.end; ++i) {
    const Command& c = plan.commands[i];
    if (c.loop >= 0 || (!is_message(c) && !is_move(c))) return false;
    messages = messages || goes_behind(c, in_background);
    moves = moves || is_move(c);
  }
  return messages && moves;
}

// For each command the earlier ones of its lane, of the other kind, that must have ended before it.
using Before = std::map<std::size_t, std::vector<std::size_t>>;

void add_order(const Plan& plan, const CommandRange& lane, const InBackground& in_background, Before& before) {
  std::vector<Access> touched;
  for (std::size_t i = lane.begin; i < lane.end; ++i) touched.push_back(access(plan, plan.commands[i]));
  for (std::size_t i = lane.begin; i < lane.end; ++i) {
    for (std::size_t other = i; other-- > lane.begin;) {
      const bool message = goes_behind(plan.commands[other], in_background);
      if (message == goes_behind(plan.commands[i], in_background)) continue;
      if (!ordered(touched[other - lane.begin], touched[i - lane.begin])) continue;
      before[i].push_back(other);
      if (!message) break;  // moves of a lane end in order, so the last one is enough
    }
  }
}

}  // namespace

bool message_order(Plan& plan, const InBackground& in_background) {
  if (std::find(in_background.begin(), in_background.end(), true) == in_background.end()) return false;
  std::vector<std::size_t> order;     // old indices in the new order
  std::vector<std::int32_t> lane_of;  // lane of each, in the new order
  std::int32_t next = 0;
  Before before;
  bool changed = false;
  const auto take = [&](const CommandRange& lane, auto&& wanted) {
    for (std::size_t i = lane.begin; i < lane.end; ++i) {
      if (!wanted(i)) continue;
      order.push_back(i);
      lane_of.push_back(next);
    }
    ++next;
  };
  for (const CommandRange& lane : lanes_of(plan)) {
    if (!to_be_split(plan, lane, in_background)) {
      take(lane, [](std::size_t) { return true; });
      continue;
    }
    changed = true;
    add_order(plan, lane, in_background, before);
    // The kind of command with which the lane begins comes first: packing before sending, receiving before unpacking.
    const bool first = goes_behind(plan.commands[lane.begin], in_background);
    for (const bool messages : {first, !first}) {
      take(lane, [&](std::size_t i) { return goes_behind(plan.commands[i], in_background) == messages; });
    }
  }
  if (!changed) return false;
  std::vector<std::int32_t> place(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = static_cast<std::int32_t>(at);
  std::vector<Command> commands;
  std::vector<std::int32_t> deps;
  for (std::size_t at = 0; at < order.size(); ++at) {
    Command c = plan.commands[order[at]];
    c.lane = lane_of[at];
    const auto first = static_cast<std::int32_t>(deps.size());
    for (std::int32_t d = c.first_dep; d < c.first_dep + c.dep_count; ++d)
      deps.push_back(place[static_cast<std::size_t>(plan.deps[static_cast<std::size_t>(d)])]);
    for (const std::size_t other : before[order[at]]) deps.push_back(place[other]);
    c.dep_count = static_cast<std::int32_t>(deps.size()) - first;
    c.first_dep = c.dep_count > 0 ? first : 0;
    commands.push_back(c);
  }
  plan.commands = std::move(commands);
  plan.deps = std::move(deps);
  return true;
}

}  // namespace tasuki
