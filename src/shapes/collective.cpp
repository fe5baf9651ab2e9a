// Collectives: see collective.hpp.
#include "shapes/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "collectives/algorithm.hpp"
#include "collectives/candidates.hpp"
#include "collectives/measuring.hpp"
#include "layout/counted.hpp"
#include "layout/sequence.hpp"
#include "paths/path.hpp"
#include "shapes/enumerators.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::string counts_complaint(const char* name, const std::vector<std::int64_t>& counts, int ranks) {
  if (std::ssize(counts) != ranks)
    return fmt::format("argument '{}' has {} entries for {}", name, counts.size(), counted(ranks, "rank"));
  for (std::size_t r = 0; r < counts.size(); ++r)
    if (counts[r] < 0)
      return fmt::format("argument '{}' is {} for rank {}; it must not be negative", name, counts[r], r);
  return {};
}

class JointCollective final : public JointShape {
 public:
  JointCollective(const Machine& machine, const CollectiveShape& shape) : plan_(machine, shape) {}
  std::vector<Problem> problems(int first, int last) const override { return plan_.problems(first, last); }
  std::vector<BufferFact> facts(int rank) const override { return plan_.facts(rank); }

 private:
  CollectivePlan plan_;
};

}  // namespace

Agreed CollectiveOfRank::agreed() const {
  const CollectiveShape& shape = call_.shape;
  const auto truth = [](bool is) { return is ? "true" : "false"; };
  Agreed all;
  all.reserve(15);
  all.emplace_back("layouts", truth(call_.has_layouts));
  all.emplace_back("individual counts", truth(call_.has_matrix));
  if (rooted(shape.kind)) all.emplace_back("root", std::to_string(shape.root));
  if (call_.has_layouts) {
    // They may differ, and are compared when all are known.
  } else if (!call_.has_counts) {
    all.emplace_back(call_.count_name, std::to_string(shape.count));
  } else {
    all.emplace_back("counts", fmt::format("{}", fmt::join(shape.counts, " ")));
  }
  all.emplace_back("type", shown(shape.type));
  all.emplace_back("op", shape.own.empty() ? shown(shape.op) : fmt::format("own '{}'", shape.own));
  all.emplace_back("record", std::to_string(shape.record));
  all.emplace_back("ordered", truth(shape.ordered));
  if (!rooted(shape.kind)) all.emplace_back("in_place", truth(call_.marked));
  all.emplace_back("algorithm", shape.algorithm);
  all.emplace_back("path", shape.path);
  all.emplace_back("tune", std::to_string(tune_));
  all.emplace_back("trees", std::to_string(shape.trees));
  all.emplace_back("arity", std::to_string(shape.arity));
  all.emplace_back("chunk", std::to_string(shape.chunk));
  all.emplace_back("where", to_string(shape.memory));  // of a barrier, which has no memory to tell
  return all;
}

std::string CollectiveOfRank::complaint(const Machine& machine) const {
  const CollectiveShape& shape = call_.shape;
  const int ranks = machine.size();
  for (std::string wrong :
       {path_complaint(shape.path, 0), enumerator_complaint("type", shape.type), enumerator_complaint("op", shape.op)})
    if (!wrong.empty()) return wrong;
  if (shape.root < 0 || shape.root >= ranks)
    return fmt::format("argument 'root' is {}, but the context has ranks 0 to {}", shape.root, ranks - 1);
  if (call_.has_counts && std::ssize(shape.counts) != ranks)
    return fmt::format("argument 'counts' has {} entries for {}", shape.counts.size(), counted(ranks, "rank"));
  if (shape.count < 0)
    return fmt::format("argument '{}' is {}; it must not be negative", call_.count_name, shape.count);
  if (marked_root() && rank_ != shape.root)
    return fmt::format("argument '{}' is in_place, which is for the root; rank {} is not",
                       marks_out() ? call_.out_name : call_.in_name, rank_);
  if (call_.has_matrix) {
    std::string wrong = counts_complaint("send_counts", call_.send_counts, ranks);
    if (wrong.empty()) wrong = counts_complaint("receive_counts", call_.receive_counts, ranks);
    if (!wrong.empty()) return wrong;
  }
  try {
    check_algorithm(shape);
    if (shape.op == ReduceOp::own && !call_.has_function)
      return "argument 'op' is own; give an Operator with a name and a function";
    const Collective collective(machine, shape);
    return call_.has_layouts ? complaint_about_layouts(call_, rank_, ranks) : std::string();
  } catch (const Error& error) {
    std::string text = error.what();
    const std::string in_shapes = "argument 'count' ";
    if (text.starts_with(in_shapes)) text.replace(0, in_shapes.size(), fmt::format("argument '{}' ", call_.count_name));
    return text;
  }
}

void CollectiveOfRank::list() {
  if (call_.has_matrix) call_.shape.counts = matrix_.sent;
  if (call_.has_layouts) fill(call_, sides_);
  collective_.emplace(machine_, call_.shape);
}

