// Candidates: see candidates.hpp.
#include "collectives/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "collectives/bound.hpp"
#include "collectives/corrections.hpp"
#include "collectives/islands.hpp"
#include "paths/path.hpp"
#include "predict/predict.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Up to so many ranks whole plans are predicted; above, the closed forms must do.
constexpr int kMostPredicted = 64;
// And up to so many steps of all ranks together.
constexpr std::int64_t kMostSteps = 2048;
// Ranks whose steps are listed in one pass: few, because most often the first ones tell that there are too many steps.
constexpr int kListedTogether = 8;
// Candidates whose closed form is more than so many times the least are not looked at closely.
constexpr double kHopeless = 6;
// Of two ranks none waits for what a third one does first, which the closed forms know least of. Of pipelines they know
// little there, too.
constexpr double kHopelessOfTwo = 1.75;
// Of those that differ in their chunks only so many are.
constexpr std::ptrdiff_t kChunksLookedAt = 2;
// On hosts the planner gives each piece the path that suits its sender. It does not see what the receiver does besides:
// a root that copies its own block has no time to fetch those of others, and what is put has to be fetched by who adds
// it up. So the best few algorithms of reductions, and of what keeps cores unevenly busy, are looked at once more with
// one path for all pieces. Not of many ranks, and not where less can be won than looking costs in thousands of epochs.
constexpr int kMostOnOnePath = 8;
constexpr std::size_t kAlgorithmsOnOnePath = 3;
constexpr std::size_t kAlgorithmsOfTwo = 2;  // of two ranks, whose algorithms differ little
constexpr double kUneven = 1.25;             // an epoch takes so many times what a core is busy on average
constexpr double kWorthLooking = 0.5e-6;
// What is predicted to be faster by less than this share is not worth being less simple: predictions miss by more.
constexpr double kTie = 0.02;
constexpr double kTieOnHosts = 0.1;  // more there

// One-way price of the cheapest path that joins rank 0 and another, for pieces of about so many bytes. As for moves, a
// price that is not known counts only where none is known.
Price price_between(const Machine& machine, Memory memory, int rank, double bytes) {
  Price price;
  std::pair least{true, std::numeric_limits<double>::infinity()};
  for (const Path& path : all_paths()) {
    if (path.memory != memory || machine.unusable.contains(path.name) || !path.joins(machine, 0, rank)) continue;
    const PathCost& costs = machine.cost(path.name);
    const LinkCost& cost = costs.one_way;
    constexpr double kTypical = 4096;
    const double typical = cost.by_size.empty() ? kTypical : std::max(bytes, kTypical);
    const double a_byte =
        cost.by_size.empty() ? 1 / cost.bandwidth : seconds_of(costs, cost, typical, typical) / typical;
    const std::pair found{!costs.measured, cost.latency + typical * a_byte};
    if (found >= least) continue;
    least = found;
    price.latency = cost.latency;
    price.second_per_byte = a_byte;
  }
  return price;
}

