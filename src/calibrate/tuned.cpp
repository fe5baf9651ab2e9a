// Tuned: what the result of tuning says of itself. See tasuki/tune.hpp.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tasuki/tune.hpp"

namespace tasuki {

namespace {

double share(const std::vector<TunedCase>& cases, int TunedCase::*candidate, double tolerance) {
  if (cases.empty()) return 1;
  const auto good = std::count_if(cases.begin(), cases.end(),
                                  [&](const TunedCase& one) { return one.ratio(one.*candidate) <= 1 + tolerance; });
  return static_cast<double>(good) / static_cast<double>(cases.size());
}

}  // namespace

double TunedCase::ratio(int candidate) const {
  const double least = candidates[static_cast<std::size_t>(best)].again;
  return least > 0 ? candidates[static_cast<std::size_t>(candidate)].again / least : 1;
}

double Tuned::within(double tolerance) const {
  return share(cases, &TunedCase::picked, tolerance);
}

double Tuned::within_by_model(double tolerance) const {
  return share(cases, &TunedCase::by_model, tolerance);
}

std::string Tuned::to_json() const {
  constexpr double kMicro = 1e6;
  nlohmann::json all = nlohmann::json::array();
  for (const TunedCase& one : cases) {
    nlohmann::json candidates = nlohmann::json::array();
    for (const TunedCandidate& c : one.candidates)
      candidates.push_back({{"name", c.name},
                            {"predicted_us", c.predicted * kMicro},
                            {"measured_us", c.measured * kMicro},
                            {"again_us", c.again * kMicro},
                            {"factor", c.correction.factor}});
    all.push_back({{"collective", to_string(one.kind)},
                   {"bytes", one.bytes},
                   {"shared", one.shared},
                   {"bound_us", one.bound * kMicro},
                   {"candidates", std::move(candidates)},
                   {"by_model", one.by_model},
                   {"picked", one.picked},
                   {"best", one.best},
                   {"ratio", one.ratio(one.picked)},
                   {"ratio_by_model", one.ratio(one.by_model)}});
  }
  const nlohmann::json json{{"cases", std::move(all)},
                            {"kept", kept},
                            {"within_10_percent", within()},
                            {"within_10_percent_by_model", within_by_model()}};
  return json.dump();
}

}  // namespace tasuki
