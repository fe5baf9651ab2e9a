// The groups of cases on GPUs: halos, single faces, contiguous bytes; and those of collectives.
#include "gpu/cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "gpu/collectives.hpp"
#include "gpu/problem.hpp"

namespace bench {
namespace {

std::vector<tasuki::FieldBase> fields_of(const tasuki::Grid& grid, int number, int element_bytes,
                                         const tasuki::Width& shadow, int copies = 1) {
  std::vector<tasuki::FieldBase> fields;
  for (int f = 0; f < number; ++f) {
    const tasuki::FieldOptions options{
        .name = fmt::format("f{}", f), .shadow = shadow, .copies = copies, .memory = tasuki::Memory::device};
    if (element_bytes == 4) {
      fields.push_back(tasuki::Field<float>(grid, options));
    } else {
      fields.push_back(tasuki::Field<double>(grid, options));
    }
  }
  return fields;
}

// All moves of a halo of equal boxes, of all ranks, in an order that is the same everywhere.
std::vector<GpuMove> halo_moves(const tasuki::FieldBase& field, int fields, const tasuki::Width& width, bool corners) {
  const tasuki::Grid& grid = field.grid();
  const tasuki::Box own = field.local_owned();
  std::vector<GpuMove> moves;
  for (int source = 0; source < grid.context().size(); ++source) {
    for (int number = 0; number < 27; ++number) {
      const int direction[3] = {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
      const int sides = std::abs(direction[0]) + std::abs(direction[1]) + std::abs(direction[2]);
      if (sides == 0 || (sides > 1 && !corners)) continue;
      GpuMove move;
      move.source = source;
      auto coords = grid.coords(source);
      bool there = true;
      for (int d = 0; d < 3; ++d) {
        // What goes up fills the shadow below the neighbour, and the other way round.
        const std::int64_t wide = direction[d] > 0 ? width.lo[d] : width.hi[d];
        const std::int64_t n = own.extent(d);
        move.from.extent[d] = move.to.extent[d] = direction[d] == 0 ? n : wide;
        move.from.lo[d] = direction[d] > 0 ? own.hi[d] - wide : own.lo[d];
        move.to.lo[d] = direction[d] > 0 ? own.lo[d] - wide : direction[d] < 0 ? own.hi[d] : own.lo[d];
        coords[d] += direction[d];
        const bool outside = coords[d] < 0 || coords[d] >= grid.split(d);
        there = there && (direction[d] == 0 || (wide > 0 && (!outside || grid.periodic(d))));
        coords[d] = (coords[d] + grid.split(d)) % grid.split(d);
      }
      if (!there) continue;
      move.target = grid.rank_at(coords);
      for (move.field = 0; move.field < fields; ++move.field) moves.push_back(move);
    }
  }
  return moves;
}

std::vector<GpuMove> moves_of(int rank, const std::vector<GpuMove>& all) {
  std::vector<GpuMove> mine;
  for (const GpuMove& move : all) {
    if (move.source == rank || move.target == rank) mine.push_back(move);
  }
  return mine;
}

// The same problem for each copy of its fields.
using Copies = std::vector<GpuCase>;

std::string verify(const Copies& copies, const Peer& peer, Runner& runner) {
  const tasuki::Context& context = copies[0].context;
  std::string complaint;
  // No barrier between the rounds: a peer that lets a rank run ahead into another's memory must be seen. But a shadow
  // that is not shown belongs to an alternating halo, and may be filled only when nobody can be about to write it.
  const bool meet = peer.silent || copies.size() > 1;
  for (int round = 1; round <= 4; ++round) {
    for (const GpuCase& copy : copies) fill_fields(copy, 2 * round + copy.copy);
    if (meet) {
      finish_stream(context);
      context.barrier();
    }
    for (std::size_t n = 0; n < copies.size(); ++n) {
      runner.start();
      runner.wait();
    }
    runner.finish();
    if (meet) context.barrier();
    for (const GpuCase& copy : copies) {
      const std::string wrong = wrong_in_fields(copy, 2 * round + copy.copy);
      if (!complaint.empty() || wrong.empty()) continue;
      complaint = fmt::format("rank {}, round {}, copy {}: {}", context.rank(), round, copy.copy, wrong);
    }
  }
  return agree(context, complaint);
}

// Two runners, for one copy each, that are started in turn.
class InTurn : public Runner {
 public:
  InTurn(RunnerPtr first, RunnerPtr second) : runners_{std::move(first), std::move(second)} {}
  void start() override {
    turn_ = 1 - turn_;
    runners_[turn_]->start();
  }
  void wait() override { runners_[turn_]->wait(); }
  void finish() override {
    for (const RunnerPtr& runner : runners_) runner->finish();
  }
  int exchanges() const override { return runners_[0]->exchanges(); }

 private:
  RunnerPtr runners_[2];
  std::size_t turn_ = 1;
};

RunnerPtr make(const Copies& copies, const Peer& peer) {
  if (!peer.gpu) return nullptr;
  RunnerPtr first = peer.gpu(copies[0]);
  if (!first || copies.size() == 1 || peer.name.starts_with(kReference)) return first;
  RunnerPtr second = peer.gpu(copies[1]);
  return second ? std::make_unique<InTurn>(std::move(first), std::move(second)) : nullptr;
}

Problem problem_of(const GpuCase& gpu) {
  auto copies = std::make_shared<Copies>();
  for (int copy = 0; copy < gpu.fields[0].copies(); ++copy) {
    copies->push_back(gpu);
    copies->back().copy = copy;
  }
  Problem problem;
  problem.make = [copies](const Peer& peer) { return make(*copies, peer); };
  problem.verify = [copies](const Peer& peer, Runner& runner) { return verify(*copies, peer, runner); };
  return problem;
}

struct HaloShape {
  std::int64_t cells[3];
  std::vector<int> split;
  std::vector<bool> periodic = {true, true, true};
  tasuki::Width width = 1;
  int fields = 1;
  int element_bytes = 4;
  bool corners = true;
  int copies = 1;
};

Problem halo_problem(const tasuki::Context& context, const HaloShape& shape) {
  gpu_stream(context);
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < 3; ++d) extents.push_back(shape.cells[d] * shape.split[d]);
  tasuki::GridOptions options;
  options.split = shape.split;
  options.periodic = shape.periodic;
  const tasuki::Grid grid(context, extents, options);
  const auto fields = fields_of(grid, shape.fields, shape.element_bytes, shape.width, shape.copies);
  const auto moves = moves_of(context.rank(), halo_moves(fields[0], shape.fields, shape.width, shape.corners));
  const auto operations = [fields, shape](const std::string& path) {
    tasuki::HaloOptions how;
    how.path = path;
    how.corners = shape.corners;
    how.alternating = shape.copies == 2;
    return std::vector<tasuki::Operation>{
        tasuki::Halo(std::vector<tasuki::HaloField>(fields.begin(), fields.end()), how)};
  };
  return problem_of({.context = context, .fields = fields, .moves = moves, .operations = operations});
}

tasuki::Layout layout_of(const tasuki::FieldBase& field, const GpuBox& box) {
  const tasuki::Index extents = field.extents();
  return tasuki::Layout::subarray(std::span(extents.data(), 3), box.extent, box.lo,
                                  tasuki::Layout::bytes(field.element_bytes()));
}

// One box of a rank's field, which has that many cells a rank, to another's or its own.
Problem transfer_problem(const tasuki::Context& context, const std::vector<std::int64_t>& cells, int element_bytes,
                         const GpuMove& move) {
  gpu_stream(context);
  tasuki::GridOptions options;
  options.split = {context.size(), 1, 1};
  const tasuki::Grid grid(context, {cells[0] * context.size(), cells[1], cells[2]}, options);
  const auto fields = fields_of(grid, 1, element_bytes, 0);
  const auto operations = [context, field = fields[0], move](const std::string& path) {
    tasuki::OperationOptions how;
    how.path = path;
    const tasuki::TransferSide from{move.source, field.raw(0), layout_of(field, move.from)};
    const tasuki::TransferSide to{move.target, field.raw(0), layout_of(field, move.to)};
    return std::vector<tasuki::Operation>{tasuki::Transfer(context, from, to, how)};
  };
  return problem_of(
      {.context = context, .fields = fields, .moves = moves_of(context.rank(), {move}), .operations = operations});
}

std::string size_name(std::int64_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    if (bytes >> shift > 0) return fmt::format("{} {}", bytes >> shift, unit);
  }
  return fmt::format("{} B", bytes);
}

void add_halos(int ranks, std::vector<Case>& cases) {
  const std::vector<std::vector<int>> splits =
      ranks == 4   ? std::vector<std::vector<int>>{{4, 1, 1}, {2, 2, 1}, {1, 2, 2}}
      : ranks == 2 ? std::vector<std::vector<int>>{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}}
                   : std::vector<std::vector<int>>{{ranks, 1, 1}};
  struct Size {
    std::int64_t n;
    int element_bytes = 4;
    std::int64_t width = 1;
    int fields = 1;
    bool corners = true;
    bool periodic = true;
    int copies = 1;
    bool every_split = false;  // else only the one in two dimensions, or the first
  };
  const Size sizes[] = {{.n = 64, .every_split = true},
                        {.n = 64, .fields = 4, .every_split = true},
                        {.n = 64, .periodic = false},
                        {.n = 64, .fields = 4, .periodic = false},
                        {.n = 64, .periodic = false, .copies = 2},
                        {.n = 64, .fields = 4, .periodic = false, .copies = 2},
                        {.n = 256, .every_split = true},
                        {.n = 256, .corners = false, .every_split = true},
                        {.n = 256, .fields = 4, .every_split = true},
                        {.n = 256, .periodic = false},
                        {.n = 256, .periodic = false, .copies = 2},
                        {.n = 256, .width = 2},
                        {.n = 256, .element_bytes = 8},
                        {.n = 512, .every_split = true}};
  for (const Size& size : sizes) {
    for (const auto& split : splits) {
      if (!size.every_split && split != splits[ranks == 4 ? 1 : 0]) continue;
      HaloShape shape{{size.n, size.n, size.n}, split};
      shape.width = size.width;
      shape.fields = size.fields;
      shape.element_bytes = size.element_bytes;
      shape.corners = size.corners;
      shape.periodic.assign(3, size.periodic);
      shape.copies = size.copies;
      std::int64_t padded = 1;
      std::int64_t faces = 0;
      for (const int parts : split) {
        const int sides = size.periodic ? 2 : std::min(parts - 1, 2);  // of the rank that has most
        padded *= size.n + sides * size.width;
        faces += sides * size.width * size.n * size.n;
      }
      const std::int64_t received = size.corners ? padded - size.n * size.n * size.n : faces;
      cases.push_back({"gpu-halo",
                       fmt::format("{}^3 f{} w{}{}{}{}{} split {}", size.n, 8 * size.element_bytes, size.width,
                                   size.fields > 1 ? fmt::format(" x {} fields", size.fields) : "",
                                   size.corners ? "" : " faces only", size.periodic ? "" : " open",
                                   size.copies == 2 ? " swapped" : "", fmt::join(split, "x")),
                       received * size.element_bytes * size.fields, size.n == 64,
                       [shape](const tasuki::Context& context) { return halo_problem(context, shape); }});
    }
  }
}

