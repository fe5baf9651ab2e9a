// Verifying by neighbourhoods: see planning.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

namespace {

std::vector<int> peers_of(const Plan& plan) {
  std::set<int> peers;
  for (const Command& c : plan.commands)
    if (c.peer >= 0 && c.peer != plan.rank) peers.insert(c.peer);
  return {peers.begin(), peers.end()};
}

// Gives the ranks of a plan other numbers.
template <class Rename>
void rename_ranks(Plan& plan, const Rename& rename) {
  plan.rank = rename(plan.rank);
  for (Buffer& buffer : plan.buffers) {
    buffer.rank = rename(buffer.rank);
    if (buffer.writer >= 0) buffer.writer = rename(buffer.writer);
  }
  for (Command& c : plan.commands)
    if (c.peer >= 0) c.peer = rename(c.peer);
}

// What two ranks of one class have in common: the plan, with the rank itself as 0 and the others in the order in which
// the plan meets them.
std::string class_of(const Plan& plan) {
  Plan same = plan;
  std::map<int, int> names{{plan.rank, 0}};
  const auto rename = [&](int rank) { return names.try_emplace(rank, static_cast<int>(names.size())).first->second; };
  for (const Command& c : plan.commands)
    if (c.peer >= 0) rename(c.peer);
  same.ranks = 0;
  rename_ranks(same, rename);
  return to_text(same);
}

// The plan as a neighbourhood sees it: without lanes that deal with ranks outside.
Plan inside(const Plan& plan, const std::map<int, int>& names) {
  Plan part = plan;
  part.commands.clear();
  part.deps.clear();
  part.expects.clear();
  std::map<std::int32_t, int> peer_of_lane;
  for (const Command& c : plan.commands) {
    if (c.peer < 0 || c.peer == plan.rank) continue;
    const auto [lane, added] = peer_of_lane.try_emplace(c.lane, c.peer);
    if (!added && lane->second != c.peer)
      throw Error(
          fmt::format("rank {}: {}: lane {} deals with ranks {} and {}; neighbourhoods are for plans whose lanes "
                      "deal with one rank each",
                      plan.rank, plan.operation, c.lane, lane->second, c.peer));
  }
  std::vector<std::int32_t> place(plan.commands.size(), -1);
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const auto lane = peer_of_lane.find(plan.commands[i].lane);
    if (lane != peer_of_lane.end() && !names.contains(lane->second)) continue;
    place[i] = static_cast<std::int32_t>(part.commands.size());
    part.commands.push_back(plan.commands[i]);
  }
  for (Command& c : part.commands) {
    const std::int32_t first = c.first_dep;
    const std::int32_t count = c.dep_count;
    c.first_dep = static_cast<std::int32_t>(part.deps.size());
    for (std::int32_t d = first; d < first + count; ++d) {
      const std::int32_t before = place[static_cast<std::size_t>(plan.deps[static_cast<std::size_t>(d)])];
      if (before >= 0) part.deps.push_back(before);
    }
    c.dep_count = static_cast<std::int32_t>(part.deps.size()) - c.first_dep;
    if (c.dep_count == 0) c.first_dep = 0;
  }
  for (const Expect& e : plan.expects)
    if (names.contains(plan.buffers[static_cast<std::size_t>(e.src)].rank)) part.expects.push_back(e);
  // Buffers keep their places, so that commands still name them; those that nobody uses any more become this rank's
  // own, under names of their own.
  std::vector<bool> used(plan.buffers.size(), false);
  const auto use = [&](std::int32_t b) {
    if (b >= 0) used[static_cast<std::size_t>(b)] = true;
  };
  for (const Command& c : part.commands) {
    use(c.src);
    use(c.dst);
  }
  for (const Expect& e : part.expects) {
    use(e.src);
    use(e.dst);
  }
  for (std::size_t b = 0; b < part.buffers.size(); ++b) {
    Buffer& buffer = part.buffers[b];
    if (used[b] || names.contains(buffer.rank)) continue;
    buffer = Buffer();
    buffer.name = fmt::format("left out {}", b);
    buffer.rank = plan.rank;
  }
  for (Buffer& buffer : part.buffers)
    if (buffer.writer >= 0 && !names.contains(buffer.writer)) {
      const std::size_t b = static_cast<std::size_t>(&buffer - part.buffers.data());
      buffer = Buffer();
      buffer.name = fmt::format("left out {}", b);
      buffer.rank = plan.rank;
    }
  part.ranks = static_cast<std::int32_t>(names.size());
  rename_ranks(part, [&](int rank) { return names.at(rank); });
  return part;
}

}  // namespace

NeighbourhoodReport verify_neighbourhoods(std::span<const Plan> plans) {
  NeighbourhoodReport report;
  std::map<std::string, int> classes;  // to the first rank of each
  for (const Plan& plan : plans) classes.try_emplace(class_of(plan), plan.rank);
  report.classes = static_cast<int>(classes.size());
  for (const auto& [text, rank] : classes) {
    std::map<int, int> names{{rank, 0}};
    std::vector<int> members{rank};
    for (const int peer : peers_of(plans[static_cast<std::size_t>(rank)])) {
      if (peer >= std::ssize(plans)) {
        report.problems.push_back(fmt::format("rank {} deals with rank {}, of which there is no plan", rank, peer));
        return report;
      }
      if (names.try_emplace(peer, static_cast<int>(names.size())).second) members.push_back(peer);
    }
    std::vector<Plan> world;
    for (const int member : members) world.push_back(inside(plans[static_cast<std::size_t>(member)], names));
    const VerifyReport one = verify(world);
    report.commands += one.commands;
    report.bytes += one.bytes;
    for (const std::string& problem : one.problems) {
      if (report.problems.size() >= 20) break;
      report.problems.push_back(
          fmt::format("around rank {} (rank 0 here; ranks are numbered as it meets them): {}", rank, problem));
    }
  }
  return report;
}

std::string NeighbourhoodReport::text() const {
  return fmt::format(
      "{}by neighbourhoods: one rank of each of {} classes of ranks with equal plans, with its peers; flaws "
      "among ranks farther apart are not seen\n",
      VerifyReport::text(), classes);
}

}  // namespace tasuki
