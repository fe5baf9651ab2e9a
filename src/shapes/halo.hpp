// Halo: what a halo exchange of one rank is compared by, and what it asks of the planner, from placed grids and the
// shapes of fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grid/halo_pieces.hpp"
#include "grid/memory_order.hpp"
#include "shapes/joint.hpp"
#include "shapes/rank_shape.hpp"
#include "tasuki/layout.hpp"
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
  Edges edges = {};
};

/// Extents in memory of the field's part on `rank`, shadow and padding included. Of a field in C order.
std::vector<std::int64_t> memory_extents(const Placement& placement, const HaloBuffer& field, int rank);

/// The moves of a halo over fields that may lie on different grids of the same ranks.
class HaloMoves {
 public:
  /// The placements must outlive this; one a field. The cuts fit the grids.
  HaloMoves(const Machine& machine, std::vector<const Placement*> placements, std::vector<HaloBuffer> fields,
            bool corners, bool reverse, const Cuts& cuts = {});

  /// What `rank` wants. Buffers are in the order of the fields, under names that are made unique.
  Problem problem(int rank) const;

 private:
  int busiest(const Machine& machine) const;

  std::vector<const Placement*> placements_;
  std::vector<HaloBuffer> fields_;
  std::vector<std::string> names_;
  std::vector<HaloGeometry> geometry_;
  bool reverse_;
  std::shared_ptr<const Problem> busiest_;  // of `Problem`
};

/// A field of a halo on one rank.
struct FieldOfRank {
  HaloBuffer shape;
  const Placement* placement = nullptr;  ///< which must outlive the halo's shape
  int number = 0;                        ///< among the context's objects
  int current = 0;                       ///< the copy that it shows
  bool freed = false;
  bool foreign = false;  ///< of another context than the first
  std::int64_t bytes = 0;
  std::vector<std::byte*> copies;  ///< the lowest byte of each
  Layout cells;                    ///< all, from the lowest one's first byte; only if a field of the halo has orders
};

class HaloOfRank final : public RankShape {
 public:
  /// `edges` is the text of option `edges`.
  HaloOfRank(int rank, std::vector<FieldOfRank> fields, bool corners, bool reverse, bool alternating, Cuts cuts,
             std::string edges)
      : rank_(rank),
        fields_(std::move(fields)),
        corners_(corners),
        reverse_(reverse),
        alternating_(alternating),
        cuts_(std::move(cuts)),
        edges_(std::move(edges)) {}
  std::string operation() const override { return "Halo"; }
  std::string name() const override;
  Agreed agreed() const override;
  std::string complaint(const Machine& machine) const override;
  Problem problem(const Machine& machine) const override;

 private:
  std::string complaint_about_memory() const;
  std::vector<std::string> names() const;

  int rank_;
  std::vector<FieldOfRank> fields_;
  bool corners_, reverse_, alternating_;
  Cuts cuts_;
  std::string edges_;
};

/// The halo of all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const HaloShape& halo);

}  // namespace tasuki
