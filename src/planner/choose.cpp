// Choosing a path for every move: offers from all paths, then the assignment that costs least (`Assignment`).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "planner/assignment.hpp"
#include "planner/parts.hpp"
#include "planner/planner.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

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

// The offers on one network only, for the moves that have some on it. `network_of(i)` says which one; empty: any.
template <class NetworkOf>
Offers only(const Machine& machine, const Problem& problem, const std::vector<std::size_t>& moves, Offers offers,
            const NetworkOf& network_of) {
  const auto on = [&](std::size_t i, std::size_t p, Resource resource) {
    const int peer = problem.moves[moves[i]].dst_rank;
    return offers[i][p].usable && resource_of(machine, all_paths()[p], problem.rank, peer) == resource;
  };
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const std::optional<Resource> network = network_of(i);
    if (!network) continue;
    const Resource other = *network == Resource::links ? Resource::network : Resource::links;
    bool any = false;
    for (std::size_t p = 0; p < offers[i].size(); ++p) any = any || on(i, p, *network);
    for (std::size_t p = 0; any && p < offers[i].size(); ++p)
      if (on(i, p, other)) offers[i][p] = Offer::no("another network");
  }
  return offers;
}

// Whether both networks offer to carry a move to a peer.
bool by_both(const Machine& machine, const Problem& problem, int peer, const std::vector<Offer>& offers) {
  bool links = false, network = false;
  for (std::size_t p = 0; p < offers.size(); ++p) {
    if (!offers[p].usable) continue;
    const Resource one = resource_of(machine, all_paths()[p], problem.rank, peer);
    links = links || one == Resource::links;
    network = network || one == Resource::network;
  }
  return links && network;
}

// Whether both networks have paths for the memory of some move that leaves the rank, usable or not.
bool may_use_both(const Machine& machine, const Problem& problem, const Facts& facts) {
  return std::ranges::any_of(problem.moves, [&](const Move& move) {
    if (move.src_rank != problem.rank || move.dst_rank == problem.rank) return false;
    const Memory memory = facts.of(move.src_rank, move.src).memory;
    const auto any_on = [&](Resource network) {
      return std::ranges::any_of(all_paths(), [&](const Path& path) {
        return path.memory == memory && resource_of(machine, path, move.src_rank, move.dst_rank) == network;
      });
    };
    return any_on(Resource::links) && any_on(Resource::network);
  });
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
    if (!offers[p].usable) continue;
    const bool worse = any_known ? !known(p) : any_on_links && !on_links(p);
    if (worse && !names(problem.wanted, all_paths()[p])) offers[p] = Offer::no("its price is not known");
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

// Whether no usable path offers to carry what is asked for.
bool none_usable(const std::vector<Offer>& offers) {
  return std::none_of(offers.begin(), offers.end(), [](const Offer& offer) { return offer.usable; });
}

// What leaves a rank, and the offers for it. A move that no path can carry is left out.
struct Leaving {
  std::vector<std::size_t> moves;
  Offers offers;
};
Leaving leaving(const Machine& machine, const Problem& problem, const Facts& facts) {
  Leaving all;
  const std::int64_t bytes_moved = moved(problem);
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    if (move.src_rank != problem.rank) continue;
    std::vector<Offer> offers = offers_for(machine, problem, facts, move, bytes_moved, false);
    drop_guesses(machine, problem, move, offers);
    if (none_usable(offers)) continue;
    all.moves.push_back(i);
    all.offers.push_back(std::move(offers));
  }
  return all;
}

bool both_networks(const Machine& machine, const Problem& problem, const Leaving& all) {
  for (std::size_t i = 0; i < all.moves.size(); ++i)
    if (by_both(machine, problem, problem.moves[all.moves[i]].dst_rank, all.offers[i])) return true;
  return false;
}

// By direction (of moves without one, -1, first): how many of `kShares` shares of each piece go by the network outside.
using Shares = std::vector<int>;
std::size_t direction_of(const Move& move) {
  return static_cast<std::size_t>(std::int64_t{move.direction} + 1);
}