// The dearest pair of ranks decides, and of messages inside islands the dearest within one.
Price price_of(const Machine& machine, Memory memory, double bytes) {
  Price price;
  for (int rank = 1; rank < machine.size(); ++rank) {
    const Price one = price_between(machine, memory, rank, bytes);
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

// All settings of an algorithm; and, where these were measured with other paths, these paths.
void add_candidates(const Algorithm& algorithm, const Collective& collective, const Price& price,
                    const Corrections& corrections, std::vector<Candidate>& all) {
  const CollectiveShape& shape = collective.shape();
  const Parameters wanted{shape.trees, shape.arity, shape.chunk};
  const auto settings = algorithm.settings ? algorithm.settings(collective, wanted) : std::vector<Parameters>(1);
  for (const Parameters& parameters : settings) {
    std::vector<std::string> paths;
    if (shape.path == "auto" && algorithm.paths != nullptr) paths = algorithm.paths(collective, parameters);
    paths.emplace_back("auto");
    if (shape.path == "auto") {
      for (std::string& path : corrections.paths(algorithm, parameters))
        if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
    }
    for (const std::string& path : paths) {
      Candidate candidate{&algorithm, parameters, algorithm.seconds(collective, parameters, price), -1, path};
      const Corrections::Factor found = corrections.of(algorithm, parameters, path);
      candidate.factor = found.factor;
      candidate.measured = found.measured;
      all.push_back(std::move(candidate));
    }
  }
}

bool same_but_path(const Candidate& a, const Candidate& b) {
  return a.algorithm == b.algorithm && a.parameters == b.parameters;
}

bool same_but_chunk(const Candidate& a, const Candidate& b) {
  return a.algorithm == b.algorithm && a.parameters.trees == b.parameters.trees &&
         a.parameters.arity == b.parameters.arity && a.path == b.path;
}

// Predicts its plans. False: they cannot be predicted. If the paths that are allowed cannot carry it, the seconds are
// infinite; if that is so of all candidates, who makes the operation says why.
bool predict_one(const Machine& machine, const std::shared_ptr<const Collective>& collective, Candidate& candidate) {
  std::vector<Plan> plans;
  try {
    plans = plans_of(machine, collective, candidate);
  } catch (const Error&) {
    candidate.predicted = std::numeric_limits<double>::infinity();
    return true;
  }
  if (plans.empty() || !can_predict(machine, plans)) return false;
  const PredictedWork work = predicted_work(plans, machine);
  candidate.predicted = work.seconds;
  candidate.cores = work.cores;
  return true;
}

bool worth_one_path(const Collective& collective, const Candidate& c) {
  if (c.path != "auto" || std::isinf(c.predicted) || c.predicted < kWorthLooking) return false;
  return collective.reduces() || collective.kind() == CollectiveKind::allgather ||
         c.predicted * collective.ranks() > kUneven * c.cores;
}

// Paths of host memory that take less than `most` seconds for `bytes` each way.
std::vector<std::string> single_paths(const Machine& machine, std::int64_t bytes, double most) {
  std::vector<std::string> names;
  for (const Path& path : all_paths()) {
    if (path.memory != Memory::host || machine.unusable.contains(path.name) || !path.joins(machine, 0, 1)) continue;
    const PathCost& cost = machine.cost(path.name);
    const auto all = static_cast<double>(bytes);
    if (cost.measured && cost.mutual.latency + seconds_of(cost, cost.mutual, all, all) < most)
      names.push_back(path.name);
  }
  return names;
}

// What a core loads from a peer's memory needs no second look; what is put or staged does, by who goes on with it.
bool loads_from_peers(const Path& path) {
  return path.resource == Resource::peer_core && path.transport.empty();
}

// Adds the best of those that were predicted, `some`, each with the path that suits all of its pieces best.
void predict_on_one_path(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                         std::vector<Candidate*> some, std::vector<Candidate>& all) {
  if (collective->on_gpu() || collective->shape().path != "auto" || machine.size() > kMostOnOnePath) return;
  // What was measured knows better.
  if (std::any_of(some.begin(), some.end(), [](const Candidate* c) { return c->measured; })) return;
  std::stable_sort(some.begin(), some.end(), [](auto* a, auto* b) { return a->predicted < b->predicted; });
  const std::vector<std::string> paths =
      single_paths(machine, bound_of(machine, *collective).bytes, some.front()->predicted);
  some.resize(std::min(some.size(), machine.size() == 2 ? kAlgorithmsOfTwo : kAlgorithmsOnOnePath));
  std::vector<Candidate> more;
  for (const Candidate* one : some) {
    if (!worth_one_path(*collective, *one)) continue;
    std::vector<Candidate> on_one;
    for (const std::string& path : paths) {
      Candidate candidate = *one;
      candidate.path = path;
      if (predict_one(machine, collective, candidate) && !std::isinf(candidate.predicted))
        on_one.push_back(std::move(candidate));
    }
    if (on_one.empty()) continue;
    const double least = std::ranges::min(on_one, {}, &Candidate::predicted).predicted;
    // Of those that take about as long, what a core loads itself comes first, and messages of MPI last.
    Candidate best = std::ranges::min(on_one, {}, [&](const Candidate& c) {
      const Path& path = path_named(c.path);
      const bool tie = c.predicted * (1 - kTieOnHosts) <= least;
      return std::pair(!tie ? 3 : loads_from_peers(path) ? 0 : path.outside ? 2 : 1, c.predicted);
    });
    // As long: the planner's paths are that one.
    if (best.predicted != one->predicted) more.push_back(std::move(best));
  }
  // Before those of the same algorithm, as one path is simpler than several.
  for (Candidate& candidate : more)
    all.insert(
        std::find_if(all.begin(), all.end(), [&](const Candidate& other) { return same_but_path(other, candidate); }),
        std::move(candidate));
}

// Predicts those that may win. All or none of them, so that equals are compared.
void predict_all(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                 std::vector<Candidate>& all) {
  const bool alone =
      all.size() < 2 && (collective->on_gpu() || collective->shape().path != "auto" || collective->whole() == 0);
  if (alone || machine.size() < 2 || machine.size() > kMostPredicted) return;
  std::vector<Candidate*> hopeful;
  for (Candidate& candidate : all) hopeful.push_back(&candidate);
  std::stable_sort(hopeful.begin(), hopeful.end(), [](auto* a, auto* b) { return a->closed < b->closed; });
  const double least = hopeful.front()->closed;
  const auto hopeless = [&](const Candidate* c) {
    return c->closed > least * (machine.size() == 2 && c->parameters.chunk == 0 ? kHopelessOfTwo : kHopeless);
  };
  // Those that were measured are always looked at.
  std::erase_if(hopeful, [&](const Candidate* c) { return hopeless(c) && !c->measured; });
  std::vector<const Candidate*> looked_at;
  for (const Candidate* c : hopeful) {
    const auto alike = std::count_if(looked_at.begin(), looked_at.end(), [&](const Candidate* other) {
      return !other->measured && same_but_chunk(*c, *other);
    });
    if (c->measured || alike < kChunksLookedAt) looked_at.push_back(c);
  }
  std::erase_if(
      hopeful, [&](const Candidate* c) { return std::find(looked_at.begin(), looked_at.end(), c) == looked_at.end(); });
  for (Candidate* candidate : hopeful) {
    if (predict_one(machine, collective, *candidate)) continue;
    for (Candidate* other : hopeful) other->predicted = -1;
    return;
  }
  predict_on_one_path(machine, collective, hopeful, all);
}

bool best_of_its_own(const Candidate& candidate, const std::vector<Candidate>& all) {
  return std::all_of(all.begin(), all.end(), [&](const Candidate& other) {
    return other.algorithm != candidate.algorithm || other.closed >= candidate.closed;
  });
}

// Bytes that all ranks send to ranks of other islands.
std::int64_t across(const std::shared_ptr<const Collective>& collective, const Candidate& candidate) {
  return listed(collective, candidate, 0, 0).across();
}

std::string bound_text(const Machine& machine, const Collective& collective) {
  const Bound bound = bound_of(machine, collective);
  if (bound.seconds <= 0) return {};
  const std::string text = fmt::format("bound of the hardware, by the prices: {:.2f} us", bound.seconds * 1e6);
  if (bound.bytes == 0) return text + ", a message\n";
  return text +
         fmt::format(", for {} bytes that a rank must move at {:.2f} GB/s\n", bound.bytes, bound.bandwidth / 1e9);
}

}  // namespace

Steps listed(const std::shared_ptr<const Collective>& collective, const Candidate& candidate, int first, int last) {
  Steps steps(collective, first, last);
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
    fact.bytes = own ? buffers[b].bytes : collective.span_of(rank, static_cast<int>(b));
    fact.shared = own || collective.shape().shared;
    fact.alignment = 16;
    facts.push_back(fact);
  }
  return facts;
}

