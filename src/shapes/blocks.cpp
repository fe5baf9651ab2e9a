// Blocks: see blocks.hpp.
#include "shapes/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "planner/planner.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// The places in the list of the blocks of a rank.
std::vector<int> places(const std::vector<PeerBlock>& blocks, int rank) {
  std::vector<int> found;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].rank == rank) found.push_back(static_cast<int>(i));
  return found;
}

}  // namespace

std::vector<std::pair<int, int>> block_pairs(const PeerBlocks& sender, int from, const PeerBlocks& receiver, int to) {
  const std::vector<int> sent = places(sender.sent, to);
  const std::vector<int> received = places(receiver.received, from);
  std::vector<std::pair<int, int>> all;
  if (sender.of_grid) {
    for (const int i : sent) all.emplace_back(i, std::ranges::count(received, i ^ 1) > 0 ? i ^ 1 : -1);
    for (const int i : received)
      if (std::ranges::count(sent, i ^ 1) == 0) all.emplace_back(-1, i);
    return all;
  }
  for (std::size_t k = 0; k < std::max(sent.size(), received.size()); ++k)
    all.emplace_back(k < sent.size() ? sent[k] : -1, k < received.size() ? received[k] : -1);
  return all;
}

std::optional<BlockMisfit> misfit(const PeerBlocks& sender, int from, const PeerBlocks& receiver, int to) {
  for (const auto& [i, j] : block_pairs(sender, from, receiver, to)) {
    if (i < 0 || j < 0)
      return BlockMisfit{from, to, std::ssize(places(sender.sent, to)), std::ssize(places(receiver.received, from))};
    const PeerBlock& sent = sender.sent[at(i)];
    const PeerBlock& received = receiver.received[at(j)];
    for (std::size_t p = 0; p < sent.parts.size(); ++p)
      if (sent.parts[p].size() != received.parts[p].size())
        return BlockMisfit{
            from,           to, sent.parts[p].size(), received.parts[p].size(), static_cast<int>(p), sent.number,
            received.number};
  }
  return {};
}

std::vector<Move> BlockMoves::of(int rank, const std::function<const PeerBlocks&(int rank)>& blocks_of) const {
  std::vector<Move> moves;
  const auto add = [&](int from, int to) {
    const PeerBlocks& sender = blocks_of(from);
    const PeerBlocks& receiver = blocks_of(to);
    for (const auto& [i, j] : block_pairs(sender, from, receiver, to)) {
      const PeerBlock& sent = sender.sent[at(i)];
      const PeerBlock& received = receiver.received[at(j)];
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (sent.parts[p].size() == 0) continue;
        const Part& part = parts[p];
        Move move;
        // What is combined is combined in the order of the receiver's blocks. Of other ranks only those blocks are
        // known that concern this one, so their places tell nothing.
        const std::int64_t number = part.add == DType::none ? sent.number : received.number;
        move.seq = number * std::ssize(parts) + static_cast<std::int64_t>(p);
        move.src_rank = from;
        move.dst_rank = to;
        move.src = part.src;
        move.dst = part.dst;
        move.add = part.add;
        move.op = part.op;
        move.copies = lists ? zip_with_lists(sent.parts[p], received.parts[p]) : zip(sent.parts[p], received.parts[p]);
        for (StridedCopy& copy : move.copies) copy = reordered(copy);
        move.label = fmt::format("{} {} to {}", part.name, sent.number, received.number);
        moves.push_back(std::move(move));
      }
    }
  };
  std::set<int> senders, receivers;
  for (const PeerBlock& block : blocks_of(rank).received) senders.insert(block.rank);
  for (const PeerBlock& block : blocks_of(rank).sent) receivers.insert(block.rank);
  receivers.erase(rank);  // what it sends to itself it receives as well
  for (const int from : senders)
    if (from >= 0) add(from, rank);
  for (const int to : receivers)
    if (to >= 0) add(rank, to);
  mark_mutual(moves);
  return moves;
}

}  // namespace tasuki
