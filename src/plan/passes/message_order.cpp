// Pass `message order`: see pass.hpp.
#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

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

// Each kind of command of a lane gets a lane of its own. `staging`: moves that pack or unpack messages in the
// background, in a lane that has messages of a stream, too. They may have to wait for another rank's wait; a kernel
// that lies beside messages of a stream must not.
enum class LaneKind { move, message, staging };

// The kind of each command of a lane; empty if the lane stays as it is.
std::vector<LaneKind> lane_kinds(const Plan& plan, const CommandRange& lane, const InBackground& in_background) {
  bool moves = false;
  bool behind = false;
  bool others = false;  // messages that are not in the background
  for (std::size_t i = lane.begin; i < lane.end; ++i) {
    const Command& c = plan.commands[i];
    if (c.loop >= 0 || (!is_message(c) && !is_move(c))) return {};
    moves = moves || is_move(c);
    behind = behind || goes_behind(c, in_background);
    others = others || (is_message(c) && !goes_behind(c, in_background));
  }
  if (!moves || !behind) return {};
  std::vector<LaneKind> kinds;
  for (std::size_t i = lane.begin; i < lane.end; ++i) {
    const Command& c = plan.commands[i];
    const bool apart = others && stages_messages(plan, c);
    kinds.push_back(goes_behind(c, in_background) ? LaneKind::message : apart ? LaneKind::staging : LaneKind::move);
  }
  return kinds;
}

// For each command the earlier ones of its lane, of other kinds, that must have ended before it.
using Before = std::map<std::size_t, std::vector<std::size_t>>;

void add_order(const Plan& plan, const CommandRange& lane, std::span<const LaneKind> kinds, Before& before) {
  std::vector<Access> touched;
  for (std::size_t i = lane.begin; i < lane.end; ++i) touched.push_back(access(plan, plan.commands[i]));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (const LaneKind kind : {LaneKind::move, LaneKind::message, LaneKind::staging}) {
      if (kind == kinds[i]) continue;
      for (std::size_t other = i; other-- > 0;) {
        if (kinds[other] != kind || !ordered(touched[other], touched[i])) continue;
        before[lane.begin + i].push_back(lane.begin + other);
        if (kind != LaneKind::message) break;  // moves of a lane end in order, so the last one is enough
      }
    }
  }
}

}  // namespace

bool stages_messages(const Plan& plan, const Command& command) {
  const auto pinned = [&](std::int32_t b) {
    return b >= 0 && plan.buffers[static_cast<std::size_t>(b)].home == Home::pinned;
  };
  return is_move(command) && (pinned(command.src) || pinned(command.dst));
}

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
    const std::vector<LaneKind> kinds = lane_kinds(plan, lane, in_background);
    if (kinds.empty()) {
      take(lane, [](std::size_t) { return true; });
      continue;
    }
    changed = true;
    add_order(plan, lane, kinds, before);
    // In the order in which they begin: packing before sending, receiving before unpacking.
    std::vector<LaneKind> left{kinds};
    while (!left.empty()) {
      const LaneKind kind = left.front();
      take(lane, [&](std::size_t i) { return kinds[i - lane.begin] == kind; });
      std::erase(left, kind);
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
