// Broadcast moves: see broadcast_moves.hpp.
#include "collectives/broadcast_moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "predict/predict.hpp"

namespace tasuki {

namespace {

// Parts of about equal size that begin on cache lines.
std::int64_t part_begin(std::int64_t bytes, int trees, int t) {
  return t == trees ? bytes : bytes * t / trees / 64 * 64;
}

// Up to this many ranks, whole plans are predicted; above, the closed form of the pipeline is used.
constexpr int kMostPredicted = 64;

// Time of a pipeline: the first chunk goes down the whole tree, then the rank with most children sends the other
// chunks, one after the other.
double pipeline_seconds(const BroadcastLayout& layout, const Tree& tree, std::int64_t bytes, const LinkCost& link) {
  std::size_t most = 0;
  for (const auto& children : tree.children) most = std::max(most, children.size());
  const std::int64_t part = (bytes + layout.trees - 1) / layout.trees;
  const std::int64_t chunk = std::min(layout.chunk, part);
  const double step = static_cast<double>(chunk) / link.bandwidth + link.latency;
  const std::int64_t steps = (part + chunk - 1) / chunk;
  const auto chunks = static_cast<double>(steps);
  // Parts share the cores of ranks that are inner nodes of more than one tree. The trees are rotated against each
  // other, so only few ranks are.
  const double sharing = 1.0 + 0.5 * (layout.trees - 1);
  return (tree.depth() * static_cast<double>(most) + (chunks - 1) * static_cast<double>(most)) * step * sharing +
         (layout.trees - 1) * link.latency;
}

std::vector<int> islands_of(const Machine& machine) {
  std::vector<int> islands;
  for (const auto& rank : machine.ranks) islands.push_back(rank.island);
  return islands;
}

// The layout is chosen before paths are. So it uses the constants of the path of highest bandwidth that joins the root
// with any rank.
LinkCost best_link(const Machine& machine, int root) {
  LinkCost best;
  best.bandwidth = 0;
  for (const Path& path : all_paths()) {
    const PathCost& cost = machine.cost(path.name);
    if (path.memory != Memory::host || !cost.measured || cost.one_way.bandwidth <= best.bandwidth) continue;
    bool joins = false;
    for (int rank = 0; rank < machine.size() && !joins; ++rank) joins = rank != root && path.joins(machine, root, rank);
    if (joins) best = cost.one_way;
  }
  return best.bandwidth > 0 ? best : LinkCost();
}

StridedCopy piece(std::int64_t offset, std::int64_t bytes) {
  StridedCopy copy;
  copy.src_offset = copy.dst_offset = offset;
  copy.block = bytes;
  return copy;
}

}  // namespace

namespace {

// The plans of all ranks. Which ranks can map each other's data is known only when memory is given; here it is assumed
// of all.
std::vector<Plan> plans_of(const Machine& machine, const BroadcastMoves& moves, std::int64_t bytes) {
  BufferFact fact;
  fact.bytes = bytes;
  fact.shared = true;
  fact.alignment = 16;
  Facts facts;
  for (int rank = 0; rank < machine.size(); ++rank) facts.set(rank, {fact});
  std::vector<Problem> problems;
  std::vector<std::vector<Decision>> decisions;
  for (int rank = 0; rank < machine.size(); ++rank) {
    problems.push_back(moves.problem(rank));
    decisions.push_back(choose(machine, problems.back(), facts));
  }
  std::vector<Plan> plans;
  for (const Problem& problem : problems) {
    const auto choices =
        settle(problem, [&](int rank) { return std::span<const Decision>(decisions[static_cast<std::size_t>(rank)]); });
    plans.push_back(emit(machine, problem, facts, choices));
  }
  return plans;
}

// Layouts that are worth trying: all values for what `wanted` leaves open. Chunks are no longer than a part.
std::vector<BroadcastLayout> candidates(std::int64_t bytes, const BroadcastLayout& wanted) {
  std::vector<BroadcastLayout> all;
  for (const int trees : {1, 2, 3}) {
    if (wanted.trees > 0 ? trees != 1 : trees > 1 && bytes < 64 * 1024) continue;
    for (const int arity : {1, 2, 3, 4}) {
      if (wanted.arity > 0 && arity != 1) continue;
      BroadcastLayout layout{wanted.trees > 0 ? wanted.trees : trees, wanted.arity > 0 ? wanted.arity : arity, 0};
      const std::int64_t part = (bytes + layout.trees - 1) / layout.trees;
      for (const std::int64_t chunk :
           {std::int64_t{8} << 10, std::int64_t{32} << 10, std::int64_t{128} << 10, std::int64_t{512} << 10, part}) {
        if (wanted.chunk > 0 ? chunk != part : chunk > part) continue;
        layout.chunk = std::max<std::int64_t>(wanted.chunk > 0 ? wanted.chunk : chunk, 1);
        if (all.empty() || all.back() != layout) all.push_back(layout);
      }
    }
  }
  return all;
}

BroadcastLayout fastest(const Machine& machine, int root, std::int64_t bytes, const BroadcastLayout& wanted) {
  const LinkCost link = best_link(machine, root);
  const std::vector<int> islands = islands_of(machine);
  const std::int64_t size = std::max<std::int64_t>(bytes, 1);
  BroadcastLayout best;
  double least = std::numeric_limits<double>::infinity();
  for (const BroadcastLayout& layout : candidates(size, wanted)) {
    const double seconds =
        machine.size() <= kMostPredicted
            ? predicted_seconds(plans_of(machine, BroadcastMoves(machine, root, size, layout), size), machine)
            : pipeline_seconds(layout, make_tree(islands, root, layout.arity, 0, layout.trees), size, link);
    if (seconds >= least) continue;
    least = seconds;
    best = layout;
  }
  return best;
}

// The last answers, because programs make the same broadcast again.
struct Answer {
  Machine machine;
  int root = 0;
  std::int64_t bytes = 0;
  BroadcastLayout wanted;
  BroadcastLayout layout;
};
constexpr std::size_t kAnswers = 8;
thread_local std::vector<Answer> answers;
thread_local std::size_t next_answer = 0;

}  // namespace

BroadcastLayout choose_layout(const Machine& machine, int root, std::int64_t bytes, const BroadcastLayout& wanted) {
  if (wanted.trees > 0 && wanted.arity > 0 && wanted.chunk > 0) return wanted;
  if (machine.size() == 1)
    return {std::max(wanted.trees, 1), std::max(wanted.arity, 1),
            wanted.chunk > 0 ? wanted.chunk : std::max<std::int64_t>(bytes, 1)};
  for (const Answer& answer : answers)
    if (answer.root == root && answer.bytes == bytes && answer.wanted == wanted && answer.machine == machine)
      return answer.layout;
  const BroadcastLayout layout = fastest(machine, root, bytes, wanted);
  if (answers.size() < kAnswers) {
    answers.push_back({machine, root, bytes, wanted, layout});
  } else {
    answers[next_answer++ % kAnswers] = {machine, root, bytes, wanted, layout};
  }
  return layout;
}

// The commands of one part on this rank. Its edges are the moves of the part: first from the parent (if any), then to
// the children.
class BroadcastMoves::Lane {
 public:
  Lane(Composer& composer, const Part& part, int number, std::int64_t chunk)
      : composer_(composer), part_(part), chunk_(chunk) {
    const auto& moves = composer.problem().moves;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      if (moves[i].copies[0].src_offset != part.offset) continue;
      (composer.incoming(i) ? from_ : to_).push_back({composer.link({i}, number), &composer.path(i)});
    }
    whole_ = moves[0];
  }

