// Collectives on memory that is not contiguous: what the ranks tell each other of their layouts, whether these fit, and
// the shape that they make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/encoding.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// The arguments of a collective on one rank, as its class got them.
struct CollectiveCall {
  std::string operation;       ///< `Allreduce`
  CollectiveShape shape;       ///< without what the other ranks must tell
  bool marked = false;         ///< an argument of this rank is `in_place`
  std::string in_name = "in";  ///< what the arguments are called
  std::string out_name = "out";
  std::string count_name = "count";
  /// alltoall with counts of its own: of this rank, to and from each; they fill `shape.counts`.
  std::vector<std::int64_t> send_counts = {};
  std::vector<std::int64_t> receive_counts = {};
  bool has_matrix = false;
  /// Memory that is not contiguous: a layout for each block of `in` and of `out`, relative to these; they fill the
  /// counts and layouts of `shape`. Of a side that is not looked at, anything.
  std::vector<Layout> in_layouts = {};
  std::vector<Layout> out_layouts = {};
  bool has_layouts = false;
  bool has_counts = false;    ///< `shape.counts` was given
  bool has_function = false;  ///< the operator is a function of the user's own
};

/// One rank's side: the bytes of its blocks, and where all of them lie.
struct CollectiveSide {
  std::vector<std::int64_t> bytes;
  Layout whole;
  std::int64_t block(int b) const { return bytes[static_cast<std::size_t>(b)]; }
};
struct CollectiveSides {
  CollectiveSide in, out;
  bool in_place = false;
};

/// What is wrong with the layouts of this rank by themselves; empty: nothing.
std::string complaint_about_layouts(const CollectiveCall& call, int rank, int ranks);

/// What the other ranks must know; and back. Throws `Malformed` for sides that this collective does not have.
void tell_layouts(const CollectiveCall& call, int rank, int ranks, Encoder& to);
CollectiveSides hear_layouts(const CollectiveShape& shape, int rank, int ranks, Decoder& from);

/// How the layouts of all ranks do not fit; empty: they do. All ranks find the same.
std::string misfit_of(const CollectiveCall& call, const std::vector<CollectiveSides>& all);
/// Fills counts and layouts of the shape, from layouts that fit.
void fill(CollectiveCall& call, const std::vector<CollectiveSides>& all);

}  // namespace tasuki
