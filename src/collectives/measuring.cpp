// Measuring: see measuring.hpp.
#include "collectives/measuring.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "collectives/corrections.hpp"
#include "paths/path.hpp"
#include "predict/predict.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::ptrdiff_t kSettings = 3;  // of one algorithm
constexpr std::size_t kWithPaths = 2;    // algorithms that are tried with other paths
constexpr double kFar = 6;               // what is predicted to take so many times as long will not win

// Paths by name that candidates are tried with: each by itself, and each with one that can add up, or cross islands.
std::vector<std::string> other_paths(const Machine& machine, Memory memory) {
  const std::vector<std::string> seconds = memory == Memory::host ? std::vector<std::string>{"shared:eager", "mpi"}
                                                                  : std::vector<std::string>{"peer:eager", "peer:ll"};
  std::vector<std::string> names;
  for (const Path& path : all_paths()) {
    if (path.memory != memory || path.name.starts_with("self") || machine.unusable.contains(path.name)) continue;
    names.push_back(path.name);
    for (const std::string& second : seconds)
      if (path.name != second && !machine.unusable.contains(second)) names.push_back(path.name + "," + second);
  }
  return names;
}

bool known(const std::vector<std::vector<Plan>>& all, const std::vector<Plan>& plans) {
  return std::find(all.begin(), all.end(), plans) != all.end();
}

}  // namespace

std::vector<Candidate> worth_measuring(const Machine& machine, const std::shared_ptr<const Collective>& collective) {
  Machine plain = machine;
  plain.corrections.clear();
  std::vector<Candidate> all = candidates_of(plain, collective);
  bool predicted = by_plans(all);
  // Paths of hosts follow below.
  std::erase_if(all, [&](const Candidate& c) { return !collective->on_gpu() && c.path != "auto"; });
  std::erase_if(all, [&](const Candidate& c) { return c.model(predicted) < 0 || std::isinf(c.model(predicted)); });
  std::stable_sort(all.begin(), all.end(),
                   [&](const Candidate& a, const Candidate& b) { return a.model(predicted) < b.model(predicted); });
  std::vector<Candidate> chosen;
  for (const Candidate& c : all) {
    const auto settings = std::count_if(chosen.begin(), chosen.end(),
                                        [&](const Candidate& other) { return other.algorithm == c.algorithm; });
    if (settings < kSettings && c.model(predicted) <= kFar * all.front().model(predicted)) chosen.push_back(c);
  }
  // One alone is not predicted where an algorithm is chosen, but it is beside others that differ in their paths.
  if (!predicted && chosen.size() == 1) {
    const std::vector<Plan> plans = plans_of(plain, collective, chosen.front());
    predicted = !plans.empty() && can_predict(plain, plans);
    if (predicted) chosen.front().predicted = predicted_seconds(plans, plain);
  }
  std::vector<const Algorithm*> algorithms;  // the best first
  for (const Candidate& c : std::vector(chosen)) {
    if (!predicted || std::find(algorithms.begin(), algorithms.end(), c.algorithm) != algorithms.end()) continue;
    if (algorithms.size() == kWithPaths) break;
    algorithms.push_back(c.algorithm);
    std::vector<std::vector<Plan>> seen{plans_of(plain, collective, c)};
    for (const std::string& path : other_paths(plain, collective->shape().memory)) {
      Candidate other = c;
      other.path = path;
      try {
        std::vector<Plan> plans = plans_of(plain, collective, other);
        if (plans.empty() || known(seen, plans) || !can_predict(plain, plans)) continue;
        other.predicted = predicted_seconds(plans, plain);
        seen.push_back(std::move(plans));
      } catch (const Error&) {  // these paths cannot carry it
        continue;
      }
      if (other.predicted <= kFar * chosen.front().predicted) chosen.push_back(std::move(other));
    }
  }
  if (chosen.size() == 1 && !by_plans(all)) chosen.front().predicted = -1;
  return chosen;
}

std::vector<Candidate> candidates_to_try(const Machine& machine, const std::shared_ptr<const Collective>& collective) {
  const CollectiveShape& shape = collective->shape();
  std::vector<Candidate> all =
      shape.path == "auto" ? worth_measuring(machine, collective) : candidates_of(machine, collective);
  const bool predicted = by_plans(all);
  std::erase_if(all, [&](const Candidate& c) { return c.model(predicted) < 0 || std::isinf(c.model(predicted)); });
  if (shape.path == "auto") {
    const Corrections corrections(machine, *collective);
    for (Candidate& c : all) c.factor = corrections.of(*c.algorithm, c.parameters, c.path).factor;
  }
  std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
    return a.model(predicted) * a.factor < b.model(predicted) * b.factor;
  });
  return all;
}

}  // namespace tasuki
