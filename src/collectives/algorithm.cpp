// Algorithms: their table, and the choice among them. See algorithm.hpp.
#include "collectives/algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "collectives/candidates.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::vector<Algorithm (*)()>& makers() {
  static std::vector<Algorithm (*)()> list;
  return list;
}

const std::vector<Algorithm>& all_algorithms() {
  static const std::vector<Algorithm> algorithms = [] {
    std::vector<Algorithm> list;
    for (const auto make : makers()) list.push_back(make());
    // Link order of the sources must not decide anything.
    std::sort(list.begin(), list.end(), [](const Algorithm& a, const Algorithm& b) {
      return std::tie(a.collective, a.complexity, a.name) < std::tie(b.collective, b.complexity, b.name);
    });
    return list;
  }();
  return algorithms;
}

// The last few answers: programs make the same again.
struct Answer {
  Machine machine;
  CollectiveShape shape;
  const Algorithm* algorithm = nullptr;
  Parameters parameters;
  std::string path;
  std::string remark;
  std::optional<double> predicted;
};
constexpr std::size_t kAnswers = 8;
thread_local std::vector<Answer> answers;
thread_local std::size_t next_answer = 0;

std::optional<double> predicted_of(const Candidate& one) {
  if (one.predicted < 0 || std::isinf(one.predicted)) return {};
  return one.predicted * one.factor;
}

const Answer& answer(const Machine& machine, const std::shared_ptr<const Collective>& collective) {
  const CollectiveShape& shape = collective->shape();
  for (const Answer& known : answers)
    if (known.shape == shape && known.machine == machine) return known;
  const std::vector<Candidate> all = candidates_of(machine, collective);
  const Candidate& best = best_of(all, shape.memory);
  Answer found{machine,           shape,     best.algorithm,
               best.parameters,   best.path, remark_of(machine, collective, all, best),
               predicted_of(best)};
  if (answers.size() < kAnswers) return answers.emplace_back(std::move(found));
  return answers[next_answer++ % kAnswers] = std::move(found);
}

}  // namespace

bool suits(const Algorithm& algorithm, const std::string& name, const Parameters& wanted) {
  const bool wants_trees = wanted.trees > 0 || wanted.arity > 0;
  return (name == "auto" || name == algorithm.name) && (algorithm.settings != nullptr || wanted == Parameters()) &&
         (algorithm.over_trees || !wants_trees);
}

AlgorithmRegistration::AlgorithmRegistration(Algorithm (*make)()) {
  makers().push_back(make);
}

std::vector<const Algorithm*> algorithms_of(CollectiveKind kind) {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : all_algorithms())
    if (algorithm.collective == kind) found.push_back(&algorithm);
  return found;
}

void check_algorithm(CollectiveKind kind, const std::string& name, const Parameters& wanted) {
  const auto all = algorithms_of(kind);
  if (std::any_of(all.begin(), all.end(), [&](const Algorithm* a) { return suits(*a, name, wanted); })) return;
  std::vector<std::string> names{"auto"}, able;
  for (const Algorithm* algorithm : all) {
    names.push_back(algorithm->name);
    if (algorithm->settings != nullptr && suits(*algorithm, "auto", wanted)) able.push_back(algorithm->name);
  }
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(fmt::format("there is no algorithm '{}' for {}; give one of {}", name, to_string(kind),
                            fmt::join(names, ", ")));
  throw Error(fmt::format("options 'trees', 'arity' and 'chunk' are for algorithms that have them; of {} {}",
                          to_string(kind),
                          able.empty() ? std::string("none has") : fmt::format("that is {}", fmt::join(able, ", "))));
}

void check_algorithm(const CollectiveShape& shape) {
  const Parameters wanted{shape.trees, shape.arity, shape.chunk};
  check_algorithm(shape.kind, shape.algorithm, wanted);
  if (!shape.ordered) return;
  std::vector<std::string> able;
  for (const Algorithm* algorithm : algorithms_of(shape.kind)) {
    if (!algorithm->in_order) continue;
    if (suits(*algorithm, shape.algorithm, wanted)) return;
    able.push_back(algorithm->name);
  }
  if (able.empty()) throw Error(fmt::format("option 'ordered' is for reductions; {} is none", to_string(shape.kind)));
  Algorithm named;
  named.name = {};
  const std::string text = name_of({&named, wanted});
  throw Error(
      fmt::format("{} with algorithm '{}'{} does not combine in rank order, which option 'ordered' or an operator "
                  "that does not commute wants; those that do are {}",
                  to_string(shape.kind), shape.algorithm, text, fmt::join(able, ", ")));
}

CollectivePlan::CollectivePlan(const Machine& machine, const CollectiveShape& shape)
    : collective_(std::make_shared<const Collective>(machine, shape)) {
  const Answer& found = answer(machine, collective_);
  algorithm_ = found.algorithm;
  parameters_ = found.parameters;
  path_ = found.path;
  remark_ = found.remark;
  predicted_ = found.predicted;
  buffers_ = problem(0).buffers;
}

CollectivePlan::CollectivePlan(const Machine& machine, const CollectiveShape& shape, const Candidate& chosen)
    : collective_(std::make_shared<const Collective>(machine, shape)),
      algorithm_(chosen.algorithm),
      parameters_(chosen.parameters),
      path_(chosen.path != "auto" ? chosen.path : shape.path),
      remark_(fmt::format("algorithm: {}, by option 'tune'\n", name_of(chosen))),
      predicted_(predicted_of(chosen)) {
  buffers_ = problem(0).buffers;
}

Candidate CollectivePlan::candidate() const {
  Candidate candidate{algorithm_, parameters_};
  candidate.path = path_;
  return candidate;
}

std::vector<Problem> CollectivePlan::problems(int first, int last) const {
  std::vector<Problem> problems = listed(collective_, {algorithm_, parameters_}, first, last).problems();
  for (Problem& problem : problems) {
    problem.wanted = path_;
    problem.remark = remark_;
  }
  return problems;
}

std::vector<BufferFact> CollectivePlan::facts(int rank) const {
  return facts_of(*collective_, buffers_, rank);
}

std::int64_t CollectivePlan::across() const {
  return listed(collective_, {algorithm_, parameters_}, 0, 0).across();
}

bool more_than_a_pair(const Collective& collective) {
  return collective.ranks() > 2 || collective.on_gpu();
}

namespace {

bool gpus_of_one_island(const Collective& collective) {
  const auto& island = collective.island();
  const bool one = std::all_of(island.begin(), island.end(), [&](int i) { return i == island.front(); });
  return collective.on_gpu() && one;
}

}  // namespace

bool unless_gpus_idle(const Collective& collective) {
  return !gpus_of_one_island(collective) || collective.ranks() <= 2;
}

bool unless_in_place(const Collective& collective) {
  return !gpus_of_one_island(collective) || !collective.both();
}

bool unless_a_pair_or_gpus_idle(const Collective& collective) {
  return more_than_a_pair(collective) && unless_gpus_idle(collective);
}

bool on_gpus(const Collective& collective) {
  return collective.on_gpu();
}

int doublings(int ranks) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < ranks) ++rounds;
  return rounds;
}

}  // namespace tasuki
