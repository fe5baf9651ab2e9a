// Assignment: the path of every move of a rank, changed as long as that lowers the time of the slowest resource.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "planner/planner.hpp"

namespace tasuki {

// Costs are added up in femtoseconds, as whole numbers. Such sums do not depend on their order, so a cost can be
// updated when a single move changes its path, and every compiler comes to the same choice.
using Femto = std::int64_t;
constexpr double kPerSecond = 1e15;
inline Femto femto(double seconds) {
  return static_cast<Femto>(std::llround(std::min(seconds, 1000.0) * kPerSecond));
}

// The cost of an assignment, updated with every change.
class Cost {
 public:
  Cost(double of_sum, std::size_t resources) : of_sum_(of_sum), busy_(resources), latencies_(resources) {}

  void add(std::size_t resource, Femto seconds) {
    busy_[resource] += seconds;
    sum_ += seconds;
  }
  /// Besides a resource that `add` counts: the same seconds of it keep this one busy.
  void keep(std::size_t resource, Femto seconds) { busy_[resource] += seconds; }
  /// Counts a latency that passes at the same time as others of the resource: once more (`times` is +1) or once less
  /// (-1).
  void overlap(std::size_t resource, Femto latency, int times) {
    auto& all = latencies_[resource];
    const Femto before = all.empty() ? 0 : all.rbegin()->first;
    if ((all[latency] += times) == 0) all.erase(latency);
    add(resource, (all.empty() ? 0 : all.rbegin()->first) - before);
  }
  // First: the time of the slowest resource, plus a small share of the time of all resources together. The share keeps
  // a further resource from being used if the slowest one ends hardly sooner for it. Second: the sum of all.
  Femto busy(Resource resource) const { return busy_[static_cast<std::size_t>(resource)]; }
  std::pair<double, Femto> value() const {
    const Femto slowest = *std::max_element(busy_.begin(), busy_.end());
    return {static_cast<double>(slowest) + of_sum_ * static_cast<double>(sum_), sum_};
  }

 private:
  double of_sum_;
  std::vector<Femto> busy_;                      // per resource
  std::vector<std::map<Femto, int>> latencies_;  // per resource: how often each occurs
  Femto sum_ = 0;
};

using Offers = std::vector<std::vector<Offer>>;  // [move][path]

// Index of the path chosen for every outgoing move.
class Assignment {
 public:
  Assignment(const Machine& machine, const Problem& problem, const Facts& facts, std::vector<std::size_t> moves,
             const Offers& offers)
      : constants_(machine.constants),
        problem_(problem),
        facts_(facts),
        moves_(std::move(moves)),
        offers_(offers),
        cost_(constants_.of_sum, kResources) {
    std::int64_t leaves = 0;
    std::int64_t arrives = 0;
    for (const auto& move : problem.moves) {
      if (move.dst_rank != problem.rank) leaves += move.bytes();
      if (move.src_rank != problem.rank) arrives += move.bytes();
    }
    // In a halo the peers send as much as they receive, so their cores have no time to spare. Their cores help only
    // where much less comes back than leaves.
    helped_ = 2 * arrives < leaves;
    for (const std::size_t m : moves_) {
      bytes_to_[problem.moves[m].dst_rank] += problem.moves[m].bytes();
      auto& by_path = resources_.emplace_back();
      for (const Path& path : all_paths()) {
        const Resource one = resource_of(machine, path, problem.rank, problem.moves[m].dst_rank);
        by_path.push_back(static_cast<std::size_t>(one == Resource::peer_core && !helped_ ? Resource::core : one));
      }
    }
  }

