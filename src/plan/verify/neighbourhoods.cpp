// Verifying by neighbourhoods: see planning.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/label.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

namespace {

constexpr std::size_t kMostProblems = 20;
constexpr std::int64_t kMostRuns = std::int64_t{1} << 26;  // as many as the verifier follows

// The rank that each lane of a plan deals with. Lanes that only work within their rank are left out.
std::map<std::int32_t, int> peers_of_lanes(const Plan& plan) {
  std::map<std::int32_t, int> peers;
  for (const Command& c : plan.commands) {
    if (c.peer < 0 || c.peer == plan.rank) continue;
    const auto [lane, added] = peers.try_emplace(c.lane, c.peer);
    if (!added && lane->second != c.peer)
      throw Error(
          fmt::format("rank {}: {}: lane {} deals with ranks {} and {}; neighbourhoods are for plans whose lanes "
                      "deal with one rank each",
                      plan.rank, plan.operation, c.lane, lane->second, c.peer));
  }
  return peers;
}

// Whether a rank passes on or combines what it received. A neighbourhood leaves out what a peer gets from ranks
// outside, so what goes into the neighbourhood must not depend on that.
class Forwarding {
 public:
  explicit Forwarding(std::span<const Plan> plans) : plans_(plans) {}

  // Throws if a command reads bytes of the rank's memory that a lane with another peer writes.
  void check(int rank, const std::vector<int>& peers) {
    writes_.clear();
    runs_ = 0;
    std::vector<int> all = peers;
    all.push_back(rank);
    for (const int of : all) look_at(of, rank, Side::writes);
    for (auto& [buffer, writes] : writes_) writes.sort();
    for (const int of : all) look_at(of, rank, Side::reads);
  }

 private:
  enum class Side : std::uint8_t { reads, writes };
  struct Access {
    int rank = 0;
    std::int32_t command = 0;
    int with = 0;  // the peer whose lane it is; the owner of the memory itself for what stays within the rank
  };
  struct Run {
    std::int64_t begin = 0, end = 0;
    Access access;
  };
  // The writes to a buffer by lanes with peers.
  struct Writes {
    std::vector<Run> runs;
    // Of the runs up to each: the one that ends last, and the one that ends last among those of other peers.
    std::vector<std::pair<std::size_t, std::size_t>> last;

    void sort() {
      std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (i == 0) {
          last.emplace_back(i, runs.size());
          continue;
        }
        auto [first, second] = last.back();
        const auto end = [&](std::size_t k) { return k < runs.size() ? runs[k].end : -1; };
        if (runs[i].access.with == runs[first].access.with) {
          if (runs[i].end > end(first)) first = i;
        } else if (runs[i].end > end(first)) {
          second = std::exchange(first, i);
        } else if (runs[i].end > end(second)) {
          second = i;
        }
        last.emplace_back(first, second);
      }
    }
    // A write by a lane with another peer that meets these bytes; null if there is none.
    const Run* meets(const Run& read) const {
      const auto after = std::lower_bound(runs.begin(), runs.end(), read.end,
                                          [](const Run& run, std::int64_t end) { return run.begin < end; });
      if (after == runs.begin()) return nullptr;
      const auto [first, second] = last[static_cast<std::size_t>(after - runs.begin()) - 1];
      for (const std::size_t i : {first, second})
        if (i < runs.size() && runs[i].access.with != read.access.with && runs[i].end > read.begin) return &runs[i];
      return nullptr;
    }
  };

