// Collectives: what all ranks of a machine ask of one, as the algorithm lays it out that is chosen.
#pragma once

#include <memory>

#include "shapes/joint.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const CollectiveShape& collective);

}  // namespace tasuki
