// Broadcast: the message is cut into parts; each part runs down its own tree in chunks, a symbolic loop in the plan.
//
//   every rank, a lane a part:  open link from parent, links to children
//                               loop: receive chunk c from the parent, send chunk c to each child
//                               the rest that fills no chunk, close
#include "tasuki/broadcast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "collectives/trees.hpp"
#include "operations/state.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr int kMostTrees = 16;

struct Shape {
  int trees = 1;
  int arity = 1;
  std::int64_t chunk = 0;
};

struct Part {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  Tree tree;
};

// Parts of about equal size that begin on cache lines.
std::int64_t part_begin(std::int64_t bytes, int trees, int t) {
  return t == trees ? bytes : bytes * t / trees / 64 * 64;
}

// Time of a pipeline: the first chunk goes down the whole tree, then one chunk after the other leaves the busiest rank.
double predict(const Shape& shape, std::int64_t bytes, std::span<const int> island, int root, double latency,
               double bandwidth) {
  const Tree tree = make_tree(island, root, shape.arity, 0, shape.trees);
  std::size_t most = 0;
  for (const auto& children : tree.children) most = std::max(most, children.size());
  const std::int64_t part = (bytes + shape.trees - 1) / shape.trees;
  const std::int64_t chunk = std::min(shape.chunk, part);
  const double step = static_cast<double>(chunk) / bandwidth + latency;
  const std::int64_t whole_chunks = (part + chunk - 1) / chunk;
  const auto chunks = static_cast<double>(whole_chunks);
  // Parts share the cores of the ranks they meet on; with trees turned against each other that is about the inner
  // ranks.
  const double sharing = 1.0 + 0.5 * (shape.trees - 1);
  return (tree.depth() * static_cast<double>(most) + (chunks - 1) * static_cast<double>(most)) * step * sharing +
         (shape.trees - 1) * latency;
}

Shape choose_shape(const Context& context, std::span<const int> island, int root, std::int64_t bytes,
                   const BroadcastOptions& options) {
  // Trees are laid out before paths are chosen: with the constants of the best path that joins the root and its
  // nearest.
  const PathSet& paths = paths_of(context);
  const Topology& topology = runtime_of(context).topology();
  double latency = 1e-6;
  double bandwidth = 0;
  for (const auto& path : paths.all()) {
    for (int rank = 0; rank < context.size(); ++rank) {
      if (path->memory() != Memory::host || rank == root || !path->joins(topology, root, rank)) continue;
      const double speed = paths.profile.get(path->name(), "bandwidth", 0);
      if (speed <= bandwidth) continue;
      bandwidth = speed;
      latency = paths.profile.get(path->name(), "latency", latency);
    }
  }
  if (bandwidth <= 0) bandwidth = 5e9;
  Shape best;
  double best_time = std::numeric_limits<double>::infinity();
  for (const int trees : {1, 2, 3}) {
    if (options.trees > 0 ? trees != 1 : trees > 1 && bytes < 64 * 1024) continue;
    for (const int arity : {1, 2, 3, 4}) {
      if (options.arity > 0 && arity != 1) continue;
      for (std::int64_t chunk :
           {std::int64_t{8} << 10, std::int64_t{32} << 10, std::int64_t{128} << 10, std::int64_t{512} << 10, bytes}) {
        if (options.chunk > 0 && chunk != bytes) continue;
        const Shape shape{options.trees > 0 ? options.trees : trees, options.arity > 0 ? options.arity : arity,
                          std::max<std::int64_t>(options.chunk > 0 ? options.chunk : chunk, 1)};
        const double time = predict(shape, std::max<std::int64_t>(bytes, 1), island, root, latency, bandwidth);
        if (time < best_time) {
          best_time = time;
          best = shape;
        }
      }
    }
  }
  return best;
}

StridedCopy piece(std::int64_t offset, std::int64_t bytes) {
  StridedCopy copy;
  copy.src_offset = copy.dst_offset = offset;
  copy.block = bytes;
  return copy;
}

