// Algorithms: their table, and the choice among them. See algorithm.hpp.
#include "collectives/algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "collectives/islands.hpp"
#include "paths/path.hpp"
#include "predict/predict.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Up to so many ranks whole plans are predicted; above, the closed forms must do.
constexpr int kMostPredicted = 64;
// And up to so many steps of all ranks together.
constexpr std::int64_t kMostSteps = 1024;
// Candidates whose closed form is more than so many times the least are not looked at closely.
constexpr double kHopeless = 6;
// Of those that differ in their chunks only so many are.
constexpr std::ptrdiff_t kChunksLookedAt = 2;
// What is faster by less than this share is not worth being less simple.
constexpr double kTie = 0.03;

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

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Parameters parameters;
  double closed = 0;
  double predicted = -1;  // less than 0: was not
};

// One-way price of the cheapest path that joins rank 0 and another.
Price price_between(const Machine& machine, Memory memory, int rank) {
  Price price;
  double least = std::numeric_limits<double>::infinity();
  for (const Path& path : all_paths()) {
    // Messages are for GPUs that do not reach each other.
    if (memory == Memory::device && machine.reach(0, rank) && !path.transport.empty()) continue;
    const LinkCost& cost = machine.cost(path.name).one_way;
    constexpr double kTypical = 4096;
    const double seconds = cost.latency + kTypical / cost.bandwidth;
    if (path.memory != memory || machine.unusable.contains(path.name) || seconds >= least ||
        !path.joins(machine, 0, rank))
      continue;
    least = seconds;
    price.latency = cost.latency;
    price.second_per_byte = 1 / cost.bandwidth;
  }
  return price;
}

// The dearest pair of ranks decides, and of messages inside islands the dearest within one.
Price price_of(const Machine& machine, Memory memory) {
  Price price;
  for (int rank = 1; rank < machine.size(); ++rank) {
    const Price one = price_between(machine, memory, rank);
    price.latency = std::max(price.latency, one.latency);
    price.second_per_byte = std::max(price.second_per_byte, one.second_per_byte);
    if (!machine.same_island(0, rank)) continue;
    price.latency_inside = std::max(price.latency_inside, one.latency);
    price.second_per_byte_inside = std::max(price.second_per_byte_inside, one.second_per_byte);
  }
  price.work_per_byte = 1 / machine.cost(memory == Memory::host ? "self" : "self:gpu").one_way.bandwidth;
  return price;
}

// What a rank that is alone does is not for algorithms to say.
void list_alone(const Collective& c, Steps& steps) {
  if (c.both() || c.in_place(0) || c.kind() == CollectiveKind::exscan) return;
  steps.copy(0, {c.in(), 0}, 0, {c.out(), 0}, c.whole());
}

Steps listed(const std::shared_ptr<const Collective>& collective, const Candidate& candidate, int rank) {
  Steps steps(collective, rank);
  collective->ranks() == 1 ? list_alone(*collective, steps)
                           : candidate.algorithm->list(*collective, candidate.parameters, steps);
  return steps;
}

std::vector<BufferFact> facts_of(const Collective& collective, const std::vector<UserRole>& buffers, int rank) {
  std::vector<BufferFact> facts;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const bool own = buffers[b].role == Role::scratch;
    BufferFact fact;
    fact.memory = collective.shape().memory;
    fact.bytes = own ? buffers[b].bytes : collective.bytes_of(rank, static_cast<int>(b));
    fact.shared = own || collective.shape().shared;
    fact.alignment = 16;
    facts.push_back(fact);
  }
  return facts;
}

// The plans of all ranks. None if there are too many steps.
std::vector<Plan> plans_of(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                           const Candidate& candidate) {
  std::vector<Problem> problems;
  Facts facts;
  std::int64_t count = 0;
  for (int rank = 0; rank < machine.size(); ++rank) {
    Steps steps = listed(collective, candidate, rank);
    if ((count += steps.count()) > kMostSteps) return {};
    problems.push_back(steps.problem());
    facts.set(rank, facts_of(*collective, problems.back().buffers, rank));
  }
  std::vector<std::vector<Decision>> decisions;
  for (Problem& problem : problems) {
    problem.wanted = collective->shape().path;
    decisions.push_back(choose(machine, problem, facts));
  }
  std::vector<Plan> plans;
  for (const Problem& problem : problems) {
    const auto choices =
        settle(problem, [&](int rank) { return std::span<const Decision>(decisions[static_cast<std::size_t>(rank)]); });
    plans.push_back(emit(machine, problem, facts, choices));
  }
  return plans;
}

