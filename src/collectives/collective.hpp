// Collective: what a collective asks for, as data: which bytes of whose buffers are blocks, which end where.
//
// A rank's buffer is a sequence of bytes, its blocks one after the other. Offsets and sizes count bytes of sequences;
// where these lie in memory, in one piece or as a layout says, matters to `copies` alone. So no algorithm knows
// layouts.
//
// Buffers are numbered. A collective has `in` (0) and `out` (1), or, a broadcast and in place without a root, one
// buffer for both; what an algorithm keeps for itself comes after these (steps.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "layout/sequence.hpp"
#include "planner/planner.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// A place in a rank's buffer.
struct Place {
  int buffer = 0;
  std::int64_t offset = 0;  ///< bytes of its sequence
};

/// The torus whose points are hosts, where every point has one.
struct HostTorus {
  std::vector<int> extents;  ///< empty: there is none
  std::vector<int> point;    ///< of each rank
  int rails = 1;             ///< links that a host can drive at once
};

class Collective {
 public:
  /// Throws `Error` for a shape that cannot be on these ranks.
  Collective(const Machine& machine, const CollectiveShape& shape);

  CollectiveKind kind() const { return shape_.kind; }
  int ranks() const { return static_cast<int>(island_.size()); }
  int root() const { return shape_.root; }
  DType type() const { return shape_.type; }
  ReduceOp op() const { return shape_.op; }
  std::int64_t element() const { return element_; }  ///< bytes
  std::int64_t cut_unit() const;  ///< bytes at whose multiples a vector may be cut: of cache lines and whole elements
  const std::vector<int>& island() const { return island_; }  ///< of each rank
  const HostTorus& torus() const { return torus_; }
  const CollectiveShape& shape() const { return shape_; }
  std::string name() const;  ///< `reduce to 3`
  bool rooted() const { return tasuki::rooted(kind()); }
  bool reduces() const { return tasuki::reduces(kind()); }
  bool on_gpu() const { return shape_.memory == Memory::device; }
  /// The rank's result begins as its contribution, or its block lies there from the start.
  bool in_place(int rank) const { return shape_.in_place && (!rooted() || rank == root()); }

  // Bytes.
  std::int64_t whole() const { return begin_.back(); }  ///< of the vector, or of all blocks
  /// Of a block of those that lie one after the other in a whole. Where the collective has no blocks, the whole is cut
  /// into as many as there are ranks.
  std::int64_t begin(int block) const { return begin_[static_cast<std::size_t>(block)]; }
  std::int64_t block(int block) const { return begin(block + 1) - begin(block); }
  // alltoall: the block that `from` has for `to`, and where it is with either.
  std::int64_t block(int from, int to) const { return sent(from, to + 1) - sent(from, to); }
  std::int64_t sent(int from, int to) const { return sent_[place(from, to)]; }
  std::int64_t received(int from, int to) const { return received_[place(to, from)]; }

  int in() const { return 0; }
  int out() const { return both() ? 0 : 1; }
  /// `in` and `out` are one buffer.
  bool both() const { return kind() == CollectiveKind::broadcast || (shape_.in_place && !rooted()); }
  /// Where the rank's own contribution begins: `in`, or `out` of a root that works in place.
  Place own(int rank) const { return {rooted() && in_place(rank) ? out() : in(), 0}; }
  std::vector<UserRole> buffers() const;
  std::int64_t bytes_of(int rank, int buffer) const;  ///< of the sequence that is `in` or `out`

  // Where these bytes lie. A plan's buffer begins with the first byte in memory that the sequence has.
  bool has_layouts() const { return !shape_.in_layouts.empty() || !shape_.out_layouts.empty(); }
  std::int64_t begins_at(int rank, int buffer) const;  ///< where the plan's buffer begins, from the user's base
  std::int64_t span_of(int rank, int buffer) const;    ///< bytes of the plan's buffer
  /// What moves `bytes` bytes from `src` of a rank to `dst` of a rank. Offsets are those of the plans' buffers.
  std::vector<StridedCopy> copies(int from, Place src, int to, Place dst, std::int64_t bytes) const;

 private:
  std::size_t place(int row, int column) const {
    return static_cast<std::size_t>(row) * (island_.size() + 1) + static_cast<std::size_t>(column);
  }
  void place_blocks();
  void place_matrix();
  void place_layouts();
  /// Null: contiguous.
  const Sequence* sequence(int rank, int buffer) const {
    if (buffer > 1 || sequences_[buffer].empty()) return nullptr;
    return &sequences_[buffer][static_cast<std::size_t>(rank)];
  }

  CollectiveShape shape_;
  std::vector<int> island_;
  HostTorus torus_;
  std::int64_t element_ = 1;
  std::vector<std::int64_t> begin_;                 // of each block, and the end
  std::vector<std::int64_t> sent_, received_;       // [rank][other, and the end]
  std::array<std::vector<Sequence>, 2> sequences_;  // of each buffer and rank, where there are layouts
};

/// Says what this rank is promised: the expectations of its plan.
void promise(const Collective& collective, Composer& composer);

}  // namespace tasuki
