// Choosing a path for every move: offers from all paths, then the assignment that costs least (`Assignment`).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "planner/planner.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Costs are added up in femtoseconds, as whole numbers. Such sums do not depend on their order, so a cost can be
// updated when a single move changes its path, and every compiler comes to the same choice.
using Femto = std::int64_t;
constexpr double kPerSecond = 1e15;
Femto femto(double seconds) {
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
    const bool helped = 2 * arrives < leaves;
    for (const std::size_t m : moves_) {
      auto& by_path = resources_.emplace_back();
      for (const Path& path : all_paths()) {
        const Resource one = resource_of(machine, path, problem.rank, problem.moves[m].dst_rank);
        by_path.push_back(static_cast<std::size_t>(one == Resource::peer_core && !helped ? Resource::core : one));
      }
    }
  }

  // Starts with the best path of each move by itself. Then changes the path of single moves, and of all moves to one
  // peer, as long as that lowers the cost.
  std::vector<std::size_t> solve() {
    std::vector<std::size_t> start;
    for (std::size_t i = 0; i < moves_.size(); ++i) start.push_back(best_alone(i));
    return solve_from(start);
  }
  // The same from another start.
  std::vector<std::size_t> solve_from(const std::vector<std::size_t>& start) {
    assign(start);
    std::map<int, std::vector<std::size_t>> by_peer;
    for (std::size_t i = 0; i < moves_.size(); ++i) by_peer[peer(i)].push_back(i);
    const std::size_t paths = all_paths().size();
    bool better = true;
    for (int round = 0; better && round < 8; ++round) {
      better = false;
      for (const auto& [rank, members] : by_peer) {
        for (std::size_t p = 0; p < paths; ++p) better = consider(members, p) || better;
      }
      for (std::size_t i = 0; i < moves_.size(); ++i) {
        for (std::size_t p = 0; p < paths; ++p) better = consider({i}, p) || better;
      }
    }
    return chosen_;
  }

  void assign(const std::vector<std::size_t>& paths) {
    chosen_.resize(moves_.size());
    for (std::size_t i = 0; i < moves_.size(); ++i) take(i, paths[i]);
    best_ = cost_.value();
  }
  std::pair<double, Femto> value() const { return cost_.value(); }
  Resource resource(std::size_t i) const { return static_cast<Resource>(resources_[i][chosen_[i]]); }
  double busy(Resource resource) const { return static_cast<double>(cost_.busy(resource)) / kPerSecond; }

 private:
  // The moves to one peer on one path: how many, and the latency of their link, which they share.
  struct LinkUse {
    int moves = 0;
    Femto latency = 0;
  };
  using Links = std::map<std::size_t, LinkUse>;

  const Offer& offer(std::size_t move, std::size_t path) const { return offers_[move][path]; }
  int peer(std::size_t move) const { return problem_.moves[moves_[move]].dst_rank; }
  static int preference(std::size_t path) { return all_paths()[path].preference; }
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
    cost_.add(resources[path], times * femto(offer(i, path).seconds));
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

  bool consider(const std::vector<std::size_t>& members, std::size_t path) {
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
    bool changes = false;
    for (const std::size_t i : members) {
      if (!offer(i, path).usable) return false;
      changes = changes || chosen_[i] != path;
      // A change to another resource makes pieces travel at the same time, which is more than measuring error.
      if (!joins && resources_[i][chosen_[i]] == resources_[i][path]) least += offer(i, chosen_[i]).seconds * noise(i);
    }
    if (!changes) return false;
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

  // The cheapest path for the move, or the one of lowest `preference` among those that cost about the same.
  std::size_t best_alone(std::size_t move) const {
    const auto seconds = [&](std::size_t p) { return offer(move, p).latency + offer(move, p).seconds; };
    const std::size_t paths = all_paths().size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < paths; ++p) {
      if (offer(move, p).usable) least = std::min(least, seconds(p));
    }
    std::size_t best = paths;
    for (std::size_t p = 0; p < paths; ++p) {
      if (!offer(move, p).usable || seconds(p) > least * (1 + noise(move))) continue;
      if (best == paths || std::pair(preference(p), seconds(p)) < std::pair(preference(best), seconds(best))) best = p;
    }
    return best;
  }

  const Constants& constants_;
  const Problem& problem_;
  const Facts& facts_;
  std::vector<std::size_t> moves_;
  const Offers& offers_;
  std::vector<std::vector<std::size_t>> resources_;  // [move][path]
  std::vector<std::size_t> chosen_;                  // per move
  std::map<int, Links> links_;                       // per peer
  Cost cost_;
  std::pair<double, Femto> best_;
};

