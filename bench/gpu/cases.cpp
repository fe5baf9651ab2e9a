// The groups of cases on GPUs: halos, single faces, contiguous bytes.
#include "gpu/cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <memory>

#include "gpu/problem.hpp"

namespace bench {
namespace {

std::vector<tasuki::FieldBase> fields_of(const tasuki::Grid& grid, int number, int element_bytes,
                                         const tasuki::Width& shadow) {
  std::vector<tasuki::FieldBase> fields;
  for (int f = 0; f < number; ++f) {
    const tasuki::FieldOptions options{
        .name = fmt::format("f{}", f), .shadow = shadow, .memory = tasuki::Memory::device};
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

std::string verify(const GpuCase& problem, const Peer& peer, Runner& runner) {
  std::string complaint;
  // No barrier between the rounds: a peer that lets a rank run ahead into another's memory must be seen.
  for (int round = 1; round <= 4; ++round) {
    fill_fields(problem, round);
    if (peer.silent) {
      finish_stream(problem.context);
      problem.context.barrier();
    }
    runner.start();
    runner.wait();
    runner.finish();
    if (peer.silent) problem.context.barrier();
    const std::string wrong = wrong_in_fields(problem, round);
    if (complaint.empty() && !wrong.empty()) {
      complaint = fmt::format("rank {}, round {}: {}", problem.context.rank(), round, wrong);
    }
  }
  return agree(problem.context, complaint);
}

Problem problem_of(const std::shared_ptr<GpuCase>& gpu) {
  Problem problem;
  problem.make = [gpu](const Peer& peer) { return peer.gpu ? peer.gpu(*gpu) : nullptr; };
  problem.verify = [gpu](const Peer& peer, Runner& runner) { return verify(*gpu, peer, runner); };
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
};

Problem halo_problem(const tasuki::Context& context, const HaloShape& shape) {
  gpu_stream(context);
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < 3; ++d) extents.push_back(shape.cells[d] * shape.split[d]);
  tasuki::GridOptions options;
  options.split = shape.split;
  options.periodic = shape.periodic;
  const tasuki::Grid grid(context, extents, options);
  const auto fields = fields_of(grid, shape.fields, shape.element_bytes, shape.width);
  const auto moves = moves_of(context.rank(), halo_moves(fields[0], shape.fields, shape.width, shape.corners));
  const auto operations = [fields, corners = shape.corners](const std::string& path) {
    tasuki::HaloOptions how;
    how.path = path;
    how.corners = corners;
    return std::vector<tasuki::Operation>{
        tasuki::Halo(std::vector<tasuki::HaloField>(fields.begin(), fields.end()), how)};
  };
  return problem_of(std::make_shared<GpuCase>(
      GpuCase{.context = context, .fields = fields, .moves = moves, .operations = operations}));
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
  return problem_of(std::make_shared<GpuCase>(GpuCase{
      .context = context, .fields = fields, .moves = moves_of(context.rank(), {move}), .operations = operations}));
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
  };
  const Size sizes[] = {{.n = 64},
                        {.n = 64, .fields = 4},
                        {.n = 256},
                        {.n = 256, .corners = false},
                        {.n = 256, .fields = 4},
                        {.n = 256, .width = 2},
                        {.n = 512},
                        {.n = 512, .fields = 4},
                        {.n = 64, .element_bytes = 8},
                        {.n = 256, .element_bytes = 8}};
  for (const Size& size : sizes) {
    for (const auto& split : splits) {
      HaloShape shape{{size.n, size.n, size.n}, split};
      shape.width = size.width;
      shape.fields = size.fields;
      shape.element_bytes = size.element_bytes;
      shape.corners = size.corners;
      const std::int64_t padded = size.n + 2 * size.width;
      const std::int64_t received =
          size.corners ? padded * padded * padded - size.n * size.n * size.n : 6 * size.width * size.n * size.n;
      cases.push_back({"gpu-halo",
                       fmt::format("{}^3 f{} w{}{}{} split {}", size.n, 8 * size.element_bytes, size.width,
                                   size.fields > 1 ? fmt::format(" x {} fields", size.fields) : "",
                                   size.corners ? "" : " faces only", fmt::join(split, "x")),
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
  return cases;
}

}  // namespace bench
