// Parts: see parts.hpp.
#include "planner/parts.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "layout/cut.hpp"

namespace tasuki {

namespace {

// Smaller pieces take a network about as long as it takes to start.
constexpr std::int64_t kLeastCut = 65536;

// The move's first `share` shares, and the others. Both ranks of a move cut it alike.
std::pair<Move, Move> cut(const Move& move, int share) {
  std::pair<Move, Move> parts{move, move};
  parts.first.part = 1;
  parts.second.part = 2;
  parts.first.label += " part 1";
  parts.second.label += " part 2";
  parts.first.copies.clear();
  parts.second.copies.clear();
  for (const StridedCopy& copy : move.copies) {
    const bool steps = copy.ndims > 0;
    const std::int64_t count = steps ? copy.dims[0].count : (copy.block + kCutUnit - 1) / kCutUnit;
    const std::int64_t at = count * share / kShares;
    const auto between = [&](std::int64_t begin, std::int64_t end) {
      return steps ? without_single_step(steps_of(copy, begin, end))
                   : bytes_of(copy, begin * kCutUnit, std::min(end * kCutUnit, copy.block));
    };
    parts.first.copies.push_back(between(0, at));
    parts.second.copies.push_back(between(at, count));
  }
  return parts;
}

}  // namespace

bool may_be_cut(const Move& move) {
  if (move.src_rank == move.dst_rank || move.bytes() < kLeastCut || move.copies.size() != 1) return false;
  const StridedCopy& copy = move.copies.front();
  return !move.relayed && move.chunk == 0 && (copy.ndims == 0 || copy.dims[0].count >= kShares);
}

std::optional<Problem> in_parts(const Problem& problem, std::span<const int> shares) {
  const auto is_cut = [](int share) { return share > 0 && share < kShares; };
  if (std::none_of(shares.begin(), shares.end(), is_cut)) return {};
  std::vector<Move> moves;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!is_cut(shares[i])) {
      moves.push_back(problem.moves[i]);
      continue;
    }
    auto [first, second] = cut(problem.moves[i], shares[i]);
    moves.push_back(std::move(first));
    moves.push_back(std::move(second));
  }
  std::optional<Problem> parts = problem;
  parts->uncut = std::make_shared<const std::vector<Move>>(std::exchange(parts->moves, std::move(moves)));
  return parts;
}

std::optional<Problem> in_parts(const Problem& problem, const DecisionsOf& decisions_of) {
  std::vector<int> ranks = peers_of(problem.moves, problem.rank);
  ranks.push_back(problem.rank);
  std::map<std::tuple<int, int, std::int64_t>, int> cut;
  for (const int rank : ranks)
    for (const Decision& d : decisions_of(rank))
      if (d.part != 0) cut[{rank, d.dst_rank, d.seq}] = d.share;
  if (cut.empty()) return {};
  std::vector<int> shares;
  for (const Move& move : problem.moves) {
    const auto found = cut.find({move.src_rank, move.dst_rank, move.seq});
    shares.push_back(found == cut.end() || !may_be_cut(move) ? 0 : found->second);
  }
  return in_parts(problem, shares);
}

}  // namespace tasuki