bool suits(const Algorithm& algorithm, const std::string& name, const Parameters& wanted) {
  const bool wants_trees = wanted.trees > 0 || wanted.arity > 0;
  return (name == "auto" || name == algorithm.name) && (algorithm.settings != nullptr || wanted == Parameters()) &&
         (algorithm.over_trees || !wants_trees);
}

std::vector<Candidate> candidates_of(const Collective& collective, const Price& price) {
  const CollectiveShape& shape = collective.shape();
  const Parameters wanted{shape.trees, shape.arity, shape.chunk};
  check_algorithm(shape);
  std::vector<Candidate> all;
  for (const Algorithm* algorithm : algorithms_of(collective.kind())) {
    if (!suits(*algorithm, shape.algorithm, wanted) || (shape.ordered && !algorithm->in_order)) continue;
    // Who gives parameters asks for an algorithm that has them, be it worth it or not.
    if (shape.algorithm == "auto" && wanted == Parameters() && algorithm->worth_trying != nullptr &&
        !algorithm->worth_trying(collective))
      continue;
    const auto settings = algorithm->settings ? algorithm->settings(collective, wanted) : std::vector<Parameters>(1);
    for (const Parameters& parameters : settings)
      all.push_back({algorithm, parameters, algorithm->seconds(collective, parameters, price), -1});
  }
  return all;
}

// Whether the model knows what every message takes: a path may be had by force where it joins nobody by itself.
bool can_predict(const Machine& machine, const std::vector<Plan>& plans) {
  return std::all_of(plans.begin(), plans.end(), [&](const Plan& plan) {
    return std::all_of(plan.commands.begin(), plan.commands.end(), [&](const Command& c) {
      if (c.peer < 0 || c.peer == plan.rank || c.path < 0) return true;
      return path_named(plan.paths[static_cast<std::size_t>(c.path)]).joins(machine, plan.rank, c.peer);
    });
  });
}

// Predicts those that may win. All or none of them, so that equals are compared.
void predict_all(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                 std::vector<Candidate>& all) {
  if (all.size() < 2 || machine.size() < 2 || machine.size() > kMostPredicted) return;
  std::vector<Candidate*> hopeful;
  for (Candidate& candidate : all) hopeful.push_back(&candidate);
  std::stable_sort(hopeful.begin(), hopeful.end(), [](auto* a, auto* b) { return a->closed < b->closed; });
  const double most = hopeful.front()->closed * kHopeless;
  std::erase_if(hopeful, [&](const Candidate* c) { return c->closed > most; });
  std::vector<const Candidate*> looked_at;
  for (const Candidate* c : hopeful) {
    const auto alike = std::count_if(looked_at.begin(), looked_at.end(), [&](const Candidate* other) {
      return c->algorithm == other->algorithm && c->parameters.trees == other->parameters.trees &&
             c->parameters.arity == other->parameters.arity;
    });
    if (alike < kChunksLookedAt) looked_at.push_back(c);
  }
  std::erase_if(
      hopeful, [&](const Candidate* c) { return std::find(looked_at.begin(), looked_at.end(), c) == looked_at.end(); });
  std::vector<double> seconds;
  for (const Candidate* candidate : hopeful) {
    std::vector<Plan> plans;
    try {
      plans = plans_of(machine, collective, *candidate);
    } catch (const Error&) {
      // The paths that are allowed cannot carry it. If that is so of all, who makes the operation says why.
      seconds.push_back(std::numeric_limits<double>::infinity());
      continue;
    }
    if (plans.empty() || !can_predict(machine, plans)) return;
    seconds.push_back(predicted_seconds(plans, machine));
  }
  for (std::size_t i = 0; i < hopeful.size(); ++i) hopeful[i]->predicted = seconds[i];
}

// The fastest, or what is simpler and as fast. Candidates come with the simplest first.
const Candidate& best_of(const std::vector<Candidate>& all) {
  const bool predicted = std::any_of(all.begin(), all.end(), [](const auto& c) { return c.predicted >= 0; });
  const Candidate* best = nullptr;
  const auto value = [&](const Candidate& c) { return predicted ? c.predicted : c.closed; };
  for (const Candidate& candidate : all) {
    if (predicted && candidate.predicted < 0) continue;
    // Other chunks are no less simple.
    const auto same = [&](const Parameters& p) {
      return candidate.algorithm == best->algorithm && candidate.parameters.trees == p.trees &&
             candidate.parameters.arity == p.arity;
    };
    const double worth = best != nullptr && same(best->parameters) ? 1 : 1 - kTie;
    if (best == nullptr || value(candidate) < value(*best) * worth) best = &candidate;
  }
  return *best;
}

