// Halo: what a halo exchange asks of the planner, from a placed grid and the shapes of fields.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grid/halo_pieces.hpp"
#include "grid/memory_order.hpp"
#include "shapes/joint.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// One field of a halo exchange.
struct HaloBuffer {
  std::string name;
  std::int64_t element_bytes = 0;
  DType dtype = DType::none;
  Width width;           ///< how much of the shadow takes part
  Width shadow;          ///< cells allocated around the owned box
  std::int64_t pad = 0;  ///< cells at the end of each row of the last dimension
  /// By rank; null: C order, with rows padded by `pad`.
  std::shared_ptr<const std::vector<MemoryOrder>> orders = nullptr;
};

/// Extents in memory of the field's part on `rank`, shadow and padding included. Of a field in C order.
std::vector<std::int64_t> memory_extents(const Placement& placement, const HaloBuffer& field, int rank);

/// What is wrong with cuts for a grid; empty: nothing.
std::string complaint_about(const Cuts& cuts, const Placement& placement);

/// What is wrong with a field's part in a halo of `dims` dimensions; empty: nothing.
std::string complaint_about(const HaloBuffer& field, int dims, bool reverse);

/// The moves of a halo over fields that may lie on different grids of the same ranks.
class HaloMoves {
 public:
  /// The placements must outlive this; one a field. `cuts`: of which `complaint_about` says nothing.
  HaloMoves(std::vector<const Placement*> placements, std::vector<HaloBuffer> fields, bool corners, bool reverse,
            const Cuts& cuts = {});

  /// `halo p,q`.
  std::string name() const;
  /// What `rank` wants. Buffers are in the order of the fields, under names that are made unique.
  Problem problem(int rank) const;

 private:
  std::vector<const Placement*> placements_;
  std::vector<HaloBuffer> fields_;
  std::vector<std::string> names_;
  std::vector<HaloGeometry> geometry_;
  bool reverse_;
};

/// The halo of all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const HaloShape& halo);

}  // namespace tasuki
