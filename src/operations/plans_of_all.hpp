// The plans of all ranks, for what looks at all of them: the verifier, predictions, plans that were loaded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session/runtime.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

/// Gathers what `own` returns on each rank. If it throws on one, all ranks throw that. `call` is for messages.
/// Collective.
std::vector<Plan> plans_of_all(Runtime& runtime, const std::string& call, const std::function<Plan()>& own);

}  // namespace tasuki
