// Node sets, templates and aligned arrays as index arithmetic: who owns an element, and where it lies in his memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cut.hpp"
#include "tasuki/layout.hpp"

namespace tasuki::xmp {

using Indices = std::array<std::int64_t, kMaxDims>;
using Coordinates = std::array<int, kMaxDims>;

/// Ranks of the program in a grid; the last dimension is the fastest.
struct NodeShape {
  std::vector<int> extents;
  std::vector<int> ranks;

  int ndims() const { return static_cast<int>(extents.size()); }
  int size() const { return static_cast<int>(ranks.size()); }
  Coordinates coordinates(int number) const;
  int number(const Coordinates& at) const;
  int number_of(int rank) const;  ///< -1: it is not among them
};

/// How a dimension of a template is spread.
struct Spread {
  Cut cut;
  int node_dim = -1;  ///< the nodes' dimension; -1: every node has all of it
};

/// One dimension of an array.
struct ArrayDim {
  std::int64_t extent = 0;
  int axis = -1;            ///< the template's dimension; -1: every node has all of it
  std::int64_t offset = 0;  ///< index i lies at template index i + offset
  Layers shadow;
  bool full_shadow = false;  ///< every node has memory for all of it
};

/// An array over nodes. Indices run from 0 to the extents.
class ArrayShape {
 public:
  ArrayShape() = default;
  /// Throws `Error` if an array of these dimensions cannot be aligned so.
  ArrayShape(NodeShape nodes, const std::vector<Spread>& spreads, std::vector<ArrayDim> dims,
             std::int64_t element_bytes);

  const NodeShape& nodes() const { return nodes_; }
  int ndims() const { return static_cast<int>(dims_.size()); }
  const ArrayDim& dim(int d) const { return dims_[static_cast<std::size_t>(d)]; }
  std::int64_t element_bytes() const { return element_bytes_; }
  int node_dim(int d) const { return spread(d).node_dim; }
  const Cut& cut(int d) const { return spread(d).cut; }  ///< in indices of the template
  bool distributed(int d) const { return node_dim(d) >= 0; }
  bool has_shadow() const;
  bool has_full_shadow() const;
  /// Throws `Error` where a dimension cannot have it.
  void set_shadow(const std::vector<ArrayDim>& widths);

  /// The part of dimension d that the nodes at these coordinates own.
  int part(int d, const Coordinates& at) const {
    return distributed(d) ? at[static_cast<std::size_t>(node_dim(d))] : 0;
  }
  int owner(int d, std::int64_t index) const { return cut(d).owner(index + dim(d).offset); }
  std::int64_t owned(int d, int part) const;     ///< how many indices
  std::int64_t begin_of(int d, int part) const;  ///< of a dimension that is not cyclic: where the part begins
  std::int64_t stored(int d, int part) const;    ///< elements in memory, shadow included
  /// Where in memory an index is that the part owns; or, not cyclic, has in its shadow.
  std::int64_t local(int d, int part, std::int64_t index) const;
  std::int64_t global(int d, int part, std::int64_t local) const;  ///< back; of elements that the part owns

  Indices strides(const Coordinates& at) const;  ///< in elements
  std::int64_t bytes(const Coordinates& at) const;
  /// The coordinates along which every node has the same elements.
  std::vector<int> replicated() const;

 private:
  const Spread& spread(int d) const { return spreads_[static_cast<std::size_t>(d)]; }

  NodeShape nodes_;
  std::vector<ArrayDim> dims_;
  std::vector<Spread> spreads_;  // one for each dimension of the array
  std::int64_t element_bytes_ = 0;
};

}  // namespace tasuki::xmp