  // Starts with the best path of each move by itself. Then changes the path of single moves, and of all moves to one
  // peer, as long as that lowers the cost. Where peers help, does the same without the paths that keep both cores busy,
  // and takes what is better: from those no single change leads to paths that divide the work between the two cores.
  std::vector<std::size_t> solve() {
    std::vector<std::size_t> found = solve_among(false);
    if (!helped_) return found;
    const auto value = cost_.value();
    std::vector<std::size_t> divided = solve_among(true);
    if (cost_.value() < value) return divided;
    assign(found);
    return found;
  }
  // The same from another start.
  std::vector<std::size_t> solve_from(const std::vector<std::size_t>& start, bool one_core = false) {
    assign(start);
    std::map<int, std::vector<std::size_t>> by_peer;
    for (std::size_t i = 0; i < moves_.size(); ++i) by_peer[peer(i)].push_back(i);
    std::vector<std::size_t> paths;
    for (std::size_t p = 0; p < all_paths().size(); ++p)
      if (!one_core || !all_paths()[p].both_cores) paths.push_back(p);
    bool better = true;
    for (int round = 0; better && round < 8; ++round) {
      better = false;
      for (const auto& [rank, members] : by_peer) {
        for (const std::size_t p : paths) better = consider(members, p) || better;
      }
      for (std::size_t i = 0; i < moves_.size(); ++i) {
        for (const std::size_t p : paths) better = consider({&i, 1}, p) || better;
      }
    }
    return chosen_;
  }

  void assign(const std::vector<std::size_t>& paths) {
    for (std::size_t i = 0; i < chosen_.size(); ++i) count(i, -1);
    chosen_.resize(moves_.size());
    for (std::size_t i = 0; i < moves_.size(); ++i) take(i, paths[i]);
    best_ = cost_.value();
  }
  std::pair<double, Femto> value() const { return cost_.value(); }
  Resource resource(std::size_t i) const { return static_cast<Resource>(resources_[i][chosen_[i]]); }
  double busy(Resource resource) const { return static_cast<double>(cost_.busy(resource)) / kPerSecond; }

 private:
  std::vector<std::size_t> solve_among(bool one_core) {
    std::vector<std::size_t> start;
    for (std::size_t i = 0; i < moves_.size(); ++i) start.push_back(best_alone(i, one_core));
    return solve_from(start, one_core);
  }

  // The moves to one peer on one path: how many, and the latency of their link, which they share.
  struct LinkUse {
    int moves = 0;
    Femto latency = 0;
  };
  using Links = std::map<std::size_t, LinkUse>;

  const Offer& offer(std::size_t move, std::size_t path) const { return offers_[move][path]; }
  int peer(std::size_t move) const { return problem_.moves[moves_[move]].dst_rank; }
  static int preference(std::size_t path) { return all_paths()[path].preference; }
  bool short_and_early(std::size_t path, std::size_t move) const {
    return all_paths()[path].early && bytes_to_.at(peer(move)) <= constants_.eager_small;
  }
  // A path of one pass has no advantage where it leaves the program more than prices miss by.
  int preference(std::size_t path, std::size_t move) const {
    if (short_and_early(path, move)) return -1;
    constexpr int kStaged = 2;
    const Offer& one = offer(move, path);
    return one.reuse > noise(move) * one.seconds ? std::max(preference(path), kStaged) : preference(path);
  }
  static bool overlaps(std::size_t path) { return all_paths()[path].latencies_overlap; }

  // Relative error of the prices. It is larger for host memory, because processors also do other work while they are
  // measured.
  double noise(std::size_t move) const {
    const Move& m = problem_.moves[moves_[move]];
    return facts_.of(m.src_rank, m.src).memory == Memory::device ? constants_.noise_device : constants_.noise_host;
  }

  // Adds what the links to a peer cost besides their moves. A link costs its latency. Where latencies pass at the same
  // time, the first link costs nothing more and every further one a share of its latency.
  void count_links(const Links& links, const std::vector<std::size_t>& resources, int times) {
    bool served = false;
    for (const auto& [path, use] : links) {
      if (!overlaps(path)) {
        cost_.add(resources[path], times * use.latency);
      } else if (std::exchange(served, true)) {
        const auto part = static_cast<Femto>(static_cast<double>(use.latency) * constants_.second_link);
        cost_.add(resources[path], times * part);
      }
    }
  }