std::vector<Plan> plans_of(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                           const Candidate& candidate) {
  std::vector<Problem> problems;
  Facts facts;
  std::int64_t count = 0;
  for (int first = 0; first < machine.size(); first += kListedTogether) {
    Steps steps = listed(collective, candidate, first, std::min(first + kListedTogether, machine.size()));
    if ((count += steps.count()) > kMostSteps) return {};
    for (Problem& problem : steps.problems()) {
      facts.set(problem.rank, facts_of(*collective, problem.buffers, problem.rank));
      problems.push_back(std::move(problem));
    }
  }
  std::vector<std::vector<Decision>> decisions;
  for (Problem& problem : problems) {
    problem.wanted = candidate.path != "auto" ? candidate.path : collective->shape().path;
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

bool can_predict(const Machine& machine, const std::vector<Plan>& plans) {
  return std::all_of(plans.begin(), plans.end(), [&](const Plan& plan) {
    return std::all_of(plan.commands.begin(), plan.commands.end(), [&](const Command& c) {
      if (c.peer < 0 || c.peer == plan.rank || c.path < 0) return true;
      return path_named(plan.paths[static_cast<std::size_t>(c.path)]).joins(machine, plan.rank, c.peer);
    });
  });
}

std::string name_of(const Candidate& c) {
  const Parameters& p = c.parameters;
  std::string text = c.algorithm->name;
  if (p.trees > 0) text += fmt::format(" trees {}", p.trees);
  if (p.arity > 0) text += fmt::format(" arity {}", p.arity);
  if (p.chunk > 0) text += fmt::format(" chunk {}", p.chunk);
  if (c.path != "auto") text += fmt::format(" over {}", c.path);
  return text;
}

std::vector<Candidate> candidates_of(const Machine& machine, const std::shared_ptr<const Collective>& collective) {
  const CollectiveShape& shape = collective->shape();
  const Parameters wanted{shape.trees, shape.arity, shape.chunk};
  check_algorithm(shape);
  const Price price = price_of(machine, shape.memory, static_cast<double>(collective->whole()));
  const Corrections corrections(machine, *collective);
  std::vector<Candidate> all;
  // Parameters ask for an algorithm that has them. The second pass is for those that are not worth trying: it is needed
  // if no other algorithm has the parameters.
  for (int pass = 0; pass < 2 && all.empty(); ++pass) {
    for (const Algorithm* algorithm : algorithms_of(collective->kind())) {
      if (!suits(*algorithm, shape.algorithm, wanted) || (shape.ordered && !algorithm->in_order)) continue;
      if (pass == 0 && shape.algorithm == "auto" && !shape.ordered && algorithm->worth_trying != nullptr &&
          !algorithm->worth_trying(*collective))
        continue;
      if (algorithm->why_not != nullptr) {
        const std::string why = algorithm->why_not(*collective, wanted);
        if (!why.empty() && shape.algorithm != "auto")
          throw Error(fmt::format("{} with algorithm '{}': {}", to_string(shape.kind), algorithm->name, why));
        if (!why.empty()) continue;
      }
      add_candidates(*algorithm, *collective, price, corrections, all);
    }
  }
  predict_all(machine, collective, all);
  return all;
}

bool by_plans(const std::vector<Candidate>& all) {
  return std::any_of(all.begin(), all.end(), [](const Candidate& c) { return c.predicted >= 0; });
}

// Candidates come with the simplest first.
const Candidate& best_of(const std::vector<Candidate>& all, Memory memory) {
  const bool predicted = by_plans(all);
  const double tie = predicted && memory == Memory::host ? kTieOnHosts : kTie;
  const Candidate* best = nullptr;
  const auto value = [&](const Candidate& c) { return c.model(predicted) * c.factor; };
  for (const Candidate& candidate : all) {
    if (predicted && candidate.predicted < 0) continue;
    // Whether a path carries all of it only plans show.
    if (!predicted && candidate.path != "auto" && !candidate.measured) continue;
    // Other chunks are no less simple.
    const double worth = best != nullptr && same_but_chunk(candidate, *best) ? 1 : 1 - tie;
    if (best == nullptr || value(candidate) < value(*best) * worth) best = &candidate;
  }
  return *best;
}

std::string remark_of(const Machine& machine, const std::shared_ptr<const Collective>& collective,
                      const std::vector<Candidate>& all, const Candidate& chosen) {
  const bool forced = collective->shape().algorithm != "auto";
  const auto& islands = collective->island();
  const bool several = std::any_of(islands.begin(), islands.end(), [&](int i) { return i != islands.front(); });
  const bool corrected = Corrections(machine, *collective).any();
  std::string text = fmt::format("algorithm: {}{}\n", name_of(chosen), forced ? ", which was asked for" : "");
  if (several) {
    const std::int64_t least = least_across(*collective);
    text += fmt::format("bytes across islands, of all ranks: {}{}\n", across(collective, chosen),
                        least < 0 ? std::string() : fmt::format("; the least there can be: {}", least));
  }
  if (all.size() == 1) return text + bound_text(machine, *collective);
  const bool predicted = by_plans(all);
  text += fmt::format("{:<44} {:>12}{} {:>12}{}\n", "candidates", "us predicted", corrected ? "   corrected" : "",
                      "closed form", several ? " bytes across" : "");
  int left_out = 0;
  for (const Candidate& c : all) {
    if (c.predicted < 0 && &c != &chosen && !best_of_its_own(c, all)) {
      ++left_out;
      continue;
    }
    const bool told = !predicted || c.predicted >= 0;
    const std::string by_model = c.predicted < 0           ? "-"
                                 : std::isinf(c.predicted) ? "no path"
                                                           : fmt::format("{:.2f}", c.predicted * 1e6);
    std::string factor;
    if (corrected) {
      const double value = told ? c.model(predicted) * c.factor : 0;
      factor = !told || std::isinf(value) ? fmt::format("{:>12}", "-")
                                          : fmt::format("{:>11.2f}{}", value * 1e6, c.measured ? '*' : ' ');
    }
    const std::string bytes = several ? fmt::format(" {:>12}", across(collective, c)) : std::string();
    text += fmt::format("{:<44} {:>12}{} {:>12.2f}{}{}\n", name_of(c), by_model, factor, c.closed * 1e6, bytes,
                        &c == &chosen ? "  <- chosen" : "");
  }
  if (left_out > 0) text += fmt::format("and {} more settings, whose closed forms are longer\n", left_out);
  if (corrected) text += "* measured on this machine; the others are corrected by what was\n";
  return text + bound_text(machine, *collective);
}

}  // namespace tasuki