// What leaves a rank, some of it in parts, and the paths that cost least.
struct Solution {
  std::optional<Problem> parts;  // empty: nothing is cut
  Leaving leaving;
  std::vector<std::size_t> paths;
  std::pair<double, Femto> value;
};

// Each part on its network; what is not cut, too, where directions decide.
void solve_by(const Machine& machine, const Problem& problem, const Facts& facts, const Shares& shares,
              Solution& solution) {
  const Leaving& all = solution.leaving;
  const bool by_direction = decided_by_directions(machine);
  const Offers own = only(machine, problem, all.moves, all.offers, [&](std::size_t i) -> std::optional<Resource> {
    const Move& move = problem.moves[all.moves[i]];
    if (move.part == 0 && !by_direction) return {};
    const bool outside = move.part == 0 ? 2 * shares[direction_of(move)] >= kShares : move.part == 1;
    return outside ? Resource::network : Resource::links;
  });
  Assignment assignment(machine, problem, facts, all.moves, own);
  solution.paths = assignment.solve();
  solution.value = assignment.value();
}

// Empty if the shares cut nothing, or parts that no path can carry.
std::optional<Solution> in_parts_by(const Machine& machine, const Problem& problem, const Facts& facts,
                                    const Leaving& whole, const Shares& shares) {
  std::vector<int> of_moves(problem.moves.size(), 0);
  for (std::size_t i = 0; i < whole.moves.size(); ++i) {
    const Move& move = problem.moves[whole.moves[i]];
    if (may_be_cut(move) && by_both(machine, problem, move.dst_rank, whole.offers[i]))
      of_moves[whole.moves[i]] = shares[direction_of(move)];
  }
  Solution solution;
  solution.parts = in_parts(problem, of_moves);
  if (!solution.parts) return {};
  solution.leaving = leaving(machine, *solution.parts, facts);
  const auto sent = std::count_if(solution.parts->moves.begin(), solution.parts->moves.end(),
                                  [&](const Move& move) { return move.src_rank == problem.rank; });
  if (std::ssize(solution.leaving.moves) < sent) return {};
  solve_by(machine, *solution.parts, facts, shares, solution);
  return solution;
}

// Direction after direction, whether both networks carry its pieces together: if that saves more than prices do not
// tell. `least`: the value without.
void cut_pieces(const Machine& machine, const Problem& problem, const Facts& facts, const Leaving& whole,
                std::pair<double, Femto> least, Shares& shares) {
  std::vector<bool> large(shares.size(), false);
  for (const std::size_t i : whole.moves)
    if (may_be_cut(problem.moves[i])) large[direction_of(problem.moves[i])] = true;
  double share = 1 - machine.constants.further_network;
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (!large[d]) continue;
    int best = shares[d];
    for (int first = 1; first < kShares; ++first) {
      shares[d] = first;
      const std::optional<Solution> solution = in_parts_by(machine, problem, facts, whole, shares);
      if (!solution || solution->value.first >= least.first * share) continue;
      best = first;
      least = solution->value;
      share = 1;
    }
    shares[d] = best;
  }
}

// Where directions decide: all of them on one network, or two networks at once if that saves the share of the time that
// prices do not tell.
Shares shares_of_directions(const Machine& machine, const Problem& problem, const Facts& facts, Leaving whole) {
  Solution solution;
  solution.leaving = std::move(whole);
  const std::uint32_t all = (1U << (problem.directions + 1)) - 1;
  const auto shares_of = [&](std::uint32_t outside) {
    Shares shares;
    for (int d = 0; d <= problem.directions; ++d) shares.push_back((outside >> d & 1U) != 0 ? kShares : 0);
    return shares;
  };
  const auto value = [&](std::uint32_t outside) {
    solve_by(machine, problem, facts, shares_of(outside), solution);
    return solution.value;
  };
  std::uint32_t best = 0;
  auto least = value(best);
  if (const auto network = value(all); network.first < least.first) {
    best = all;
    least = network;
  }
  double share = 1 - machine.constants.further_network;
  for (std::uint32_t outside = 1; outside < all; ++outside) {
    const auto both = value(outside);
    if (both.first >= least.first * share) continue;
    best = outside;
    least = both;
    share = 1;
  }
  Shares shares = shares_of(best);
  cut_pieces(machine, problem, facts, solution.leaving, least, shares);
  return shares;
}