std::vector<MemoryUse> CollectiveOfRank::memory() const {
  const bool broadcast = call_.shape.kind == CollectiveKind::broadcast;
  const auto use = [&](const std::string& name, bool used, int buffer) {
    MemoryUse made{name, fmt::format("argument '{}'", name), {}, {}};
    made.not_in_place =
        broadcast ? ", but a broadcast has no other buffer; give the memory" : ", which only the other buffer may be";
    if (call_.has_function)
      made.not_on_gpu = fmt::format(
          "argument 'op' is '{}', a function that runs on the processor, but '{}' is on a GPU; give an operator of "
          "dtype.hpp, or host memory",
          call_.shape.own, name);
    if (!used) return made;
    made.buffer = buffer;
    made.range.begin = collective_->begins_at(rank_, buffer);
    made.range.end = made.range.begin + collective_->span_of(rank_, buffer);
    return made;
  };
  const bool moves = call_.shape.kind != CollectiveKind::barrier;
  return {use(call_.in_name, moves && (!call_.marked || marks_out()), collective_->in()),
          use(call_.out_name, moves && !broadcast && !(call_.marked && marks_out()), collective_->out())};
}

Layout CollectiveOfRank::bytes_of(std::size_t buffer, bool written) const {
  if (written != (buffer == 1)) return {};
  const int number = written ? collective_->out() : collective_->in();
  if (!collective_->has_layouts()) return Layout::bytes(collective_->span_of(rank_, number));
  const auto& layouts = written ? call_.shape.out_layouts : call_.shape.in_layouts;
  return moved(layouts[static_cast<std::size_t>(rank_)], -collective_->begins_at(rank_, number));
}

std::string CollectiveOfRank::overlapping(std::size_t /*a*/, std::size_t /*b*/) const {
  return fmt::format("arguments '{}' and '{}' overlap in memory; work in place with 'in_place'", call_.in_name,
                     call_.out_name);
}

Hearers CollectiveOfRank::hearers() const {
  return call_.has_matrix || call_.has_layouts ? Hearers::all : Hearers::nobody;
}

void CollectiveOfRank::tell(int /*hearer*/, Encoder& to) const {
  if (call_.has_layouts) return tell_layouts(call_, rank_, machine_.size(), to);
  to.numbers(call_.send_counts).numbers(call_.receive_counts);
}

void CollectiveOfRank::hear(int rank, Decoder& from) {
  if (call_.has_layouts) {
    sides_.push_back(hear_layouts(call_.shape, rank, machine_.size(), from));
    return;
  }
  for (auto* const all : {&matrix_.sent, &matrix_.received}) {
    const auto row = from.numbers();
    if (std::ssize(row) != machine_.size() || std::ranges::any_of(row, [](std::int64_t count) { return count < 0; }))
      throw Malformed("no counts");
    all->insert(all->end(), row.begin(), row.end());
  }
}

std::string CollectiveOfRank::misfit() const {
  if (call_.has_layouts) return misfit_of(call_, sides_);
  const auto n = static_cast<std::size_t>(machine_.size());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t r = 0; r < n; ++r)
      if (matrix_.sent[r * n + i] != matrix_.received[i * n + r])
        return fmt::format(
            "rank {}: argument 'receive_counts' is {} for rank {}, whose 'send_counts' has {} for this rank", i,
            matrix_.received[i * n + r], r, matrix_.sent[r * n + i]);
  return {};
}

std::optional<Choosing> CollectiveOfRank::choosing() const {
  return Choosing{call_.shape.path, engine_, call_.shape.memory, !marked_root()};
}

void CollectiveOfRank::settle(Memory memory, bool shared, bool holds) {
  call_.shape.memory = memory;
  call_.shape.shared = shared;
  if (rooted(call_.shape.kind)) call_.shape.in_place = !holds;
}

std::vector<Arrangement> CollectiveOfRank::arrangements(const Machine& machine) const {
  const CollectivePlan chosen(machine, call_.shape);
  std::vector<Arrangement> all;
  all.push_back({{}, {}, chosen.problem(rank_), chosen.predicted()});
  if (tune_ <= 1) return all;
  all.front().name = fmt::format("{}, as predicted", name_of(chosen.candidate()));
  all.front().path = chosen.path() != "auto" ? chosen.path() : call_.shape.path;
  // What is predicted to be fastest beside it.
  const auto collective = std::make_shared<const Collective>(machine, call_.shape);
  const std::vector<Candidate> others = candidates_to_try(machine, collective);
  const bool predicted = by_plans(others);
  for (const Candidate& one : others) {
    if (std::ssize(all) > 2 * static_cast<std::ptrdiff_t>(tune_)) break;
    const CollectivePlan layout(machine, call_.shape, one);
    all.push_back({name_of(one), layout.path(), layout.problem(rank_), one.model(predicted) * one.factor});
  }
  return all;
}

std::shared_ptr<const JointShape> joint(const Machine& machine, const CollectiveShape& collective) {
  check_gpus(machine, collective.memory);
  return std::make_shared<const JointCollective>(machine, collective);
}

CollectiveShape CollectiveShape::broadcast(int root, std::int64_t bytes) {
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.root = root;
  shape.count = bytes;
  return shape;
}

}  // namespace tasuki
