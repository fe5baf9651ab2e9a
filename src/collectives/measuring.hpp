// Measuring: which candidates of a collective are worth the time of measuring them (calibrate/tune.cpp does it).
#pragma once

#include <memory>
#include <vector>

#include "collectives/candidates.hpp"

namespace tasuki {

/// Of every algorithm that may win the settings that the model finds best; of the two best algorithms also with other
/// paths, as far as these make other plans. The same on every rank. What the machine knows of corrections is not looked
/// at: `predicted`, or else `closed`, is the model's.
std::vector<Candidate> worth_measuring(const Machine& machine, const std::shared_ptr<const Collective>& collective);

/// For option `tune`: those of them that the shape allows, the best by their corrected predictions first.
std::vector<Candidate> candidates_to_try(const Machine& machine, const std::shared_ptr<const Collective>& collective);

}  // namespace tasuki
