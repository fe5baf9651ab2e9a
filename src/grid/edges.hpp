// Edges: what fills the shadow of a field outside a grid that is not periodic, and how option `edges` says it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tasuki/layout.hpp"

namespace tasuki {

/// One side of one dimension of a field.
struct Edge {
  /// Where the mirror stands: nowhere (the shadow is left alone), on the outer face of the outermost cell (shadow cell
  /// -1 gets cell 0), or in the middle of that cell (shadow cell -1 gets cell 1).
  enum class Mirror : std::uint8_t { none, face, cell };
  Mirror mirror = Mirror::none;
  bool negates = false;  ///< values change their sign
};

/// All sides of a field, by dimension.
struct Edges {
  std::array<Edge, kMaxDims> lo{}, hi{};
};

/// Of each of the fields, from the text of option `edges`: lists with `;` between them, each `field: i=face,
/// j=-cell/none`. A list without a field is that of all fields that have none. Letters are dimensions, the slowest in
/// memory first; one word says both sides, two say below/above. Throws `Error`.
std::vector<Edges> edges_from(const std::string& text, const std::vector<std::string>& fields);

}  // namespace tasuki
