// Candidates: the algorithms, parameters and paths among which a collective's is chosen, and the choice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Parameters parameters;
  double closed = 0;          ///< seconds by the closed form
  double predicted = -1;      ///< by predicting its plans; less than 0: was not, infinite: no path can carry it
  std::string path = "auto";  ///< forced, where that was measured, or is predicted to be faster
  double factor = 1;          ///< correction
  bool measured = false;      ///< the correction is this candidate's own
  double cores = 0;           ///< seconds that all ranks' cores are busy, where it was predicted
  /// What the model says.
  double model(bool by_plans) const { return by_plans ? predicted : closed; }
};

/// `ring chunk 4096 over shared:put`
std::string name_of(const Candidate& candidate);

/// What ranks `first` to `last` - 1 do.
Steps listed(const std::shared_ptr<const Collective>& collective, const Candidate& candidate, int first, int last);
/// Facts about its buffers.
std::vector<BufferFact> facts_of(const Collective& collective, const std::vector<UserRole>& buffers, int rank);

/// The plans of all ranks; none if there are too many steps. Throws `Error` if the paths that are allowed cannot carry
/// it.
std::vector<Plan> plans_of(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                           const Candidate& candidate);
/// Whether the model knows what every message takes: a path may be had by force where it joins nobody by itself.
bool can_predict(const Machine& machine, const std::vector<Plan>& plans);

/// All that may be chosen, the simplest first, with their times. Throws `Error` for a shape that asks for an algorithm
/// that is none, or that cannot be here.
std::vector<Candidate> candidates_of(const Machine& machine, const std::shared_ptr<const Collective>& collective);

/// Whether plans were predicted; else the closed forms decide.
bool by_plans(const std::vector<Candidate>& all);
/// The fastest, or what is simpler and about as fast as predictions are right in this memory.
const Candidate& best_of(const std::vector<Candidate>& all, Memory memory);

/// The end of `explain`: what was chosen, among what, and what the hardware's bound is.
std::string remark_of(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                      const std::vector<Candidate>& all, const Candidate& chosen);

}  // namespace tasuki
