// Planning off line: `choose` for every rank, then `emit` for the ranks that are asked for.
#include "tasuki/planning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/algorithm.hpp"
#include "collectives/transfer_moves.hpp"
#include "grid/halo_moves.hpp"
#include "plan/look.hpp"
#include "planner/planner.hpp"
#include "predict/predict.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Ranks whose problems are made together, and kept at the same time.
constexpr int kTogether = 32;

}  // namespace

struct Planned::Impl {
  Machine machine;
  std::function<std::vector<Problem>(int first, int last)> problems;  // of ranks `first` to `last` - 1
  std::function<std::vector<BufferFact>(int rank)> facts;
  std::vector<std::shared_ptr<const std::vector<BufferFact>>> known;  // per rank: its facts
  std::vector<std::vector<Decision>> decisions;                       // per rank, by the rank that they are for
  std::vector<std::shared_ptr<const void>> keep;
  std::function<Planned(const std::string& path)> by_path;  // the same over other paths

  // The facts of a rank and of those that it deals with.
  Facts facts_around(const Problem& wanted) const {
    Facts all;
    const auto set = [&](int rank) { all.set(rank, known[static_cast<std::size_t>(rank)]); };
    set(wanted.rank);
    for (const int peer : peers_of(wanted.moves, wanted.rank)) set(peer);
    return all;
  }
  std::vector<Choice> choices(const Problem& wanted) const {
    return settle(wanted, [&](int rank) {
      const std::span<const Decision> all(decisions[static_cast<std::size_t>(rank)]);
      if (rank == wanted.rank) return all;
      const auto first = std::ranges::lower_bound(all, wanted.rank, {}, &Decision::dst_rank);
      const auto last = std::ranges::upper_bound(all, wanted.rank, {}, &Decision::dst_rank);
      return std::span<const Decision>(first, last);
    });
  }
  Problem problem(int rank) const { return std::move(problems(rank, rank + 1).front()); }
  // Calls `see` with every rank's problem, in their order.
  template <class See>
  void each_problem(See&& see) const {
    for (int first = 0; first < machine.size(); first += kTogether)
      for (const Problem& problem : problems(first, std::min(first + kTogether, machine.size()))) {
        detail::look();
        see(problem);
      }
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

// Facts of memory that CUDA or Tasuki allocates: well aligned.
BufferFact fact(std::int64_t bytes, int copies, bool alternating, Memory memory, bool shared) {
  BufferFact fact;
  fact.copies = copies;
  fact.ring = alternating && copies > 1 ? 2 : 1;
  fact.bytes = bytes;
  fact.memory = memory;
  fact.shared = shared && (memory == Memory::host || bytes > 0);
  fact.alignment = 16;
  return fact;
}

Planned planned(std::shared_ptr<Planned::Impl> impl, const std::string& path) {
  if (const std::string complaint = path_complaint(path); !complaint.empty()) throw Error(complaint);
  impl->problems = [make = std::move(impl->problems), path](int first, int last) {
    std::vector<Problem> problems = make(first, last);
    for (Problem& problem : problems)
      if (path != "auto") problem.wanted = path;  // else what the choice of an algorithm has named
    return problems;
  };
  for (int rank = 0; rank < impl->machine.size(); ++rank)
    impl->known.push_back(std::make_shared<const std::vector<BufferFact>>(impl->facts(rank)));
  impl->each_problem([&](const Problem& problem) {
    auto& decisions = impl->decisions.emplace_back(choose(impl->machine, problem, impl->facts_around(problem)));
    std::ranges::stable_sort(decisions, {}, &Decision::dst_rank);
  });
  return Planned(std::move(impl));
}

// For problems that are made rank by rank.
template <class Make>
std::function<std::vector<Problem>(int first, int last)> each(Make make) {
  return [make = std::move(make)](int first, int last) {
    std::vector<Problem> problems;
    for (int rank = first; rank < last; ++rank) problems.push_back(make(rank));
    return problems;
  };
}

template <class Shape>
Planned with_path(const Machine& machine, Shape shape, const std::string& path) {
  shape.path = path;
  return plan(machine, shape);
}

std::vector<int> islands_of(const Machine& machine) {
  std::vector<int> islands;
  for (const auto& rank : machine.ranks) islands.push_back(rank.island);
  return islands;
}

void check_gpus(const Machine& machine, Memory memory) {
  if (memory != Memory::device) return;
  for (int rank = 0; rank < machine.size(); ++rank)
    if (machine.ranks[static_cast<std::size_t>(rank)].gpus < 0)
      throw Error(fmt::format("machine {}: device memory was asked for, but rank {} has no GPU", machine.name, rank));
}

void check_rank(const Machine& machine, const char* argument, int rank) {
  if (rank < 0 || rank >= machine.size())
    throw Error(
        fmt::format("argument '{}' is {}, but the machine has ranks 0 to {}", argument, rank, machine.size() - 1));
}

void check_field(const FieldShape& field, int dims, bool reverse) {
  if (field.name.empty()) throw Error("a field has no name; plans name the field");
  if (field.element_bytes < 1)
    throw Error(
        fmt::format("field {}: the element has {} bytes; it must have at least 1", field.name, field.element_bytes));
  if (field.copies < 1 || field.copies > 2)
    throw Error(fmt::format("field {}: argument 'copies' is {}; it must be 1 or 2", field.name, field.copies));
  if (field.pad < 0)
    throw Error(fmt::format("field {}: argument 'pad' is {}; it must be 0 or more", field.name, field.pad));
  if (reverse && field.dtype == DType::none)
    throw Error(fmt::format("reverse needs numbers to add, but the elements of field {} are not", field.name));
  for (int d = 0; d < dims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    for (const auto& [width, shadow] :
         {std::pair{field.width.lo[i], field.shadow.lo[i]}, std::pair{field.width.hi[i], field.shadow.hi[i]}})
      if (width < 0 || width > shadow)
        throw Error(
            fmt::format("width {} of field {} in dimension {} does not fit its shadow {}; give a width from 0 to "
                        "the shadow",
                        width, field.name, d, shadow));
  }
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
  return tasuki::explain(impl_->machine, problem, impl_->facts_around(problem), impl_->choices(problem),
                         all[static_cast<std::size_t>(rank)]) +
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
  if (halo.fields.empty()) throw Error("Halo: argument 'fields' is empty; give at least one field");
  auto impl = std::make_shared<Planned::Impl>();
  impl->machine = machine;
  impl->by_path = [machine, halo](const std::string& path) { return with_path(machine, halo, path); };
  const auto placement = std::make_shared<Placement>(placed(halo.extents, halo.grid, islands_of(machine)));
  std::vector<const Placement*> placements;
  std::vector<HaloBuffer> buffers;
  for (const FieldShape& field : halo.fields) {
    check_field(field, placement->ndims(), halo.reverse);
    check_gpus(machine, field.memory);
    placements.push_back(placement.get());
    buffers.push_back({field.name, field.element_bytes, field.dtype, field.width, field.shadow, field.pad});
  }
  if (const std::string wrong = complaint_about(halo.cuts, *placement); !wrong.empty()) throw Error("Halo: " + wrong);
  const auto moves = std::make_shared<HaloMoves>(placements, buffers, halo.corners, halo.reverse, halo.cuts);
  impl->keep = {placement, moves};
  impl->problems = each([moves](int rank) { return moves->problem(rank); });
  impl->facts = [placement, buffers, halo](int rank) {
    std::vector<BufferFact> facts;
    for (std::size_t f = 0; f < buffers.size(); ++f) {
      std::int64_t bytes = buffers[f].element_bytes;
      for (const std::int64_t extent : memory_extents(*placement, buffers[f], rank)) bytes *= extent;
      const FieldShape& field = halo.fields[f];
      facts.push_back(fact(bytes, field.copies, halo.alternating, field.memory, field.shared));
    }
    return facts;
  };
  return planned(std::move(impl), halo.path);
}

Planned plan(const Machine& machine, const TransferShape& transfer) {
  check_rank(machine, "from", transfer.from);
  check_rank(machine, "to", transfer.to);
  check_gpus(machine, transfer.memory);
  if (transfer.src.size() != transfer.dst.size())
    throw Error(fmt::format("layouts of unequal size: 'src' names {} bytes, 'dst' names {} bytes", transfer.src.size(),
                            transfer.dst.size()));
  if (transfer.dst.overlaps())
    throw Error(fmt::format("layout 'dst' ({}) names a byte twice; a destination must not", transfer.dst.describe()));
  auto impl = std::make_shared<Planned::Impl>();
  impl->machine = machine;
  impl->by_path = [machine, transfer](const std::string& path) { return with_path(machine, transfer, path); };
  const Constants constants = machine.constants;
  impl->problems = each([transfer, constants](int rank) {
    if (rank == transfer.from || rank == transfer.to)
      return transfer_problem(constants, rank, transfer.from, transfer.to, transfer.src, transfer.dst);
    Problem nothing;
    nothing.operation = transfer_name(transfer.from, transfer.to);
    nothing.rank = rank;
    nothing.buffers = {{"from", Role::input}, {"to", Role::output}};
    return nothing;
  });
  impl->facts = [transfer](int rank) {
    const auto side = [&](int of, const Layout& layout) {
      if (rank != of) return fact(0, 0, false, Memory::host, false);
      return fact(layout.true_upper_bound() - layout.true_lower_bound(), 1, false, transfer.memory, transfer.shared);
    };
    return std::vector<BufferFact>{side(transfer.from, transfer.src), side(transfer.to, transfer.dst)};
  };
  return planned(std::move(impl), transfer.path);
}

Planned plan(const Machine& machine, const CollectiveShape& shape) {
  auto impl = std::make_shared<Planned::Impl>();
  impl->machine = machine;
  impl->by_path = [machine, shape](const std::string& path) { return with_path(machine, shape, path); };
  check_gpus(machine, shape.memory);
  const auto layout = std::make_shared<CollectivePlan>(machine, shape);
  impl->problems = [layout](int first, int last) { return layout->problems(first, last); };
  impl->facts = [layout](int rank) { return layout->facts(rank); };
  return planned(std::move(impl), shape.path);
}

Planned plan(const Machine& machine, const BroadcastShape& broadcast) {
  if (broadcast.bytes < 0) throw Error(fmt::format("argument 'bytes' is {}; it must not be negative", broadcast.bytes));
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.root = broadcast.root;
  shape.count = broadcast.bytes;
  shape.algorithm = broadcast.algorithm;
  shape.trees = broadcast.trees;
  shape.arity = broadcast.arity;
  shape.chunk = broadcast.chunk;
  shape.memory = broadcast.memory;
  shape.shared = broadcast.shared;
  shape.path = broadcast.path;
  return plan(machine, shape);
}

}  // namespace tasuki
