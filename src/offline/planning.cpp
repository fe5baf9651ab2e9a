// Planning off line: `choose` for every rank, then `emit` for the ranks that are asked for.
#include "tasuki/planning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/look.hpp"
#include "planner/explain.hpp"
#include "planner/planner.hpp"
#include "predict/predict.hpp"
#include "shapes/collective.hpp"
#include "shapes/exchange.hpp"
#include "shapes/halo.hpp"
#include "shapes/named.hpp"
#include "shapes/neighbours.hpp"
#include "shapes/redistribute.hpp"
#include "shapes/transfer.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Ranks whose problems are made together, and kept at the same time.
constexpr int kTogether = 32;

}  // namespace

struct Planned::Impl {
  Machine machine;
  std::shared_ptr<const JointShape> joint;
  std::string path;                                                   // forced, or `auto`
  std::vector<std::shared_ptr<const std::vector<BufferFact>>> known;  // per rank: its facts
  std::vector<std::vector<Decision>> decisions;                       // per rank, by the rank that they are for
  std::function<Planned(const std::string& path)> by_path;            // the same over other paths

  // The facts of a rank and of those that it deals with.
  Facts facts_around(const Problem& wanted) const {
    Facts all;
    const auto set = [&](int rank) { all.set(rank, known[static_cast<std::size_t>(rank)]); };
    set(wanted.rank);
    for (const int peer : peers_of(wanted.moves, wanted.rank)) set(peer);
    return all;
  }
  // What a rank has decided for the ranks of a problem.
  DecisionsOf decided(int wanted) const {
    return [this, wanted](int rank) {
      const std::span<const Decision> all(decisions[static_cast<std::size_t>(rank)]);
      if (rank == wanted) return all;
      const auto first = std::ranges::lower_bound(all, wanted, {}, &Decision::dst_rank);
      const auto last = std::ranges::upper_bound(all, wanted, {}, &Decision::dst_rank);
      return std::span<const Decision>(first, last);
    };
  }
  std::vector<Choice> choices(const Problem& wanted) const { return settle(wanted, decided(wanted.rank)); }
  // Of ranks `first` to `last` - 1.
  std::vector<Problem> problems(int first, int last) const {
    std::vector<Problem> problems = joint->problems(first, last);
    for (Problem& problem : problems)
      if (path != "auto") problem.wanted = path;  // else what the choice of an algorithm has named
    return problems;
  }
  // As ranks have decided.
  Problem cut(Problem asked) const {
    std::optional<Problem> parts = in_parts(asked, decided(asked.rank));
    return parts ? std::move(*parts) : std::move(asked);
  }
  Problem problem(int rank) const { return cut(std::move(problems(rank, rank + 1).front())); }
  // Calls `see` with every rank's problem, in their order, as ranks ask it.
  template <class See>
  void each_asked(See&& see) const {
    for (int first = 0; first < machine.size(); first += kTogether)
      for (Problem& problem : problems(first, std::min(first + kTogether, machine.size()))) {
        detail::look();
        see(std::move(problem));
      }
  }
  // The same, as ranks have decided.
  template <class See>
  void each_problem(See&& see) const {
    each_asked([&](Problem&& problem) { see(cut(std::move(problem))); });
  }
  // The plans of all ranks, without expectations but for those of `whole`: what is predicted of many ranks' plans need
  // not hold what is only for the verifier.
  std::vector<Plan> plans_to_predict(int whole) const {
    std::vector<Plan> all;
    all.reserve(static_cast<std::size_t>(machine.size()));
    each_problem([&](const Problem& problem) {
      Plan& made = all.emplace_back(plan(problem));
      if (made.rank == whole || made.expects.empty()) return;
      made.copies.resize(static_cast<std::size_t>(made.expects.front().first_copy));  // theirs are the last ones
      made.copies.shrink_to_fit();
      made.expects = {};
    });
    return all;
  }
  Plan plan(const Problem& wanted) const { return emit(machine, wanted, facts_around(wanted), choices(wanted)); }
  void check(int rank) const {
    if (rank < 0 || rank >= machine.size())
      throw Error(fmt::format("machine {}: argument 'rank' is {}; there are ranks 0 to {}", machine.name, rank,
                              machine.size() - 1));
  }
};

