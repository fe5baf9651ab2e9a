// verify(Operation): the verifier on the plans of all ranks, gathered as JSON.
#include <vector>

#include "operations/plans_of_all.hpp"
#include "operations/state.hpp"
#include "session/mpi.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

VerifyReport verify(const Operation& operation, int epochs) {
  Runtime& runtime = runtime_of(operation.context());
  const std::vector<Plan> plans = plans_of_all(runtime, "verify", [&] { return operation.plan(); });
  return verify(plans, epochs);
}

}  // namespace tasuki
