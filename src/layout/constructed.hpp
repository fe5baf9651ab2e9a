// What the constructors of MPI's datatypes make, as layouts: one function for all of them, which takes the numbers that
// MPI keeps of a type in one order, whether it was made with 32-bit or with large counts.
#pragma once

#include <cstdint>
#include <span>

#include "tasuki/layout.hpp"

namespace tasuki {

/// How a datatype was made. The numbers that belong to it, in this order (n: how many blocks there are):
enum class Combiner : std::uint8_t {
  dup,             ///< none
  contiguous,      ///< count
  vector,          ///< count, block length, stride in extents
  hvector,         ///< count, block length, stride in bytes
  indexed,         ///< n block lengths, n displacements in extents
  hindexed,        ///< n block lengths, n displacements in bytes
  indexed_block,   ///< block length, n displacements in extents
  hindexed_block,  ///< block length, n displacements in bytes
  structure,       ///< n block lengths, n displacements in bytes; n elements
  subarray,        ///< ndims sizes, ndims subsizes, ndims starts, 1 if the first dimension is contiguous, else 0
  darray,          ///< size, rank, ndims × (size, distribution, argument, processes), 1 if the first dimension ...
  resized,         ///< lower bound, extent
};

/// Distributions of `darray`, and the argument that stands for the default one.
enum class Distribution : std::uint8_t { none, block, cyclic };
inline constexpr std::int64_t kDefaultArgument = -1;

/// The layout that a constructor makes of its elements (one, but for `structure`). Throws `Error` if the numbers are
/// not such as the constructor takes.
Layout constructed(Combiner combiner, std::span<const std::int64_t> numbers, std::span<const Layout> elements);

}  // namespace tasuki