std::string no_path(const Problem& problem, const Move& move, const std::vector<Offer>& offers) {
  std::string text =
      fmt::format("no path can carry '{}' from rank {} to rank {}", move.label, move.src_rank, move.dst_rank);
  if (const std::string wanted = wanted_in(problem.wanted, move.direction); wanted != "auto")
    text += fmt::format(" when path '{}' is forced", wanted);
  text += " (";
  const char* separator = "";
  for (std::size_t p = 0; p < offers.size(); ++p) {
    if (all_paths()[p].name.starts_with("self")) continue;
    text += fmt::format("{}{}: {}", separator, all_paths()[p].name, offers[p].why_not);
    separator = "; ";
  }
  return text + ")";
}

// The offers on one network only, for the moves that have some on it. `network_of(i)` says which one.
template <class NetworkOf>
Offers only(const Machine& machine, const Problem& problem, const std::vector<std::size_t>& moves, Offers offers,
            const NetworkOf& network_of) {
  const auto on = [&](std::size_t i, std::size_t p, Resource resource) {
    const int peer = problem.moves[moves[i]].dst_rank;
    return offers[i][p].usable && resource_of(machine, all_paths()[p], problem.rank, peer) == resource;
  };
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Resource network = network_of(i);
    const Resource other = network == Resource::links ? Resource::network : Resource::links;
    bool any = false;
    for (std::size_t p = 0; p < offers[i].size(); ++p) any = any || on(i, p, network);
    for (std::size_t p = 0; any && p < offers[i].size(); ++p)
      if (on(i, p, other)) offers[i][p] = Offer::no("another network");
  }
  return offers;
}

// Whether both networks offer to carry one of the moves.
bool both_networks(const Machine& machine, const Problem& problem, const std::vector<std::size_t>& moves,
                   const Offers& offers) {
  for (std::size_t i = 0; i < moves.size(); ++i) {
    bool links = false, network = false;
    for (std::size_t p = 0; p < offers[i].size(); ++p) {
      if (!offers[i][p].usable) continue;
      const Resource one = resource_of(machine, all_paths()[p], problem.rank, problem.moves[moves[i]].dst_rank);
      links = links || one == Resource::links;
      network = network || one == Resource::network;
    }
    if (links && network) return true;
  }
  return false;
}

// Where ranks are joined by two networks, each is tried by itself. Both are used at once if that saves a share of the
// time that is more than what prices do not tell. Moves that wait for each other do not travel at once, so they stay on
// one network.
std::vector<std::size_t> best_paths(const Machine& machine, const Problem& problem, const Facts& facts,
                                    const std::vector<std::size_t>& moves, const Offers& offers) {
  if (!both_networks(machine, problem, moves, offers))
    return Assignment(machine, problem, facts, moves, offers).solve();
  std::vector<std::size_t> best;
  std::pair<double, Femto> least;
  const auto keep_least = [&](const std::vector<std::size_t>& paths, double share) {
    Assignment assignment(machine, problem, facts, moves, offers);
    assignment.assign(paths);
    const auto value = assignment.value();
    if (!best.empty() && value.first >= least.first * share) return;
    least = value;
    best = paths;
  };
  std::vector<std::vector<std::size_t>> starts;
  for (const Resource network : {Resource::links, Resource::network}) {
    const Offers own = only(machine, problem, moves, offers, [&](std::size_t) { return network; });
    starts.push_back(Assignment(machine, problem, facts, moves, own).solve());
    keep_least(starts.back(), 1);
  }
  if (problem.compose) return best;
  const auto alone = least;
  const auto keep_better = [&](const std::vector<std::size_t>& paths) {
    keep_least(paths, least == alone ? 1 - machine.constants.further_network : 1);
  };
  // Where the network loses by collisions, rounds hold for all pieces of a direction together.
  if (machine.inside.collision < 1) {
    const std::uint32_t sets = 1U << (problem.directions + 1);
    for (std::uint32_t outside = 1; outside < sets; ++outside) {
      const Offers own = only(machine, problem, moves, offers, [&](std::size_t i) {
        const auto bit = static_cast<std::uint32_t>(problem.moves[moves[i]].direction + 1);
        return (outside >> bit & 1U) != 0 ? Resource::network : Resource::links;
      });
      keep_better(Assignment(machine, problem, facts, moves, own).solve());
    }
    return best;
  }
  starts.push_back(Assignment(machine, problem, facts, moves, offers).solve());
  for (const auto& start : starts) keep_better(Assignment(machine, problem, facts, moves, offers).solve_from(start));
  return best;
}

