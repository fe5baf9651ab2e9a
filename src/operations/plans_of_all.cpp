// The plans of all ranks: see plans_of_all.hpp. They travel in the text form, which holds names of any bytes.
#include "operations/plans_of_all.hpp"

#include <fmt/format.h>

#include "session/attempt.hpp"

namespace tasuki {

std::vector<Plan> plans_of_all(Runtime& runtime, const std::string& call, const std::function<Plan()>& own) {
  Attempt attempt(runtime);
  const auto told = attempt.gather(
      call, [&](Encoder& to) { to.text(to_text(own())); }, fmt::format("{}: gathering the plans of all ranks", call));
  std::vector<Plan> plans;
  for (const std::string& message : told) plans.push_back(plan_from_text(Decoder(message).text()));
  return plans;
}

}  // namespace tasuki
