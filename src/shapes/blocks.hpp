// Blocks that ranks send to ranks that they name: who belongs to whom, and the moves. Neighbour collectives and
// exchanges are made of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/elements.hpp"
#include "protocols/move.hpp"

namespace tasuki {

/// What a rank sends to one rank, or receives from one.
struct PeerBlock {
  int rank = -1;                ///< -1: nobody
  std::int64_t number = 0;      ///< by which the user knows it; ascending in a list
  std::vector<Elements> parts;  ///< one for each part of `BlockMoves`, relative to the part's buffer
};

/// The blocks of a rank. Those that it sends to a rank belong to those that this rank receives from it, in their order.
struct PeerBlocks {
  std::vector<PeerBlock> sent, received;
  /// The ranks are the two beside it in each dimension of a grid: block i belongs to block i ^ 1.
  bool of_grid = false;
};

/// For each block that rank `from` sends to rank `to`, and each that `to` receives from `from`: the places in the lists
/// of the two blocks that belong together. -1: there is none.
std::vector<std::pair<int, int>> block_pairs(const PeerBlocks& sender, int from, const PeerBlocks& receiver, int to);

/// How the blocks of two ranks do not fit together.
struct BlockMisfit {
  int from = 0, to = 0;
  std::int64_t sent = 0, received = 0;  ///< how many blocks; or, if `part` is not -1, how many bytes of that part
  int part = -1;
  std::int64_t sent_number = 0, received_number = 0;  ///< of the blocks, if `part` is not -1
};
/// The first misfit of what rank `from` sends to rank `to`. None: they fit.
std::optional<BlockMisfit> misfit(const PeerBlocks& sender, int from, const PeerBlocks& receiver, int to);

/// The moves of blocks.
struct BlockMoves {
  /// A part of every block: from one user buffer of the sender to one of the receiver.
  struct Part {
    int src = 0;
    int dst = 0;
    std::string name;         ///< for labels
    DType add = DType::none;  ///< not `none`: the receiver combines what it gets, in the order of its blocks
    ReduceOp op = ReduceOp::sum;
  };
  std::vector<Part> parts;
  bool lists = false;  ///< irregular runs become copies with lists

  /// The moves that leave or reach the rank. `blocks_of` is asked for the rank's own blocks and for those of the ranks
  /// that it names; all fit together. Throws `Error` if a layout that is received names a byte twice; lists do not.
  std::vector<Move> of(int rank, const std::function<const PeerBlocks&(int rank)>& blocks_of) const;
};

}  // namespace tasuki
