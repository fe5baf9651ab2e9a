#include "engines/gpu/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/passes/pass.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Whether one of two messages writes bytes that the other reads or writes.
bool touch_the_same(const Command& a, const Command& b) {
  const bool both_send = a.verb == Verb::send && b.verb == Verb::send;
  const auto buffer = [](const Command& c) { return c.verb == Verb::send ? c.src : c.dst; };
  return !both_send && buffer(a) == buffer(b) && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

GpuLanes::GpuLanes(const Program& program, const ThreadChannels& carried, bool signals_puts)
    : awaited(program.plan.commands.size(), false),
      deps(program.plan.commands.size()),
      signal_after(program.plan.commands.size(), -1),
      in_(program),
      plan_(program.plan),
      carried_(carried),
      late_(program.plan.commands.size(), false),
      held_(program.plan.commands.size(), false) {
  find_lanes();
  find_deps();
  in_line = !messages.empty() &&
            std::none_of(all.begin(), all.end(), [&](const GpuLane& lane) { return stands_alone(lane); });
  if (signals_puts) find_stream_signals();
  find_late();
  hold();
}

void GpuLanes::find_lanes() {
  for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
    const bool fresh = i == 0 || plan_.commands[i].lane != plan_.commands[i - 1].lane;
    if (fresh) {
      all.emplace_back();
      all.back().first = i;
      all.back().stage = plan_.commands[i].stage;
    }
    GpuLane& lane = all.back();
    lane.last = i + 1;
    lane.asks = lane.asks || asked(i);
    lane.stages = lane.stages || stages_messages(plan_, plan_.commands[i]);
    lane.streams = lane.streams || in_stream(i);
    if (in_stream(i)) messages.push_back(static_cast<std::int32_t>(i));
  }
}

void GpuLanes::find_deps() {
  for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
    const Command& c = plan_.commands[i];
    for (auto d = c.first_dep; d < c.first_dep + c.dep_count; ++d) {
      deps[i].push_back(end_of_stream(plan_.deps[static_cast<std::size_t>(d)]));
    }
    forwards = forwards || (c.dep_count > 0 && c.verb != Verb::reduce);
  }
  for (const GpuLane& lane : all)
    for (std::size_t i = arrives_from(lane); i < lane.last; ++i)
      sends_on = sends_on || plan_.commands[i].verb == Verb::put;
  for (const std::int32_t message : messages) {
    if (!deps[static_cast<std::size_t>(message)].empty()) wait_before(static_cast<std::size_t>(message));
  }
  for (const GpuLane& lane : all) {
    if (lane.asks) keep_order(lane);
    pass_deps_on(lane);
  }
  for (const auto& waits_for : deps) {
    for (const auto dep : waits_for) awaited[static_cast<std::size_t>(dep)] = true;
  }
}

const ThreadChannel* GpuLanes::thread_of(std::size_t command) const {
  return carried_.empty() ? in_.channels[command].thread.get() : carried_[command];
}

bool GpuLanes::signals_first(std::size_t command) const {
  const Command& c = plan_.commands[command];
  if (c.verb != Verb::signal || c.dep_count > 0) return false;
  std::size_t i = command;
  while (i > 0 && plan_.commands[i - 1].lane == c.lane && plan_.commands[i - 1].verb == Verb::signal) --i;
  return i == 0 || plan_.commands[i - 1].lane != c.lane;
}

// Whether the lane's message cannot lie between two kernels that serve all lanes. That is so if the message depends
// on something that arrives. It is also so for a put by the copy engine: it takes long to begin, and should do so
// while the first kernel serves other lanes.
bool GpuLanes::stands_alone(const GpuLane& lane) const {
  bool depends = false;
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    depends = depends || plan_.commands[i].dep_count > 0;
    const bool copies = plan_.commands[i].verb == Verb::put && all.size() > 1;
    if (in_stream(i) && (depends || copies)) return true;
  }
  return false;
}

// A lane is in order, but a thread of the process carries its messages while the lane proceeds. So a command that
// follows a message waits for the message, and a message waits for the commands that it follows. Messages need not
// wait for each other, because they are asked for in their order, unless they touch the same bytes. (If a lane moves
// data for its messages, the pass `message order` has already given the messages a lane of their own.)
void GpuLanes::keep_order(const GpuLane& lane) {
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    bool after_own = false;  // commands that the lane carries out itself end in order, so the last one is enough
    for (std::size_t before = i; before-- > lane.first;) {
      if (!asked(before) && (!asked(i) || after_own)) continue;
      if (asked(before) && asked(i) && !touch_the_same(plan_.commands[before], plan_.commands[i])) continue;
      after_own = after_own || !asked(before);
      deps[i].push_back(static_cast<std::int32_t>(before));
    }
  }
}