// The same by what the busiest rank sends. The memory of ranks that are no peers is taken to be like this rank's.
Shares shares_of_busiest(const Machine& machine, const Problem& problem, const Facts& facts) {
  std::vector<BufferFact> own;
  for (int b = 0; b < std::ssize(problem.buffers); ++b) own.push_back(facts.of(problem.rank, b));
  const auto shared = std::make_shared<const std::vector<BufferFact>>(std::move(own));
  Problem busiest = *problem.busiest;
  busiest.wanted = problem.wanted;
  Facts alike;
  alike.set(busiest.rank, shared);
  for (const int peer : peers_of(busiest.moves, busiest.rank)) alike.set(peer, shared);
  return shares_of_directions(machine, busiest, alike, leaving(machine, busiest, alike));
}

// Where ranks are joined by two networks, each is tried by itself. Both are used at once if that saves a share of the
// time that is more than what prices do not tell. Moves that wait for each other do not travel at once, so they stay on
// one network.
std::vector<std::size_t> best_paths(const Machine& machine, const Problem& problem, const Facts& facts,
                                    const std::vector<std::size_t>& moves, const Offers& offers) {
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
    const Offers own = only(machine, problem, moves, offers, [&](std::size_t) { return std::optional(network); });
    starts.push_back(Assignment(machine, problem, facts, moves, own).solve());
    keep_least(starts.back(), 1);
  }
  if (problem.compose) return best;
  const auto alone = least;
  const auto keep_better = [&](const std::vector<std::size_t>& paths) {
    keep_least(paths, least == alone ? 1 - machine.constants.further_network : 1);
  };
  starts.push_back(Assignment(machine, problem, facts, moves, offers).solve());
  for (const auto& start : starts) keep_better(Assignment(machine, problem, facts, moves, offers).solve_from(start));
  return best;
}

// The paths of all that leaves the rank, and whether some of it is cut.
Solution solved(const Machine& machine, const Problem& problem, const Facts& facts, Leaving all, Shares& shares) {
  Solution solution;
  solution.leaving = std::move(all);
  const Leaving& whole = solution.leaving;
  shares.assign(static_cast<std::size_t>(problem.directions) + 1, 0);
  if (!both_networks(machine, problem, whole)) {
    solution.paths = Assignment(machine, problem, facts, whole.moves, whole.offers).solve();
    return solution;
  }
  if (!problem.compose && decided_by_directions(machine)) {
    shares = problem.busiest ? shares_of_busiest(machine, problem, facts)
                             : shares_of_directions(machine, problem, facts, whole);
    if (std::optional<Solution> parts = in_parts_by(machine, problem, facts, whole, shares)) return std::move(*parts);
    solve_by(machine, problem, facts, shares, solution);
    return solution;
  }
  solution.paths = best_paths(machine, problem, facts, whole.moves, whole.offers);
  if (problem.compose) return solution;
  Assignment assignment(machine, problem, facts, whole.moves, whole.offers);
  assignment.assign(solution.paths);
  cut_pieces(machine, problem, facts, whole, assignment.value(), shares);
  if (std::optional<Solution> parts = in_parts_by(machine, problem, facts, whole, shares)) return std::move(*parts);
  return solution;
}

}  // namespace

