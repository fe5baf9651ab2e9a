// The nouns of planning: user buffers as facts, moves between them, and the links that carry moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// What planning must know about a rank's memory for one user buffer. Plain data that peers tell each other.
struct BufferFact {
  std::int32_t copies = 1;  ///< of a field: 1 or 2; 0 where the rank has no part in the buffer
  std::int32_t ring = 1;    ///< 2 if the copies alternate
  std::int64_t bytes = 0;   ///< of one copy
  Memory memory = Memory::host;
  bool shared = false;         ///< peers can map it: host memory that Tasuki allocated, GPU memory that CUDA can share
  std::int16_t alignment = 1;  ///< largest power of two up to 16 that divides the addresses of all copies
  Home home() const;           ///< the kind of memory, as plans name it
  friend bool operator==(const BufferFact&, const BufferFact&) = default;
};

/// One piece: the bytes that one rank has for another one (or itself). Both ranks describe it alike.
struct Move {
  std::int64_t seq = 0;  ///< order among the moves between these two ranks in this direction, the same on both
  int src_rank = 0;
  int dst_rank = 0;
  int src = 0;  ///< user buffer of the source rank
  int dst = 0;  ///< user buffer of the destination rank
  std::vector<StridedCopy> copies;
  DType add = DType::none;  ///< not `none`: combine with the destination by `op`, do not overwrite; or change signs
  ReduceOp op = ReduceOp::sum;
  bool mutual = false;      ///< moves go the other way between these two ranks as well; `mark_mutual` sets it
  std::int64_t record = 0;  ///< bytes that are combined together, so that nothing is cut inside them; 0: an element's
  std::int64_t whole = 0;   ///< if this is a part of a larger piece: bytes of that piece
  bool relayed = false;     ///< its bytes, or its place at the destination, depend on what arrives earlier in the epoch
  std::int64_t chunk = 0;   ///< bytes of a round of the chunk loop in which it travels; 0: it travels in none
  bool summed = false;      ///< its destination combines it with other values, which lie in its own memory or arrive
  int direction = -1;       ///< of a halo: the first dimension in which its ranks are neighbours; -1: it has none
  /// Where the machine's network loses by collisions, a rank sends in the order of rounds. In each round it receives
  /// from one rank at most, if all of them take as long.
  std::int64_t round = 0;
  /// 1 and 2: the first and the second part of a piece that two networks carry together. 0: all of it.
  int part = 0;
  std::string label;  ///< for people: `p face +0`
  std::int64_t bytes() const;
  std::int64_t cut_unit() const;      ///< contiguous bytes are cut at multiples of these
  std::int64_t runs() const;          ///< contiguous runs on the more scattered side
  std::int64_t descriptors() const;   ///< strided rows of blocks, which one descriptor each names
  std::int64_t turned_lines() const;  ///< cache lines of copies that turn rows into columns, which go by tiles
  std::int64_t other_runs() const;    ///< runs of those that do not
  /// Whether most runs are shorter than a cache line.
  bool shares_lines() const { return bytes() < 64 * runs(); }
};

/// The moves between this rank and a peer, in one direction, that share a path. Exists while commands are made for
/// them.
struct Link {
  int peer = 0;
  int number = 0;  ///< of the link among those from one rank to another; the same on both
  const Constants* constants = nullptr;
  std::vector<const Move*> moves;
  std::vector<int> src;  ///< plan buffer per move
  std::vector<int> dst;
  /// Filled by `recv`, so that additions can be ordered: the command that delivers each move, or the last command if
  /// there are several. `first_commands` then has the first of them; it is empty if the protocol delivers every move
  /// with one command.
  std::vector<int> commands;
  std::vector<int> first_commands;
  bool mutual = false;        ///< moves go both ways between the two ranks, so both are busy sending
  bool alternating = false;   ///< all destinations are rings of two, so permission may be given an epoch early
  std::int64_t capacity = 0;  ///< bytes of all rounds of a loop together: the size of the link's scratch
  /// bytes of the rounds before the current `send` or `recv`: where its part of the scratch begins
  std::int64_t filled = 0;
  int scratch = -1;               ///< a buffer that the protocol keeps between its calls
  std::int64_t scratch_most = 0;  ///< bytes of scratch that the link may have at either end; 0: no limit
  // Of scratch that has slots, which slices use in turn.
  std::int64_t slot = 0;    ///< bytes of a slot; 0: there are none
  std::int64_t slices = 0;  ///< handed over so far
  std::vector<int> early;   ///< the sender's waits for slots that slices of the epoch before have used
  /// A `recv` that may deliver a move by several commands calls this for each of them, in order.
  void delivers(std::size_t move, int command);
  std::int64_t bytes() const;     ///< of one round
  std::int64_t cut_unit() const;  ///< the largest of its moves
};

/// Bytes of the packed side of the strided copies, each of which begins at a multiple of `grain`.
std::int64_t packed_bytes(std::span<const StridedCopy> copies, std::int64_t grain = 1);

}  // namespace tasuki
