// Parts: see parts.hpp.
#include "planner/parts.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "layout/cut.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

namespace {

// Smaller pieces take a network about as long as it takes to start.
constexpr std::int64_t kLeastCut = 65536;

// The dimension along which the copy is cut: the outermost that has enough steps. `ndims`: its blocks are cut.
int cut_dimension(const StridedCopy& copy) {
  int d = 0;
  while (d < copy.ndims && copy.dims[static_cast<std::size_t>(d)].count < kShares) ++d;
  return d;
}

// Steps `begin` to `end` of that dimension, or so many units of all blocks.
StridedCopy between(const StridedCopy& copy, int dimension, std::int64_t begin, std::int64_t end) {
  if (dimension == copy.ndims) return reordered(bytes_of(copy, begin * kCutUnit, std::min(end * kCutUnit, copy.block)));
  if (dimension == 0) return reordered(steps_of(copy, begin, end));  // which may have lists
  StridedCopy part = copy;
  auto& dim = part.dims[static_cast<std::size_t>(dimension)];
  part.src_offset += begin * dim.src_stride;
  part.dst_offset += begin * dim.dst_stride;
  dim.count = end - begin;
  return reordered(part);
}

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
    const int d = cut_dimension(copy);
    const std::int64_t count =
        d < copy.ndims ? copy.dims[static_cast<std::size_t>(d)].count : (copy.block + kCutUnit - 1) / kCutUnit;
    const std::int64_t at = count * share / kShares;
    parts.first.copies.push_back(between(copy, d, 0, at));
    parts.second.copies.push_back(between(copy, d, at, count));
  }
  return parts;
}

}  // namespace

bool may_be_cut(const Move& move) {
  if (move.src_rank == move.dst_rank || move.bytes() < kLeastCut || move.copies.size() != 1) return false;
  const StridedCopy& copy = move.copies.front();
  if (move.record > 0) return false;  // which no unit need hold whole
  return !move.relayed && move.chunk == 0 && (cut_dimension(copy) < copy.ndims || copy.block >= kShares * kCutUnit);
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
