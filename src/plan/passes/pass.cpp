// The list of passes: see pass.hpp.
#include "plan/passes/pass.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

struct Pass {
  const char* name;
  bool (*run)(Plan& plan, const std::vector<bool>& in_background);
};
constexpr Pass kPasses[] = {{"message order", message_order}};

}  // namespace

void run_passes(Plan& plan, const std::vector<bool>& in_background, const PassObserver& observer) {
  if (observer) observer("emit", plan);
  for (const Pass& pass : kPasses) {
    const bool changed = pass.run(plan, in_background);
    // A plan that the pass has left as it was has been checked by the builder.
    if (const auto complaints = changed ? plan.complaints() : std::vector<std::string>(); !complaints.empty()) {
      throw Error(fmt::format("rank {}: {}: pass '{}' left an unsound plan (a defect in Tasuki): {}\n{}", plan.rank,
                              plan.operation, pass.name, fmt::join(complaints, "; "), to_text(plan)));
    }
    if (observer) observer(pass.name, plan);
  }
}

}  // namespace tasuki
