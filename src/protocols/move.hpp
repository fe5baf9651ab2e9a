// What planning speaks of: user buffers as facts, moves between them, and the links that carry moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// What planning must know of where a rank keeps one user buffer; plain data that peers tell each other.
struct BufferFact {
  std::int32_t copies = 1;  ///< 1, or 2 for a pair; 0 where the rank has no part in the buffer
  std::int32_t ring = 1;    ///< 2 if the operation alternates between the copies
  std::int64_t bytes = 0;   ///< of one copy
  Memory memory = Memory::host;
  bool shared = false;         ///< peers can map it: host memory of Tasuki's, GPU memory that CUDA lends
  std::int16_t alignment = 1;  ///< largest power of two up to 16 that divides the addresses of all copies
  Home home() const;           ///< as the plan states it
  friend bool operator==(const BufferFact&, const BufferFact&) = default;
};

/// One piece that must get from one rank to another. Both ranks describe it alike.
struct Move {
  std::int64_t seq = 0;  ///< order among the moves between these two ranks in this direction, the same on both
  int src_rank = 0;
  int dst_rank = 0;
  int src = 0;  ///< user buffer of the source rank
  int dst = 0;  ///< user buffer of the destination rank
  std::vector<StridedCopy> copies;
  DType add = DType::none;  ///< not `none`: combine with the destination by `op`, do not overwrite
  ReduceOp op = ReduceOp::sum;
  bool mutual = false;     ///< moves go the other way between these two ranks as well; `mark_mutual` sets it
  std::int64_t whole = 0;  ///< bytes of the piece that this is a part of, if it is one
  std::string label;       ///< for people: `p face +0`
  std::int64_t bytes() const;
  std::int64_t runs() const;  ///< contiguous runs on the more scattered side
  /// Whether most runs are shorter than a cache line.
  bool shares_lines() const { return bytes() < 64 * runs(); }
};

/// The moves between this rank and a peer that share a path, while commands are made for them.
struct Link {
  int peer = 0;
  int number = 0;  ///< tells links from one rank to another apart; the same on both
  const Constants* constants = nullptr;
  std::vector<const Move*> moves;
  std::vector<int> src;  ///< plan buffer per move
  std::vector<int> dst;
  /// Filled by `recv`, for ordering additions: the command that delivers each move, or the last of several; the first
  /// of them is then in `first_commands`, which is empty where the protocol delivers every move at once.
  std::vector<int> commands;
  std::vector<int> first_commands;
  bool mutual = false;        ///< moves go both ways between the two ranks: neither has time to spare for the other
  bool alternating = false;   ///< all destinations are rings of two: permission may be given an epoch early
  std::int64_t capacity = 0;  ///< bytes of all rounds together: what a scratch buffer of the link must hold
  std::int64_t filled = 0;    ///< bytes of the rounds before the current `send` or `recv`: where its scratch begins
  int scratch = -1;           ///< for the protocol's own use between its calls
  /// Called by a `recv` that may deliver moves in several commands, for each of them in order.
  void delivers(std::size_t move, int command);
  std::int64_t bytes() const;  ///< of one round
};

/// Bytes that copies take on their packed side, each from the next multiple of `grain` on.
std::int64_t packed_bytes(std::span<const StridedCopy> copies, std::int64_t grain = 1);

}  // namespace tasuki
