// Verifying by neighbourhoods: see planning.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

namespace {

constexpr std::size_t kMostProblems = 20;

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

// A plan as bytes, with the rank itself as 0 and others by the order in which its commands meet them: equal for plans
// that are equal but for the names of ranks.
class Form {
 public:
  explicit Form(const Plan& plan) {
    name(plan.rank);
    for (const Command& c : plan.commands)
      if (c.peer >= 0) name(c.peer);
    peers_ = static_cast<int>(met_.size()) - 1;
    text(plan.operation);
    count(plan.paths);
    for (const std::string& path : plan.paths) text(path);
    count(plan.buffers);
    for (const Buffer& buffer : plan.buffers) add(buffer);
    count(plan.copies);
    for (const StridedCopy& copy : plan.copies) add(copy);
    count(plan.loops);
    for (const Loop& loop : plan.loops) number(loop.count);
    count(plan.commands);
    for (const Command& c : plan.commands) add(c);
    count(plan.deps);
    for (const std::int32_t dep : plan.deps) number(dep);
    count(plan.expects);
    for (const Expect& e : plan.expects) {
      for (const std::int32_t n : {e.src, e.dst, e.first_copy, e.copy_count}) number(n);
      number(static_cast<int>(e.dtype));
    }
  }
  std::string& bytes() { return bytes_; }
  /// The ranks that it deals with, in that order.
  std::vector<int> peers() const { return {met_.begin() + 1, met_.begin() + 1 + peers_}; }

 private:
  void add(const Buffer& buffer) {
    text(buffer.name);
    number(name(buffer.rank));
    number(buffer.writer < 0 ? -1 : name(buffer.writer));
    for (const int n : {static_cast<int>(buffer.role), static_cast<int>(buffer.home), static_cast<int>(buffer.purpose)})
      number(n);
    for (const std::int32_t n : {buffer.link, buffer.ring, buffer.per_epoch, buffer.copies}) number(n);
    number(buffer.bytes);
  }
  void add(const StridedCopy& copy) {
    for (const std::int64_t n : {copy.src_offset, copy.dst_offset, copy.block}) number(n);
    number(copy.ndims);
    for (std::int32_t d = 0; d < copy.ndims; ++d) {
      const auto& dim = copy.dims[static_cast<std::size_t>(d)];
      for (const std::int64_t n : {dim.count, dim.src_stride, dim.dst_stride}) number(n);
    }
  }
  void add(const Command& c) {
    for (const int n : {static_cast<int>(c.verb), static_cast<int>(c.dtype), static_cast<int>(c.credit)}) number(n);
    number(c.peer < 0 ? -1 : name(c.peer));
    for (const std::int32_t n : {std::int32_t{c.path}, c.lane, c.src, c.dst, c.first_copy, c.copy_count, c.first_dep,
                                 c.dep_count, c.loop, c.tag, c.index, c.lag})
      number(n);
    for (const std::int64_t n : {c.offset, c.bytes, c.src_step, c.dst_step}) number(n);
  }

  // Most numbers are small: a byte then, and else a byte that says so before all eight.
  void number(std::int64_t n) {
    constexpr unsigned char kLong = 255;
    if (n >= -1 && n < kLong - 1) {
      bytes_.push_back(static_cast<char>(n + 1));
      return;
    }
    bytes_.push_back(static_cast<char>(kLong));
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof n);
  }
  void text(const std::string& text) {
    number(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  template <class List>
  void count(const List& list) {
    number(static_cast<std::int64_t>(list.size()));
  }
  int name(int rank) {
    const auto [at, added] = names_.try_emplace(rank, static_cast<int>(names_.size()));
    if (added) met_.push_back(rank);
    return at->second;
  }

  std::unordered_map<int, int> names_;
  std::vector<int> met_;
  int peers_ = 0;
  std::string bytes_;
};

// Every rank's class. Ranks of a class have equal plans but for the names of ranks; so have the peers that they deal
// with in the same place, and these deal with them in the same place of theirs.
struct Classes {
  std::vector<std::vector<int>> peers;  // of each rank, in the order in which its plan meets them
  std::vector<int> examples;            // a rank of each class
};

Classes classes_of(std::span<const Plan> plans) {
  Classes classes;
  std::vector<int> form(plans.size());  // number of the plan's form
  std::unordered_map<std::string, int> forms;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    Form one(plans[r]);
    classes.peers.push_back(one.peers());
    form[r] = forms.try_emplace(std::move(one.bytes()), static_cast<int>(forms.size())).first->second;
  }
  std::map<std::vector<int>, int> seen;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    std::vector<int> key{form[r]};
    for (const int peer : classes.peers[r]) {
      const auto p = static_cast<std::size_t>(peer);
      const auto& back = classes.peers[p];
      const auto at = std::find(back.begin(), back.end(), static_cast<int>(r));
      key.insert(key.end(), {form[p], at == back.end() ? -1 : static_cast<int>(at - back.begin())});
    }
    if (seen.try_emplace(std::move(key), static_cast<int>(r)).second) classes.examples.push_back(static_cast<int>(r));
  }
  return classes;
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
  rename_ranks(part, [&](int rank) {
    const auto name = names.find(rank);
    if (name != names.end()) return name->second;
    throw Error(fmt::format("rank {}: {}: a command that deals with one rank uses memory of another, rank {}",
                            plan.rank, plan.operation, rank));
  });
  return part;
}

}  // namespace

NeighbourhoodReport verify_neighbourhoods(std::span<const Plan> plans) {
  NeighbourhoodReport report;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const Plan& plan = plans[r];
    if (plan.rank != static_cast<int>(r))
      report.problems.push_back(fmt::format("plan {} is that of rank {}", r, plan.rank));
    for (const std::string& complaint : plan.complaints()) report.problems.push_back(complaint);
    for (const Command& c : plan.commands) {
      if (c.peer < std::ssize(plans)) continue;
      report.problems.push_back(
          fmt::format("rank {} deals with rank {}, of which there is no plan", plan.rank, c.peer));
      break;
    }
    if (report.problems.size() >= kMostProblems) break;
  }
  if (!report.ok()) return report;
  const Classes classes = classes_of(plans);
  report.classes = static_cast<int>(classes.examples.size());
  for (const int rank : classes.examples) {
    std::map<int, int> names{{rank, 0}};
    std::vector<int> members{rank};
    for (const int peer : classes.peers[static_cast<std::size_t>(rank)])
      if (names.try_emplace(peer, static_cast<int>(names.size())).second) members.push_back(peer);
    std::vector<Plan> world;
    for (const int member : members) world.push_back(inside(plans[static_cast<std::size_t>(member)], names));
    const VerifyReport one = verify(world);
    report.commands += one.commands;
    report.bytes += one.bytes;
    for (const std::string& problem : one.problems) {
      if (report.problems.size() >= kMostProblems) return report;
      report.problems.push_back(
          fmt::format("around rank {} (rank 0 here; ranks are numbered as it meets them): {}", rank, problem));
    }
  }
  return report;
}

std::string NeighbourhoodReport::text() const {
  return fmt::format(
      "{}by neighbourhoods: one rank of each of {} classes of ranks with equal plans and peers, with its peers; "
      "flaws among ranks farther apart are not seen\n",
      VerifyReport::text(), classes);
}

}  // namespace tasuki