// Whether it is by what its commands depend on that they belong to the start or to the wait. Not so in lanes with
// messages of a stream, and in those that depend on no other lane and put, or do not wait.
bool GpuLanes::late_by_deps(const GpuLane& lane) const {
  if (lane.by_need() || lane.streams) return lane.by_need();
  const auto begin = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.first);
  const auto end = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.last);
  const bool puts = std::any_of(begin, end, [](const Command& c) { return c.verb == Verb::put; });
  const bool depends = std::any_of(begin, end, [](const Command& c) { return c.dep_count > 0; });
  return depends || (waits(lane) && !(puts && !forwards));
}

bool GpuLanes::waits(const GpuLane& lane) const {
  const auto begin = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.first);
  const auto end = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.last);
  return std::any_of(begin, end, [](const Command& c) { return c.verb == Verb::wait; });
}

// Finds the commands that do not belong to the start: those that cannot begin before something has arrived. Of lanes of
// which `late_by_deps` is true these are a wait, what follows it in its lane, and what depends on a message or on
// another late command; a message only if it depends on something late. Dependencies may lead from any lane to any
// other. In the other lanes `part_of` decides. A command that could begin must not be late: the start of another rank
// may wait for it, and the host may wait for the GPU before it comes to the wait.
void GpuLanes::find_late() {
  for (const GpuLane& lane : all) {
    if (lane.asks && lane.streams) {
      throw Error(fmt::format("rank {}: {}: lane {} has messages of two kinds (a defect in Tasuki)", plan_.rank,
                              plan_.operation, plan_.commands[lane.first].lane));
    }
    if (late_by_deps(lane)) continue;
    for (std::size_t i = lane.first; i < lane.last; ++i) late_[i] = part_of(lane, i) != kPartStart;
  }
  for (bool more = true; more;) {
    more = false;
    for (const GpuLane& lane : all) {
      if (late_by_deps(lane)) more = find_late(lane) || more;
    }
  }
}

// True if it has found another late command in the lane.
bool GpuLanes::find_late(const GpuLane& lane) {
  bool found = false;
  bool after = false;  // an earlier command of the lane, other than a message, is late
  // Where the lane waits for other ranks only its first signals are early. Permissions may come late, so that what it
  // puts belongs to the wait.
  const bool signals_only = !lane.by_need() && waits(lane);
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    const bool late = (after && !asked(i)) || plan_.commands[i].verb == Verb::wait ||
                      (signals_only && plan_.commands[i].verb != Verb::signal) ||
                      std::any_of(deps[i].begin(), deps[i].end(), [&](std::int32_t dep) {
                        return asked(static_cast<std::size_t>(dep)) || late_[static_cast<std::size_t>(dep)];
                      });
    found = found || late != late_[i];
    late_[i] = late;
    after = after || (late && !asked(i));
  }
  return found;
}

// Whether a command depends on one of the wait.
bool GpuLanes::needs_wait(std::size_t command) const {
  return std::ranges::any_of(deps[command], [&](std::int32_t d) {
    const auto dep = static_cast<std::size_t>(d);
    const auto lane = std::ranges::find_if(all, [&](const GpuLane& one) { return dep < one.last; });
    return part_of(*lane, dep) == kPartWait;
  });
}

// What a start has enqueued must end before any rank comes to its wait, as hosts may meet in between. So what adds to
// something that comes in the wait, or by a message of a thread, which the sender may ask for in its wait, is held for
// the wait. Messages of a stream cannot be held, as their peers' starts wait for them; planning lets none of them
// depend on what arrives.
void GpuLanes::hold() {
  for (bool more = true; more;) {
    more = false;
    for (const GpuLane& lane : all)
      if (lane.streams) more = hold(lane) || more;
  }
  for (const GpuLane& lane : all) {
    for (std::size_t i = lane.first; i < lane.last && lane.streams; ++i) {
      if (part_of(lane, i) != kPartWait && needs_wait(i))
        throw Error(
            fmt::format("rank {}: {}: command #{} comes before a message of a stream, but waits for what comes "
                        "in the wait (a defect in Tasuki)",
                        plan_.rank, plan_.operation, i));
    }
  }
}

// True if it has found another command to hold in the lane.
bool GpuLanes::hold(const GpuLane& lane) {
  bool found = false;
  bool after = false;  // an earlier command of the lane is held
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    after = after || held_[i];
    if (held_[i] || part_of(lane, i) != kPartUnpack) continue;
    const auto by_thread = [&](std::int32_t dep) { return asked(static_cast<std::size_t>(dep)); };
    after = after || needs_wait(i) || std::ranges::any_of(deps[i], by_thread);
    held_[i] = after;
    found = found || after;
  }
  return found;
}