  // The accesses of the plan of rank `of` to the memory of rank `owner`.
  void look_at(int of, int owner, Side side) {
    const Plan& plan = plans_[static_cast<std::size_t>(of)];
    const auto peers = peers_of_lanes(plan);
    for (std::size_t i = 0; i < plan.commands.size(); ++i) {
      const Command& c = plan.commands[i];
      const std::int32_t b = side == Side::reads ? c.src : c.dst;
      if (b < 0 || c.verb == Verb::signal || c.verb == Verb::wait) continue;
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
      if (buffer.rank != owner) continue;
      const auto lane = peers.find(c.lane);
      const Access access{of, static_cast<std::int32_t>(i),
                          of != owner           ? of
                          : lane == peers.end() ? owner
                                                : lane->second};
      if (side == Side::writes && access.with == owner) continue;
      const detail::BufferKey key = detail::key_of(buffer);
      const auto found = side == Side::reads ? writes_.find(key) : writes_.try_emplace(key).first;
      if (found == writes_.end()) continue;
      for_each_run(plan, c, side, [&](std::int64_t begin, std::int64_t end) {
        const Run run{begin, end, access};
        if (side == Side::writes) {
          found->second.runs.push_back(run);
        } else if (const Run* write = found->second.meets(run)) {
          refuse(owner, buffer, access, write->access);
        }
      });
    }
  }

  [[noreturn]] void refuse(int owner, const Buffer& buffer, const Access& read, const Access& write) const {
    const auto name = [&](const Access& access) {
      return detail::label(plans_[static_cast<std::size_t>(access.rank)], access.command);
    };
    throw Error(
        fmt::format("{}: {} reads what {} brings to '{}' of rank {}; neighbourhoods are for plans that neither pass on "
                    "nor combine what they received",
                    plans_[0].operation, name(read), name(write), buffer.label(), owner));
  }