namespace {

int directions_of(const HaloShape& halo) {
  return static_cast<int>(std::min<std::size_t>(halo.extents.size(), kMaxDims));
}
template <class Shape>
int directions_of(const Shape&) {
  return 0;
}

// As programs find it: on one host whose GPUs all reach each other, what only other GPUs need is not set up.
Machine as_set_up(Machine machine, const std::string& wanted) {
  const Machine::Rank& first = machine.ranks.front();
  const auto reached = [&](const Machine::Rank& one) {
    return one.gpus >= 0 && one.host == first.host && one.island == first.island;
  };
  if (!std::ranges::all_of(machine.ranks, reached)) return machine;
  for (const Path& path : all_paths())
    if (path.when_needed && !names(wanted, path))
      machine.unusable.try_emplace(path.name,
                                   "not set up: all GPUs reach each other (a list that names it sets it up)");
  return machine;
}

// Prices and networks of a path that there is not, such as a family, would be those of none.
void check_paths(const Machine& machine) {
  const auto check = [&](const char* place, const auto& by_path) {
    for (const auto& entry : by_path) {
      if (std::ranges::find(all_paths(), entry.first, &Path::name) != all_paths().end()) continue;
      std::vector<std::string> known;
      for (const Path& path : all_paths()) known.push_back(path.name);
      throw Error(fmt::format("machine {}: {}.{}: there is no path '{}'; paths are {}", machine.name, place,
                              entry.first, entry.first, fmt::join(known, ", ")));
    }
  };
  check("paths", machine.costs);
  check("uses", machine.uses);
  check("unusable", machine.unusable);
}

template <class Shape>
Planned planned(const Machine& given, const Shape& shape) {
  if (const std::string complaint = path_complaint(shape.path, directions_of(shape)); !complaint.empty())
    throw Error(complaint);
  check_paths(given);
  const Machine machine = as_set_up(given, shape.path);
  auto impl = std::make_shared<Planned::Impl>();
  impl->machine = machine;
  impl->joint = joint(machine, shape);
  impl->path = shape.path;
  impl->by_path = [given, shape](const std::string& path) {
    Shape other = shape;
    other.path = path;
    return planned(given, other);
  };
  for (int rank = 0; rank < machine.size(); ++rank)
    impl->known.push_back(std::make_shared<const std::vector<BufferFact>>(impl->joint->facts(rank)));
  impl->each_asked([&](const Problem& problem) {
    auto& decisions = impl->decisions.emplace_back(choose(machine, problem, impl->facts_around(problem)));
    std::ranges::stable_sort(decisions, {}, &Decision::dst_rank);
  });
  return Planned(std::move(impl));
}

}  // namespace

int Planned::ranks() const {
  return impl_->machine.size();
}

void Planned::passes(int rank, const std::function<void(const std::string& pass, const Plan& plan)>& see) const {
  impl_->check(rank);
  const Problem problem = impl_->problem(rank);
  emit(impl_->machine, problem, impl_->facts_around(problem), impl_->choices(problem), see);
}

Plan Planned::plan(int rank) const {
  impl_->check(rank);
  return impl_->plan(impl_->problem(rank));
}

std::vector<Plan> Planned::plans() const {
  std::vector<Plan> all;
  all.reserve(static_cast<std::size_t>(ranks()));
  impl_->each_problem([&](const Problem& problem) { all.push_back(impl_->plan(problem)); });
  return all;
}

std::string Planned::explain(int rank) const {
  impl_->check(rank);
  const Problem problem = impl_->problem(rank);
  const std::vector<Plan> all = impl_->plans_to_predict(rank);
  return to_text(explained(impl_->machine, problem, impl_->facts_around(problem), impl_->choices(problem),
                           all[static_cast<std::size_t>(rank)])) +
         predict_made(all, impl_->machine).text();
}

std::vector<Message> Planned::messages() const {
  std::vector<Message> all;
  impl_->each_problem([&](const Problem& problem) {
    const std::vector<Choice> chosen = impl_->choices(problem);
    for (std::size_t i = 0; i < problem.moves.size(); ++i) {
      const Move& move = problem.moves[i];
      if (move.src_rank != problem.rank || move.dst_rank == problem.rank) continue;
      all.push_back({move.label, move.src_rank, move.dst_rank, move.bytes(), chosen[i].path->name});
    }
  });
  return all;
}

Prediction Planned::predict() const {
  return predict_made(impl_->plans_to_predict(-1), impl_->machine);
}

Advice Planned::advise(double computation) const {
  std::vector<Plan> by_copies;
  const auto& ranks = impl_->machine.ranks;
  if (std::any_of(ranks.begin(), ranks.end(), [](const Machine::Rank& rank) { return rank.gpus >= 0; })) {
    try {
      by_copies = impl_->by_path("peer:copy").plans();
    } catch (const PathUnusable&) {  // in host memory, and where there are sums
    }
  }
  return tasuki::advise(plans(), impl_->machine, computation, by_copies);
}

Planned plan(const Machine& machine, const HaloShape& halo) {
  return planned(machine, halo);
}

Planned plan(const Machine& machine, const TransferShape& transfer) {
  return planned(machine, transfer);
}

Planned plan(const Machine& machine, const CollectiveShape& collective) {
  return planned(machine, collective);
}

Planned plan(const Machine& machine, const NeighbourShape& neighbours) {
  return planned(machine, neighbours);
}

Planned plan(const Machine& machine, const ExchangeShape& exchange) {
  return planned(machine, exchange);
}

Planned plan(const Machine& machine, const NamedShape& named) {
  return planned(machine, named);
}

Planned plan(const Machine& machine, const RedistributeShape& redistribute) {
  return planned(machine, redistribute);
}

}  // namespace tasuki