  void count(std::size_t i, int times) {
    const std::size_t path = chosen_[i];
    const Femto latency = femto(offer(i, path).latency);
    const std::vector<std::size_t>& resources = resources_[i];
    const Femto seconds = times * femto(offer(i, path).seconds);
    cost_.add(resources[path], seconds + times * femto(offer(i, path).reuse));
    // Else the unpacking would seem to leave the peers time to fetch other pieces meanwhile.
    if (helped_ && all_paths()[path].both_cores && resources[path] == static_cast<std::size_t>(Resource::core))
      cost_.keep(static_cast<std::size_t>(Resource::peer_core), seconds);
    if (overlaps(path)) cost_.overlap(resources[path], latency, times);
    Links& links = links_[peer(i)];
    count_links(links, resources, -1);
    LinkUse& use = links[path];
    use.latency = latency;
    if ((use.moves += times) == 0) links.erase(path);
    count_links(links, resources, +1);
  }
  void take(std::size_t i, std::size_t path) {
    chosen_[i] = path;
    count(i, +1);
  }
  void change(std::size_t i, std::size_t path) {
    count(i, -1);
    take(i, path);
  }

  bool consider(std::span<const std::size_t> members, std::size_t path) {
    bool changes = false;
    for (const std::size_t i : members) {
      if (!offer(i, path).usable) return false;
      changes = changes || chosen_[i] != path;
    }
    if (!changes) return false;
    // If some pieces of a peer take the path already, the others may join them for any gain, because one link is
    // simpler than two. But pieces of whole cache lines do not change from one pass to two: when caches hold more than
    // they did during the measurement, the second pass is slower than its price.
    const auto may_join = [&](std::size_t i) {
      return preference(path) <= preference(chosen_[i]) || problem_.moves[moves_[i]].shares_lines();
    };
    const bool joins = members.size() > 1 &&
                       std::any_of(members.begin(), members.end(), [&](std::size_t i) { return chosen_[i] == path; }) &&
                       std::all_of(members.begin(), members.end(), may_join);
    double least = 0;  // seconds that a change must gain to be more than measuring error
    for (const std::size_t i : members) {
      // A change to another resource makes pieces travel at the same time, which is more than measuring error.
      const Offer& now = offer(i, chosen_[i]);
      const double whole = now.seconds + now.reuse + (short_and_early(chosen_[i], i) ? now.latency : 0);
      if (!joins && resources_[i][chosen_[i]] == resources_[i][path]) least += whole * noise(i);
    }
    std::vector<std::size_t> before;
    for (const std::size_t i : members) {
      before.push_back(chosen_[i]);
      change(i, path);
    }
    const auto now = cost_.value();
    const bool noise_only = least > 0 && static_cast<double>(best_.second - now.second) < least * kPerSecond;
    if (now < best_ && !noise_only) {
      best_ = now;
      return true;
    }
    for (std::size_t m = 0; m < members.size(); ++m) change(members[m], before[m]);
    return false;
  }

  // The cheapest path for the move, or the one of lowest `preference` among those that cost about the same. `one_core`:
  // among those that do not keep both cores busy, if there is one.
  std::size_t best_alone(std::size_t move, bool one_core) const {
    const std::size_t paths = all_paths().size();
    const auto fits = [&](std::size_t p) { return offer(move, p).usable && !(one_core && all_paths()[p].both_cores); };
    const auto seconds = [&](std::size_t p) {
      return offer(move, p).latency + offer(move, p).seconds + offer(move, p).reuse;
    };
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < paths; ++p) {
      if (fits(p)) least = std::min(least, seconds(p));
    }
    std::size_t best = paths;
    for (std::size_t p = 0; p < paths; ++p) {
      if (!fits(p) || seconds(p) > least * (1 + noise(move))) continue;
      if (best == paths ||
          std::pair(preference(p, move), seconds(p)) < std::pair(preference(best, move), seconds(best)))
        best = p;
    }
    return best == paths && one_core ? best_alone(move, false) : best;
  }

  const Constants& constants_;
  const Problem& problem_;
  const Facts& facts_;
  std::vector<std::size_t> moves_;
  const Offers& offers_;
  bool helped_ = false;
  std::map<int, std::int64_t> bytes_to_;             // of the moves to each peer
  std::vector<std::vector<std::size_t>> resources_;  // [move][path]
  std::vector<std::size_t> chosen_;                  // per move
  std::map<int, Links> links_;                       // per peer
  Cost cost_;
  std::pair<double, Femto> best_;
};

}  // namespace tasuki