  // Calls `visit(begin, end)` for the runs of bytes that a command reads or writes.
  template <class Visit>
  void for_each_run(const Plan& plan, const Command& c, Side side, const Visit& visit) {
    const bool reads = side == Side::reads;
    const std::int64_t chunks = detail::chunks(plan, c);
    const std::int64_t step = reads ? c.src_step : c.dst_step;
    const auto copies =
        std::span(plan.copies).subspan(static_cast<std::size_t>(c.first_copy), static_cast<std::size_t>(c.copy_count));
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      if (c.verb == Verb::send || c.verb == Verb::recv) {
        count_run(plan);
        visit(c.offset + chunk * step, c.offset + chunk * step + c.bytes);
        continue;
      }
      for (const StridedCopy& copy : copies) {
        const std::int64_t blocks = copy.blocks();
        for (std::int64_t block = 0; block < blocks; ++block) {
          count_run(plan);
          std::int64_t begin = (reads ? copy.src_offset : copy.dst_offset) + chunk * step;
          std::int64_t rest = block;
          for (std::int32_t d = copy.ndims; d-- > 0;) {
            const auto& dim = copy.dims[static_cast<std::size_t>(d)];
            const OffsetList& list = reads ? copy.src_list : copy.dst_list;
            begin +=
                d == 0 && !list.empty() ? list[rest] : rest % dim.count * (reads ? dim.src_stride : dim.dst_stride);
            rest /= dim.count;
          }
          visit(begin, begin + copy.block);
        }
      }
    }
  }
  void count_run(const Plan& plan) {
    if (++runs_ > kMostRuns)
      throw Error(
          fmt::format("rank {}: {}: it and its peers move more than {} runs of bytes, more than the verifier "
                      "follows; verify a smaller case",
                      plan.rank, plan.operation, kMostRuns));
  }

  std::span<const Plan> plans_;
  std::map<detail::BufferKey, Writes> writes_;
  std::int64_t runs_ = 0;
};

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
    for (const std::int32_t n : {buffer.link, std::int32_t{buffer.ring}, buffer.per_epoch, std::int32_t{buffer.copies}})
      number(n);
    number(buffer.bytes);
  }
  void add(const StridedCopy& copy) {
    for (const std::int64_t n : {copy.src_offset, copy.dst_offset, copy.block}) number(n);
    number(copy.ndims);
    for (std::int32_t d = 0; d < copy.ndims; ++d) {
      const auto& dim = copy.dims[static_cast<std::size_t>(d)];
      for (const std::int64_t n : {dim.count, dim.src_stride, dim.dst_stride}) number(n);
    }
    for (const OffsetList* list : {&copy.src_list, &copy.dst_list}) {
      number(list->size());
      for (std::int64_t i = 0; i < list->size(); ++i) number((*list)[i]);
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

std::vector<std::int32_t> deps_of(const Plan& plan, const Command& c) {
  const auto begin = plan.deps.begin() + c.first_dep;
  return {begin, begin + c.dep_count};
}

// The plan as a neighbourhood sees it: without lanes that deal with ranks outside.
Plan inside(const Plan& plan, const std::map<int, int>& names) {
  Plan part = plan;
  part.commands.clear();
  part.deps.clear();
  part.expects.clear();
  const std::map<std::int32_t, int> peer_of_lane = peers_of_lanes(plan);
  std::vector<std::int32_t> place(plan.commands.size(), -1);
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const auto lane = peer_of_lane.find(plan.commands[i].lane);
    if (lane != peer_of_lane.end() && !names.contains(lane->second)) continue;
    place[i] = static_cast<std::int32_t>(part.commands.size());
    part.commands.push_back(plan.commands[i]);
  }
  // A command after one that is left out comes after what that one came after.
  std::vector<std::int32_t> seen(plan.commands.size(), -1);  // the command that was looking when it was last met
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    if (place[i] < 0) continue;
    Command& c = part.commands[static_cast<std::size_t>(place[i])];
    std::vector<std::int32_t> before = deps_of(plan, plan.commands[i]);
    c.first_dep = static_cast<std::int32_t>(part.deps.size());
    while (!before.empty()) {
      const std::int32_t dep = before.back();
      before.pop_back();
      const Command& earlier = plan.commands[static_cast<std::size_t>(dep)];
      if (std::exchange(seen[static_cast<std::size_t>(dep)], place[i]) == place[i] || earlier.lane == c.lane) continue;
      if (place[static_cast<std::size_t>(dep)] >= 0) {
        part.deps.push_back(place[static_cast<std::size_t>(dep)]);
        continue;
      }
      const std::vector<std::int32_t> further = deps_of(plan, earlier);
      before.insert(before.end(), further.begin(), further.end());
      if (dep > 0 && plan.commands[static_cast<std::size_t>(dep) - 1].lane == earlier.lane) before.push_back(dep - 1);
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

// A rank outside whose bytes the plan promises; -1 if there is none. Nobody passes bytes on, so they cannot arrive.
int expected_from_afar(const Plan& plan, const std::map<int, int>& names) {
  for (const Expect& e : plan.expects) {
    const int from = plan.buffers[static_cast<std::size_t>(e.src)].rank;
    if (names.contains(from)) continue;
    for (std::int32_t k = e.first_copy; k < e.first_copy + e.copy_count; ++k)
      if (plan.copies[static_cast<std::size_t>(k)].bytes() > 0) return from;
  }
  return -1;
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
  Forwarding forwarding(plans);
  for (const int rank : classes.examples) forwarding.check(rank, classes.peers[static_cast<std::size_t>(rank)]);
  const auto say = [&](int rank, const std::string& problem) {
    if (report.problems.size() < kMostProblems)
      report.problems.push_back(
          fmt::format("around rank {} (rank 0 here; ranks are numbered as it meets them): {}", rank, problem));
  };
  for (const int rank : classes.examples) {
    if (report.problems.size() >= kMostProblems) break;
    std::map<int, int> names{{rank, 0}};
    std::vector<int> members{rank};
    for (const int peer : classes.peers[static_cast<std::size_t>(rank)])
      if (names.try_emplace(peer, static_cast<int>(names.size())).second) members.push_back(peer);
    const int stranger = expected_from_afar(plans[static_cast<std::size_t>(rank)], names);
    if (stranger >= 0)
      say(rank, fmt::format("rank {} is to get bytes of rank {}, and deals with it nowhere", rank, stranger));
    std::vector<Plan> world;
    for (const int member : members) world.push_back(inside(plans[static_cast<std::size_t>(member)], names));
    const VerifyReport one = verify(world);
    report.commands += one.commands;
    report.bytes += one.bytes;
    for (const std::string& problem : one.problems) {
      if (one.commands == 0 && problem.find("more than the verifier follows") != std::string::npos)
        throw Error(fmt::format("rank {} and its {} peers: {}", rank, members.size() - 1, problem));
      say(rank, problem);
    }
    if (members.size() == plans.size()) break;  // nothing was left out
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