bool decided_by_directions(const Machine& machine) {
  return machine.inside.collision < 1;
}

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
      // Collectives are compared by what their plans are predicted to take, so their pieces are, too.
      if (problem.compose) offer.reuse = 0;
      if (const char* why_not = out_of_order(path, move); offer.usable && why_not != nullptr)
        offer = Offer::no(why_not);
      const std::int64_t most = move.src_rank == move.dst_rank
                                    ? 0
                                    : problem.scratch_to(problem.rank == move.src_rank ? move.dst_rank : move.src_rank);
      if (offer.usable && most > 0) {
        const std::int64_t least = path.protocol->least_scratch(move, machine.constants);
        if (least > most)
          offer = Offer::no(fmt::format("needs {} bytes of scratch, of which it may have {}", least, most));
      }
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
  Leaving all = leaving(machine, problem, facts);
  std::size_t found = 0;
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    if (move.src_rank != problem.rank) continue;
    if (found == all.moves.size() || all.moves[found] != i)
      throw PathUnusable(no_path(problem, move, offers_for(machine, problem, facts, move, moved(problem))));
    ++found;
  }
  Shares shares;
  const Solution solution = solved(machine, problem, facts, std::move(all), shares);
  const std::vector<Move>& moves = solution.parts ? solution.parts->moves : problem.moves;
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < solution.paths.size(); ++i) {
    const Move& move = moves[solution.leaving.moves[i]];
    const std::size_t path = solution.paths[i];
    const Offer& offer = solution.leaving.offers[i][path];
    const std::int32_t share = move.part == 0 ? 0 : shares[direction_of(move)];
    decisions.push_back(
        {move.dst_rank, static_cast<std::int32_t>(path), move.seq, move.part, share, offer.latency, offer.seconds});
  }
  return decisions;
}

std::vector<NetworkShare> balance(const Machine& machine, const Problem& problem, const Facts& facts,
                                  const std::vector<Choice>& choices) {
  if (!may_use_both(machine, problem, facts)) return {};
  Leaving all;
  std::vector<std::size_t> paths;
  const std::int64_t bytes_moved = moved(problem);
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    if (move.src_rank != problem.rank || move.dst_rank == problem.rank) continue;
    all.offers.push_back(offers_for(machine, problem, facts, move, bytes_moved, false));
    drop_guesses(machine, problem, move, all.offers.back());
    const auto path = static_cast<std::size_t>(choices[i].path - all_paths().data());
    all.offers.back()[path] = Offer::yes(choices[i].latency, choices[i].seconds);
    paths.push_back(path);
    all.moves.push_back(i);
  }
  if (!both_networks(machine, problem, all)) return {};
  Assignment assignment(machine, problem, facts, all.moves, all.offers);
  assignment.assign(paths);
  // Alone a network would carry whole pieces.
  Problem whole = problem;
  if (problem.uncut) {
    whole.moves = *problem.uncut;
    std::erase_if(whole.moves, [&](const Move& move) { return move.dst_rank == problem.rank; });
    all = leaving(machine, whole, facts);
  }
  std::vector<NetworkShare> shares;
  for (const Resource network : {Resource::links, Resource::network}) {
    NetworkShare& share = shares.emplace_back();
    share.network = network;
    for (std::size_t i = 0, m = 0; i < problem.moves.size(); ++i) {
      const Move& move = problem.moves[i];
      if (move.src_rank != problem.rank || move.dst_rank == problem.rank) continue;
      if (assignment.resource(m++) == network) share.bytes += move.bytes();
    }
    share.seconds = assignment.busy(network);
    const Offers own = only(machine, whole, all.moves, all.offers, [&](std::size_t) { return std::optional(network); });
    Assignment alone(machine, whole, facts, all.moves, own);
    (void)alone.solve();
    share.alone = alone.busy(network);
    for (std::size_t i = 0; i < all.moves.size(); ++i)
      if (alone.resource(i) != network) share.carries_all = false;
  }
  return shares;
}

std::vector<Choice> settle(const Problem& problem, const DecisionsOf& decisions_of) {
  using Key = std::tuple<int, int, std::int64_t, int>;
  std::vector<std::pair<Key, std::size_t>> by_seq;
  by_seq.reserve(problem.moves.size());
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    by_seq.emplace_back(Key{move.src_rank, move.dst_rank, move.seq, move.part}, i);
  }
  std::sort(by_seq.begin(), by_seq.end());
  std::vector<int> ranks = peers_of(problem.moves, problem.rank);
  ranks.push_back(problem.rank);
  std::vector<Choice> choices(problem.moves.size());
  for (const int rank : ranks) {
    for (const Decision& d : decisions_of(rank)) {
      const Key key{rank, d.dst_rank, d.seq, d.part};
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