bool GpuLanes::wait_needs_beside() const {
  return std::ranges::find(held_, true) != held_.end();
}

// The first command of a lane that belongs to what arrives: the first wait for that, and what the rank itself adds to
// it before. The lane's end if nothing arrives.
std::size_t GpuLanes::arrives_from(const GpuLane& lane) const {
  std::size_t sent = lane.first;  // past the last put or signal
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    const Command& c = plan_.commands[i];
    if (c.verb == Verb::put || c.verb == Verb::signal) sent = i + 1;
    if (c.verb != Verb::wait) continue;
    const Purpose purpose = plan_.buffers[static_cast<std::size_t>(c.src)].purpose;
    if (purpose == Purpose::arrived || purpose == Purpose::filled || purpose == Purpose::available) return sent;
  }
  return lane.last;
}

// What a lane puts before anything has to arrive belongs to the start, and the waits for permission before it.
int GpuLanes::part_of(const GpuLane& lane, std::size_t command) const {
  if (in_stream(command)) return 0;
  if (late_by_deps(lane)) return late_[command] ? kPartWait : kPartStart;
  if (lane.streams) return part_beside(lane, command);
  if (command >= arrives_from(lane)) return kPartWait;
  // Waits at its end are for what the peers signal in their waits.
  const auto end = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.last);
  const auto rest = std::find_if(plan_.commands.begin() + static_cast<std::ptrdiff_t>(command), end,
                                 [](const Command& c) { return c.verb != Verb::wait; });
  return rest == end ? kPartWait : kPartStart;
}

// The part of a command in a lane with messages of a stream, which all come between two kernels. Between two messages
// a lane waits or packs for the next one, or it signals or unpacks after the last one. See `hold`.
int GpuLanes::part_beside(const GpuLane& lane, std::size_t command) const {
  if (signal_after[command] >= 0) return 0;
  if (held_[command]) return kPartWait;
  std::size_t before = command;
  while (before > lane.first && !in_stream(before)) --before;
  if (!in_stream(before)) return kPartPack;
  std::size_t next = command;
  while (next < lane.last && !in_stream(next)) ++next;
  const bool after =
      next == lane.last || plan_.commands[command].verb == Verb::signal || plan_.commands[before].verb == Verb::recv;
  return after ? kPartUnpack : kPartPack;
}

// Of several puts of a stream, each is signalled when it has ended: the peer works on its bytes while the next put is
// under way.
void GpuLanes::find_stream_signals() {
  const auto& commands = plan_.commands;
  const auto puts = std::count_if(messages.begin(), messages.end(), [&](std::int32_t m) {
    return commands[static_cast<std::size_t>(m)].verb == Verb::put;
  });
  if (puts < 2) return;
  for (const std::int32_t m : messages) {
    const auto message = static_cast<std::size_t>(m);
    if (commands[message].verb != Verb::put) continue;
    for (std::size_t i = message + 1; i < commands.size() && commands[i].lane == commands[message].lane; ++i) {
      if (commands[i].verb != Verb::signal || !deps[i].empty()) break;
      signal_after[i] = m;
    }
  }
}

// Signals of LL lines and waits for them are no steps, because the lines' flags tell: what such a command depends on,
// the next step of the lane waits for.
void GpuLanes::pass_deps_on(const GpuLane& lane) {
  std::vector<std::int32_t> left;
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    const Command& c = plan_.commands[i];
    const bool by_flags = (c.verb == Verb::signal && is_ll(c.dst)) || (c.verb == Verb::wait && is_ll(c.src));
    std::vector<std::int32_t>& from = by_flags ? deps[i] : left;
    std::vector<std::int32_t>& to = by_flags ? left : deps[i];
    to.insert(to.end(), from.begin(), from.end());
    from.clear();
  }
}

// A message of a stream waits for nothing by itself: the command before it in its lane waits for what it depends on.
void GpuLanes::wait_before(std::size_t message) {
  std::size_t i = message;
  while (i > 0 && in_stream(i) && plan_.commands[i - 1].lane == plan_.commands[message].lane) --i;
  if (in_stream(i))
    throw Error(fmt::format("rank {}: {}: command #{} is a message that nothing waits for (a defect in Tasuki)",
                            plan_.rank, plan_.operation, message));
  deps[i].insert(deps[i].end(), deps[message].begin(), deps[message].end());
  deps[message].clear();
}

// A dependency on a put of a stream is one on what follows it in its lane, which runs when it has ended.
std::int32_t GpuLanes::end_of_stream(std::int32_t dep) const {
  const auto& commands = plan_.commands;
  auto i = static_cast<std::size_t>(dep);
  while (in_stream(i) && i + 1 < commands.size() && commands[i + 1].lane == commands[i].lane) ++i;
  return static_cast<std::int32_t>(i);
}

}  // namespace tasuki
