// Neighbour moves: see neighbour_moves.hpp.
#include "collectives/neighbour_moves.hpp"

#include <fmt/format.h>

#include "layout/sequence.hpp"

namespace tasuki {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

int size_of(const std::vector<int>& list) {
  return static_cast<int>(list.size());
}

// How often `rank` stands in the list before entry `end`.
int times(const std::vector<int>& list, int rank, int end) {
  int count = 0;
  for (int i = 0; i < end; ++i) count += list[at(i)] == rank ? 1 : 0;
  return count;
}

int entry(const std::vector<int>& list, int rank, int time) {
  for (int i = 0; i < size_of(list); ++i)
    if (list[at(i)] == rank && time-- == 0) return i;
  return -1;
}

}  // namespace

int partner_of(const std::vector<NeighbourBlocks>& all, int rank, int i, int other) {
  const NeighbourBlocks& mine = all[at(rank)];
  const NeighbourBlocks& theirs = all[at(other)];
  if (mine.of_grid) return (i ^ 1) < size_of(theirs.from) && theirs.from[at(i ^ 1)] == rank ? i ^ 1 : -1;
  return entry(theirs.from, rank, times(mine.to, other, i));
}

std::string misfit_of(const std::vector<NeighbourBlocks>& all) {
  const auto ranks = static_cast<int>(all.size());
  for (int a = 0; a < ranks; ++a) {
    const NeighbourBlocks& mine = all[at(a)];
    for (int i = 0; i < size_of(mine.to); ++i) {
      const int b = mine.to[at(i)];
      if (b < 0) continue;
      const int partner = partner_of(all, a, i, b);
      if (partner < 0)
        return fmt::format(
            "rank {} names rank {} in 'to' {} times, but rank {} names rank {} in 'from' {} times; they must be equal",
            a, b, times(mine.to, b, size_of(mine.to)), b, a, times(all[at(b)].from, a, size_of(all[at(b)].from)));
      const std::int64_t sent = mine.sent[at(i)].size();
      const std::int64_t received = all[at(b)].received[at(partner)].size();
      if (received != sent)
        return fmt::format(
            "rank {} sends {} bytes to rank {} (its block {}), which receives {} from it (its block {}); they must be "
            "equal",
            a, sent, b, i, received, partner);
    }
    for (int i = 0; i < size_of(mine.from); ++i) {
      const int b = mine.from[at(i)];
      if (b < 0) continue;
      const int named = times(mine.from, b, size_of(mine.from));
      const int sent = times(all[at(b)].to, a, size_of(all[at(b)].to));
      if (named != sent)
        return fmt::format(
            "rank {} names rank {} in 'from' {} times, but rank {} names rank {} in 'to' {} times; they must be equal",
            a, b, named, b, a, sent);
    }
  }
  return {};
}

ByteRange range_of(const std::vector<Layout>& blocks, const std::vector<int>& ranks) {
  ByteRange range;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (ranks[i] >= 0) range.include({blocks[i].true_lower_bound(), blocks[i].true_upper_bound()});
  return range;
}

Problem neighbour_problem(const std::string& operation, const std::vector<NeighbourBlocks>& all, int rank) {
  Problem problem;
  problem.operation = operation;
  problem.rank = rank;
  problem.buffers = {{"in", Role::input}, {"out", Role::output}};
  for (int from = 0; from < static_cast<int>(all.size()); ++from) {
    const NeighbourBlocks& theirs = all[at(from)];
    for (int i = 0; i < size_of(theirs.to); ++i) {
      const int to = theirs.to[at(i)];
      if (to < 0 || (from != rank && to != rank) || theirs.sent[at(i)].size() == 0) continue;
      const int block = partner_of(all, from, i, to);
      Move move;
      move.seq = i;
      move.src_rank = from;
      move.dst_rank = to;
      move.src = 0;
      move.dst = 1;
      const NeighbourBlocks& its = all[at(to)];
      const Layout src = moved(theirs.sent[at(i)], -range_of(theirs.sent, theirs.to).begin);
      const Layout dst = moved(its.received[at(block)], -range_of(its.received, its.from).begin);
      for (const StridedCopy& copy : zip(src, dst)) move.copies.push_back(reordered(copy));
      move.label = fmt::format("block {} to {}", i, block);
      problem.moves.push_back(std::move(move));
    }
  }
  mark_mutual(problem.moves);
  return problem;
}

}  // namespace tasuki