  void emit() {
    Builder& builder = composer_.builder();
    builder.begin_lane();
    for (auto& e : from_) enter(e).open_recv(builder, e.link);
    for (auto& e : to_) enter(e).open_send(builder, e.link);
    const std::int64_t rounds = part_.bytes / chunk_;
    if (rounds == 1) {
      step(0, chunk_);
    } else if (rounds > 1) {
      builder.begin_loop(rounds, chunk_);
      step(0, chunk_);
      builder.end_loop();
    }
    if (part_.bytes % chunk_ > 0) step(rounds * chunk_, part_.bytes % chunk_);
    for (auto& e : from_) enter(e).close_recv(builder, e.link);
    for (auto& e : to_) enter(e).close_send(builder, e.link);
  }

 private:
  struct Edge {
    Link link;
    const Path* path;
  };

  const Protocol& enter(Edge& edge) {
    composer_.builder().set_path(edge.path->name);
    return *edge.path->protocol;
  }

  void step(std::int64_t at, std::int64_t bytes) {
    Move move = whole_;
    move.copies = {piece(part_.offset + at, bytes)};
    for (auto* edges : {&from_, &to_}) {
      for (auto& e : *edges) {
        e.link.moves = {&move};
        e.link.filled = at;
        const Protocol& protocol = enter(e);
        edges == &from_ ? protocol.recv(composer_.builder(), e.link) : protocol.send(composer_.builder(), e.link);
      }
    }
  }