// Prices that are not known are guesses. Nothing is chosen for a guess where prices of other paths are known, nor is a
// second network used for one, unless the user names the path.
void drop_guesses(const Machine& machine, const Problem& problem, const Move& move, std::vector<Offer>& offers) {
  if (move.src_rank == move.dst_rank) return;
  const auto known = [&](std::size_t p) { return machine.cost(all_paths()[p].name).measured; };
  const auto on_links = [&](std::size_t p) {
    return resource_of(machine, all_paths()[p], move.src_rank, move.dst_rank) == Resource::links;
  };
  bool any_known = false;
  bool any_on_links = false;
  for (std::size_t p = 0; p < offers.size(); ++p) {
    any_known = any_known || (offers[p].usable && known(p));
    any_on_links = any_on_links || (offers[p].usable && on_links(p));
  }
  for (std::size_t p = 0; p < offers.size(); ++p) {
    const bool worse = any_known ? !known(p) : any_on_links && !on_links(p);
    if (offers[p].usable && worse && !names(problem.wanted, all_paths()[p]))
      offers[p] = Offer::no("its price is not known");
  }
}

// Messages of GPU memory lie between two kernels, or are asked for, once an epoch each. Those in the order of a stream
// are put there all at once, so none of them may have to wait for another.
const char* out_of_order(const Path& path, const Move& move) {
  if (path.memory != Memory::device || path.transport.empty()) return nullptr;
  if (move.chunk > 0) return "carries no chunks of a loop";
  if (move.relayed && !path.in_background) return "carries nothing that depends on what arrives first";
  return nullptr;
}

}  // namespace

std::int64_t moved(const Problem& problem) {
  std::int64_t leaves = 0;
  std::int64_t arrives = 0;
  for (const Move& move : problem.moves) {
    if (move.src_rank == problem.rank) leaves += move.bytes();
    if (move.dst_rank == problem.rank) arrives += move.bytes();
  }
  return std::max(leaves, arrives);
}

std::vector<Offer> offers_for(const Machine& machine, const Problem& problem, const Facts& facts, const Move& move,
                              std::int64_t bytes_moved, bool reasons) {
  std::vector<Offer> offers;
  offers.reserve(all_paths().size());
  const std::string wanted = wanted_in(problem.wanted, move.direction);
  const BufferFact& src = facts.of(move.src_rank, move.src);
  const BufferFact& dst = facts.of(move.dst_rank, move.dst);
  for (const Path& path : all_paths()) {
    Offer offer;
    if (src.memory != path.memory || dst.memory != path.memory) {
      if (reasons) offer.why_not = fmt::format("not for {} to {} memory", to_string(src.memory), to_string(dst.memory));
    } else {
      const bool own = path.memory == Memory::host && (!src.shared || !dst.shared);
      offer = path.offer({machine, machine.cost(path.name), forces(wanted, path), move, src, dst, own, bytes_moved});
      if (const char* why_not = out_of_order(path, move); offer.usable && why_not != nullptr)
        offer = Offer::no(why_not);
      const auto why = machine.unusable.find(path.name);
      if (offer.usable && why != machine.unusable.end()) offer = Offer::no(why->second);
    }
    // A piece that stays on its rank cannot be forced to another path.
    if (move.src_rank != move.dst_rank && offer.usable && !allows(wanted, path)) {
      offer.usable = false;
      offer.why_not = "another path is forced";
    }
    offers.push_back(std::move(offer));
  }
  return offers;
}