void add_faces(int ranks, std::vector<Case>& cases) {
  if (ranks < 2) return;
  constexpr const char* kPattern[] = {"contiguous", "block stride", "stride"};
  for (const std::int64_t n : {64, 256, 512}) {
    for (int d = 0; d < 3; ++d) {
      GpuMove move;
      move.target = 1;
      move.from = {{0, 0, 0}, {n, n, n}};
      move.from.extent[d] = 1;
      move.to = move.from;
      move.to.lo[d] = n - 1;
      cases.push_back({"gpu-face", fmt::format("{}^3 f32 {}", n, kPattern[d]), n * n * 4, n == 64,
                       [n, move](const tasuki::Context& context) {
                         return transfer_problem(context, {n, n, n}, 4, move);
                       }});
    }
  }
}

// Rows of 8-byte numbers; a GPU has two, of which one is sent and one receives.
void add_copies(int ranks, std::vector<Case>& cases) {
  const auto from_to = [](int source, int target, std::int64_t bytes) {
    const GpuMove move{source, target, 0, {{0, 0, 0}, {1, 1, bytes / 8}}, {{1, 0, 0}, {1, 1, bytes / 8}}};
    return [move, bytes](const tasuki::Context& context) {
      return transfer_problem(context, {2, 1, bytes / 8}, 8, move);
    };
  };
  constexpr std::int64_t kMiB = 1 << 20;
  if (ranks >= 2) {
    for (const std::int64_t bytes :
         {std::int64_t{8}, kMiB / 8192, kMiB / 512, kMiB / 32, kMiB / 2, 16 * kMiB, 256 * kMiB, 1024 * kMiB}) {
      cases.push_back({"gpu-copy", size_name(bytes) + " one way", bytes, bytes <= kMiB / 512, from_to(0, 1, bytes)});
      // The shadow above a rank's row is filled by the next rank, in a ring; by each other's where there are two.
      HaloShape shape{{1, 1, bytes / 8}, {ranks, 1, 1}, {true, false, false}, {}, 1, 8, false};
      shape.width.hi[0] = 1;
      cases.push_back({"gpu-copy", size_name(bytes) + (ranks == 2 ? " both ways" : " in a ring"), bytes,
                       bytes <= kMiB / 512,
                       [shape](const tasuki::Context& context) { return halo_problem(context, shape); }});
    }
  }
  cases.push_back({"gpu-copy", "1 GiB in one GPU's memory", 1024 * kMiB, false, from_to(0, 0, 1024 * kMiB)});
}

}  // namespace

std::vector<Case> gpu_cases(int ranks) {
  std::vector<Case> cases;
  add_halos(ranks, cases);
  add_faces(ranks, cases);
  add_copies(ranks, cases);
  for (Case& one : gpu_collective_cases(ranks)) cases.push_back(std::move(one));
  return cases;
}

}  // namespace bench