std::string text_of(const Parameters& p) {
  std::string text;
  if (p.trees > 0) text += fmt::format(" trees {}", p.trees);
  if (p.arity > 0) text += fmt::format(" arity {}", p.arity);
  if (p.chunk > 0) text += fmt::format(" chunk {}", p.chunk);
  return text;
}

bool best_of_its_own(const Candidate& candidate, const std::vector<Candidate>& all) {
  return std::all_of(all.begin(), all.end(), [&](const Candidate& other) {
    return other.algorithm != candidate.algorithm || other.closed >= candidate.closed;
  });
}

// Bytes that all ranks send to ranks of other islands.
std::int64_t across(const std::shared_ptr<const Collective>& collective, const Candidate& candidate) {
  return listed(collective, candidate, 0).across();
}

std::string remark_of(const std::shared_ptr<const Collective>& collective, const std::vector<Candidate>& all,
                      const Candidate& chosen) {
  const bool forced = collective->shape().algorithm != "auto";
  const auto& islands = collective->island();
  const bool several = std::any_of(islands.begin(), islands.end(), [&](int i) { return i != islands.front(); });
  std::string text = fmt::format("algorithm: {}{}{}\n", chosen.algorithm->name, text_of(chosen.parameters),
                                 forced ? ", which was asked for" : "");
  if (several) {
    const std::int64_t least = least_across(*collective);
    text += fmt::format("bytes across islands, of all ranks: {}{}\n", across(collective, chosen),
                        least < 0 ? std::string() : fmt::format("; the least there can be: {}", least));
  }
  if (all.size() == 1) return text;
  text += fmt::format("{:<44} {:>12} {:>12}{}\n", "candidates", "us predicted", "closed form",
                      several ? " bytes across" : "");
  int left_out = 0;
  for (const Candidate& c : all) {
    if (c.predicted < 0 && &c != &chosen && !best_of_its_own(c, all)) {
      ++left_out;
      continue;
    }
    const std::string name = c.algorithm->name + text_of(c.parameters);
    const std::string predicted = c.predicted < 0           ? "-"
                                  : std::isinf(c.predicted) ? "no path"
                                                            : fmt::format("{:.2f}", c.predicted * 1e6);
    const std::string bytes = several ? fmt::format(" {:>12}", across(collective, c)) : std::string();
    text += fmt::format("{:<44} {:>12} {:>12.2f}{}{}\n", name, predicted, c.closed * 1e6, bytes,
                        &c == &chosen ? "  <- chosen" : "");
  }
  if (left_out > 0) text += fmt::format("and {} more settings, whose closed forms are longer\n", left_out);
  return text;
}

// The last few answers: programs make the same again.
struct Answer {
  Machine machine;
  CollectiveShape shape;
  const Algorithm* algorithm = nullptr;
  Parameters parameters;
  std::string remark;
};
constexpr std::size_t kAnswers = 8;
thread_local std::vector<Answer> answers;
thread_local std::size_t next_answer = 0;

const Answer& answer(const Machine& machine, const std::shared_ptr<const Collective>& collective) {
  const CollectiveShape& shape = collective->shape();
  for (const Answer& known : answers)
    if (known.shape == shape && known.machine == machine) return known;
  std::vector<Candidate> all = candidates_of(*collective, price_of(machine, shape.memory));
  predict_all(machine, collective, all);
  const Candidate& best = best_of(all);
  Answer found{machine, shape, best.algorithm, best.parameters, remark_of(collective, all, best)};
  if (answers.size() < kAnswers) return answers.emplace_back(std::move(found));
  return answers[next_answer++ % kAnswers] = std::move(found);
}

}  // namespace

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
  throw Error(
      fmt::format("{} with algorithm '{}'{} does not combine in rank order, which option 'ordered' or an operator "
                  "that does not commute wants; those that do are {}",
                  to_string(shape.kind), shape.algorithm, text_of(wanted), fmt::join(able, ", ")));
}

CollectivePlan::CollectivePlan(const Machine& machine, const CollectiveShape& shape)
    : collective_(std::make_shared<const Collective>(machine, shape)) {
  const Answer& found = answer(machine, collective_);
  algorithm_ = found.algorithm;
  parameters_ = found.parameters;
  remark_ = found.remark;
  buffers_ = problem(0).buffers;
}

Problem CollectivePlan::problem(int rank) const {
  Problem problem = listed(collective_, {algorithm_, parameters_}, rank).problem();
  problem.remark = remark_;
  return problem;
}

std::vector<BufferFact> CollectivePlan::facts(int rank) const {
  return facts_of(*collective_, buffers_, rank);
}

std::int64_t CollectivePlan::across() const {
  return tasuki::across(collective_, {algorithm_, parameters_});
}

int doublings(int ranks) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < ranks) ++rounds;
  return rounds;
}

}  // namespace tasuki
