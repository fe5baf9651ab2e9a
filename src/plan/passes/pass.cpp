// The list of passes: see pass.hpp.
#include "plan/passes/pass.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

struct Pass {
  const char* name;
  void (*run)(Plan& plan, const std::vector<bool>& in_background);
};
constexpr Pass kPasses[] = {{"message order", message_order}};

}  // namespace

void run_passes(Plan& plan, const std::vector<bool>& in_background, const PassObserver& observer) {
  if (observer) observer("emit", plan);
  for (const Pass& pass : kPasses) {
    pass.run(plan, in_background);
    if (const auto complaints = plan.complaints(); !complaints.empty()) {
      throw Error(fmt::format("rank {}: {}: pass '{}' left an unsound plan (a defect in Tasuki): {}\n{}", plan.rank,
                              plan.operation, pass.name, fmt::join(complaints, "; "), to_text(plan)));
    }
    if (observer) observer(pass.name, plan);
  }
}

}  // namespace tasuki