// Commands of one part on this rank. `edges` are the moves of the part: first from the parent (if any), then to
// children.
class PartLane {
 public:
  PartLane(Composer& composer, const Part& part, int number, std::int64_t chunk)
      : composer_(composer), part_(part), chunk_(chunk) {
    const auto& moves = composer.planning().moves;
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

  const Path& enter(Edge& edge) {
    composer_.builder().set_path(edge.link.path);
    return *edge.path;
  }

  void step(std::int64_t at, std::int64_t bytes) {
    Move move = whole_;
    move.copies = {piece(part_.offset + at, bytes)};
    for (auto* edges : {&from_, &to_}) {
      for (auto& e : *edges) {
        e.link.moves = {&move};
        e.link.filled = at;
        const Path& path = enter(e);
        edges == &from_ ? path.recv(composer_.builder(), e.link) : path.send(composer_.builder(), e.link);
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

std::string complaint_about(const Context& context, int root, const void* data, std::int64_t bytes,
                            const BroadcastOptions& o) {
  if (root < 0 || root >= context.size())
    return fmt::format("argument 'root' is {}, but the context has ranks 0 to {}", root, context.size() - 1);
  if (bytes < 0) return fmt::format("argument 'bytes' is {}; it must not be negative", bytes);
  if (data == nullptr && bytes > 0) return "argument 'data' is null";
  if (o.trees < 0 || o.trees > kMostTrees)
    return fmt::format("option 'trees' is {}; give 0 (chosen) to {}", o.trees, kMostTrees);
  if (o.arity < 0) return fmt::format("option 'arity' is {}; give 0 (chosen) or more", o.arity);
  if (o.chunk < 0) return fmt::format("option 'chunk' is {} bytes; give 0 (chosen) or more", o.chunk);
  return {};
}

Description describe(const Context& context, int root, void* data, std::int64_t bytes,
                     const BroadcastOptions& options) {
  Runtime& runtime = runtime_of(context);
  Description d{fmt::format("broadcast from {}", root), {}, {}, {}, Agreement(runtime, "Broadcast"), {}};
  Agreement agreement(runtime, "Broadcast");
  agreement.same("root", root).same("bytes", bytes).same("trees", options.trees).same("arity", options.arity);
  agreement.same("chunk", options.chunk).complain(complaint_about(context, root, data, bytes, options)).check();
  std::vector<int> island;
  for (const auto& process : runtime.topology().processes) island.push_back(process.island);
  const Shape shape = choose_shape(context, island, root, bytes, options);
  d.buffers.push_back({"data", Role::inout, bytes, {static_cast<std::byte*>(data)}, nullptr, false, Memory::host});
  if (bytes > 0 && memory_of(data) == Memory::device)
    d.agreement.complain("argument 'data' is on a GPU, which broadcasts do not know; copy it to host memory first");
  std::vector<Part> parts;
  const int me = runtime.rank();
  for (int t = 0; t < shape.trees; ++t) {
    const std::int64_t begin = part_begin(bytes, shape.trees, t);
    const std::int64_t size = part_begin(bytes, shape.trees, t + 1) - begin;
    if (size == 0) continue;
    parts.push_back({begin, size, make_tree(island, root, shape.arity, t, shape.trees)});
    const auto add = [&](int from, int to) {
      Move move;
      move.seq = static_cast<std::int64_t>(t) * runtime.size() + to;
      move.src_rank = from;
      move.dst_rank = to;
      move.copies = {piece(begin, size)};
      move.label = fmt::format("part {} of {}", t + 1, shape.trees);
      d.moves.push_back(std::move(move));
    };
    const Tree& tree = parts.back().tree;
    if (me != root) add(tree.parent[static_cast<std::size_t>(me)], me);
    for (const int child : tree.children[static_cast<std::size_t>(me)]) add(me, child);
  }
  d.compose = [parts, shape, root, bytes, me](Composer& composer) {
    // A rank alone has no edges; neither has a message of no bytes.
    for (std::size_t t = 0; t < parts.size() && !composer.planning().moves.empty(); ++t) {
      PartLane(composer, parts[t], static_cast<int>(t), shape.chunk).emit();
    }
    if (me == root || bytes == 0) return;
    Builder& builder = composer.builder();
    const std::vector<StridedCopy> all{piece(0, bytes)};
    builder.expect(builder.buffer("data", root, Role::inout, bytes), builder.buffer("data", me, Role::inout, bytes),
                   all, DType::none);
  };
  return d;
}

}  // namespace

Broadcast::Broadcast(const Context& context, int root, void* data, std::int64_t bytes,
                     const BroadcastOptions& options) {
  state_ = std::make_shared<State>(context, describe(context, root, data, bytes, options), options);
}

}  // namespace tasuki
