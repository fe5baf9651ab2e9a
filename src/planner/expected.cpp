// Expected: see expected.hpp.
#include "planner/expected.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace tasuki {

Expected expected_of(const Problem& problem, const Facts& facts, const std::vector<Choice>& choices) {
  Expected expected;
  double own = 0, others = 0, all = 0;
  std::map<const Path*, double> shares;
  std::map<std::tuple<int, int, const Path*>, double> links;  // a link's latency is paid once
  bool exchanges = false;
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    const Choice& choice = choices[i];
    const bool leaves = move.src_rank == problem.rank;
    exchanges = exchanges || move.src_rank != move.dst_rank;
    // The receiver's core moves the bytes of some paths.
    const bool by_sender = choice.path->resource != Resource::peer_core;
    double& core = leaves == by_sender || move.src_rank == move.dst_rank ? own : others;
    double seconds = choice.seconds;
    if (links.try_emplace({move.src_rank, move.dst_rank, choice.path}, choice.latency).second)
      seconds += choice.latency;
    core += seconds;
    all += seconds;
    shares[choice.path] += seconds;
  }
  if (!exchanges) return expected;
  expected.seconds = std::max(own, others);
  for (const auto& [path, share] : shares)
    if (share > all / 2 && !path->name.starts_with("self")) expected.path = path;
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    const double price = choices[i].latency + choices[i].seconds;
    if (choices[i].path != expected.path || price <= expected.price) continue;
    expected.price = price;
    expected.move = {
        move.src_rank,
        move.dst_rank,
        move.bytes(),
        move.other_runs() + (facts.of(move.src_rank, move.src).memory == Memory::host ? move.turned_lines() : 0),
        move.whole,
        move.mutual,
        facts.of(move.src_rank, move.src).shared,
        facts.of(move.dst_rank, move.dst).shared,
        moved(problem)};
  }
  return expected;
}

}  // namespace tasuki