  Composer& composer_;
  const Part& part_;
  std::int64_t chunk_;
  Move whole_;
  std::vector<Edge> from_;
  std::vector<Edge> to_;
};

std::string BroadcastMoves::name(int root) {
  return fmt::format("broadcast from {}", root);
}

BroadcastMoves::BroadcastMoves(const Machine& machine, int root, std::int64_t bytes, const BroadcastLayout& wanted) {
  const BroadcastLayout layout = choose_layout(machine, root, bytes, wanted);
  auto laid = std::make_shared<Laid>();
  laid->chunk = layout.chunk;
  laid->root = root;
  laid->bytes = bytes;
  const std::vector<int> islands = islands_of(machine);
  for (int t = 0; t < layout.trees; ++t) {
    const std::int64_t begin = part_begin(bytes, layout.trees, t);
    const std::int64_t size = part_begin(bytes, layout.trees, t + 1) - begin;
    if (size > 0) laid->parts.push_back({begin, size, make_tree(islands, root, layout.arity, t, layout.trees)});
  }
  laid_ = std::move(laid);
}

Problem BroadcastMoves::problem(int rank) const {
  Problem problem;
  problem.operation = name(laid_->root);
  problem.rank = rank;
  problem.buffers = {{"data", Role::inout}};
  const auto me = static_cast<std::size_t>(rank);
  for (std::size_t t = 0; t < laid_->parts.size(); ++t) {
    const Part& part = laid_->parts[t];
    const auto add = [&](int from, int to) {
      Move move;
      move.seq = static_cast<std::int64_t>(t * part.tree.parent.size()) + to;
      move.src_rank = from;
      move.dst_rank = to;
      move.copies = {piece(part.offset, part.bytes)};
      move.label = fmt::format("part {} of {}", t + 1, laid_->parts.size());
      problem.moves.push_back(std::move(move));
    };
    if (rank != laid_->root) add(part.tree.parent[me], rank);
    for (const int child : part.tree.children[me]) add(rank, child);
  }
  mark_mutual(problem.moves);
  problem.compose = [laid = laid_](Composer& composer) {
    const int self = composer.problem().rank;
    // There are no edges if the rank is alone or the message has no bytes.
    for (std::size_t t = 0; t < laid->parts.size() && !composer.problem().moves.empty(); ++t) {
      Lane(composer, laid->parts[t], static_cast<int>(t), laid->chunk).emit();
    }
    if (self == laid->root || laid->bytes == 0) return;
    const std::vector<StridedCopy> all{piece(0, laid->bytes)};
    const int from = composer.user_buffer(laid->root, 0);
    composer.builder().expect(from, composer.user_buffer(self, 0), all, DType::none);
  };
  return problem;
}

}  // namespace tasuki