std::vector<Decision> choose(const Machine& machine, const Problem& problem, const Facts& facts) {
  std::vector<std::size_t> leaving;
  Offers offers;
  const std::int64_t bytes_moved = moved(problem);
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    if (move.src_rank != problem.rank) continue;
    offers.push_back(offers_for(machine, problem, facts, move, bytes_moved, false));
    drop_guesses(machine, problem, move, offers.back());
    if (std::none_of(offers.back().begin(), offers.back().end(), [](const Offer& offer) { return offer.usable; }))
      throw PathUnusable(no_path(problem, move, offers_for(machine, problem, facts, move, bytes_moved)));
    leaving.push_back(i);
  }
  const auto chosen = best_paths(machine, problem, facts, leaving, offers);
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    const Move& move = problem.moves[leaving[i]];
    const Offer& offer = offers[i][chosen[i]];
    decisions.push_back({move.dst_rank, static_cast<std::int32_t>(chosen[i]), move.seq, offer.latency, offer.seconds});
  }
  return decisions;
}

std::vector<NetworkShare> balance(const Machine& machine, const Problem& problem, const Facts& facts,
                                  const std::vector<Choice>& choices) {
  std::vector<std::size_t> leaving, paths;
  Offers offers;
  const std::int64_t bytes_moved = moved(problem);
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    if (move.src_rank != problem.rank || move.dst_rank == problem.rank) continue;
    offers.push_back(offers_for(machine, problem, facts, move, bytes_moved, false));
    drop_guesses(machine, problem, move, offers.back());
    const auto path = static_cast<std::size_t>(choices[i].path - all_paths().data());
    offers.back()[path] = Offer::yes(choices[i].latency, choices[i].seconds);
    paths.push_back(path);
    leaving.push_back(i);
  }
  if (leaving.empty() || !both_networks(machine, problem, leaving, offers)) return {};
  Assignment assignment(machine, problem, facts, leaving, offers);
  assignment.assign(paths);
  std::vector<NetworkShare> shares;
  for (const Resource network : {Resource::links, Resource::network}) {
    NetworkShare& share = shares.emplace_back();
    share.network = network;
    for (std::size_t i = 0; i < leaving.size(); ++i)
      if (assignment.resource(i) == network) share.bytes += problem.moves[leaving[i]].bytes();
    share.seconds = assignment.busy(network);
    const Offers own = only(machine, problem, leaving, offers, [&](std::size_t) { return network; });
    Assignment alone(machine, problem, facts, leaving, own);
    (void)alone.solve();
    share.alone = alone.busy(network);
    for (std::size_t i = 0; i < leaving.size(); ++i)
      if (alone.resource(i) != network) share.carries_all = false;
  }
  return shares;
}

std::vector<Choice> settle(const Problem& problem, const std::function<std::span<const Decision>(int)>& decisions_of) {
  using Key = std::tuple<int, int, std::int64_t>;
  std::vector<std::pair<Key, std::size_t>> by_seq;
  by_seq.reserve(problem.moves.size());
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    by_seq.emplace_back(Key{move.src_rank, move.dst_rank, move.seq}, i);
  }
  std::sort(by_seq.begin(), by_seq.end());
  std::vector<int> ranks = peers_of(problem.moves, problem.rank);
  ranks.push_back(problem.rank);
  std::vector<Choice> choices(problem.moves.size());
  for (const int rank : ranks) {
    for (const Decision& d : decisions_of(rank)) {
      const Key key{rank, d.dst_rank, d.seq};
      const auto found = std::lower_bound(by_seq.begin(), by_seq.end(), std::pair{key, std::size_t{0}});
      if (found == by_seq.end() || found->first != key || d.path < 0 || d.path >= std::ssize(all_paths())) continue;
      choices[found->second] = {&all_paths()[static_cast<std::size_t>(d.path)], d.latency, d.seconds};
    }
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Move& move = problem.moves[i];
    if (choices[i].path == nullptr)
      throw Error(
          fmt::format("rank {} has chosen no path for '{}' to rank {}", move.src_rank, move.label, move.dst_rank));
  }
  return choices;
}

}  // namespace tasuki
