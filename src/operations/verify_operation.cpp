// verify(Operation): the verifier on the plans of all ranks, gathered as JSON.
#include <vector>

#include "operations/state.hpp"
#include "session/collective.hpp"
#include "session/mpi.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

VerifyReport verify(const Operation& operation, int epochs) {
  Runtime& runtime = runtime_of(operation.context());
  std::string own;
  all_do(runtime, "verify", [&] { own = to_json(operation.plan()); });
  std::vector<Plan> plans;
  for (const auto& text : gather_texts(runtime, own, "verify: gathering the plans of all ranks")) {
    plans.push_back(plan_from_json(text));
  }
  return verify(plans, epochs);
}

}  // namespace tasuki
