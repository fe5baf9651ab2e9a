// Plans made off line, from the machine that a context describes, are those of the live operations, byte for byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "host_paths.hpp"
#include "random_split.hpp"
#include "rank_test.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

struct BroadcastLayoutWanted {
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;
};

template <class Shape>
void check_equal(const Context& ctx, const Operation& live, const Shape& shape, bool verified = true) {
  const Machine machine = machine_of(ctx);
  const Machine read = Machine::from_json(machine.to_json());
  CHECK(read == machine);
  const Planned planned = plan(read, shape);
  CHECK(to_json(planned.plan(ctx.rank())) == to_json(live.plan()));
  CHECK(planned.explain(ctx.rank()).starts_with(live.explain()));  // it predicts besides
  if (!verified) return;
  const VerifyReport report = verify(planned.plans());
  INFO(report.text());
  CHECK(report.ok());
}

Layout moved_by(const Layout& layout, std::int64_t bytes) {
  const std::int64_t one = 1;
  return Layout::hindexed({&one, 1}, {&bytes, 1}, layout);
}

Width random_width(int dims, std::mt19937& random, const Width* most) {
  Width width(0);
  for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
    const auto up_to = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % (static_cast<unsigned>(n) + 1));
    };
    width.lo[d] = up_to(most ? most->lo[d] : 3);
    width.hi[d] = up_to(most ? most->hi[d] : 3);
  }
  return width;
}

HaloShape random_halo(int ranks, std::mt19937& random) {
  HaloShape halo;
  const int dims = 1 + static_cast<int>(random() % 3);
  halo.grid.split = random_split(ranks, dims, random);
  for (int d = 0; d < dims; ++d) {
    // Sometimes fewer cells than ranks, so that ranks are empty.
    halo.extents.push_back(1 + static_cast<std::int64_t>(random() % (dims > 2 ? 9 : 29)));
    halo.grid.periodic.push_back(random() % 2 == 0);
  }
  halo.grid.reorder = random() % 3 == 0;
  halo.corners = random() % 3 != 0;
  halo.reverse = random() % 4 == 0;
  halo.alternating = random() % 2 == 0;
  const int fields = 1 + static_cast<int>(random() % 3);
  for (int f = 0; f < fields; ++f) {
    FieldShape field;
    field.name = "f" + std::to_string(f);
    field.shadow = random_width(dims, random, nullptr);
    field.width = random_width(dims, random, &field.shadow);
    field.copies = 1 + static_cast<int>(random() % 2);
    field.pad = f;
    field.shared = random() % 4 != 0;
    halo.fields.push_back(field);
  }
  halo.cuts = random_cuts(halo.extents, 2, random);
  return halo;
}

// A live halo of the shape, with whatever it keeps alive.
struct LiveHalo {
  std::vector<std::vector<double>> own;
  std::vector<Field<double>> fields;
  std::optional<Halo> halo;

  LiveHalo(const Context& ctx, const HaloShape& shape) {
    const Grid grid(ctx, shape.extents, shape.grid);
    std::vector<HaloField> entries;
    for (const FieldShape& field : shape.fields) {
      const FieldOptions options{field.name, field.shadow, field.copies, field.pad};
      if (field.shared) {
        fields.emplace_back(grid, options);
      } else {
        std::int64_t cells = 1;
        for (int d = 0; d < grid.ndims(); ++d) {
          const auto i = static_cast<std::size_t>(d);
          cells *= grid.owned().extent(d) + field.shadow.lo[i] + field.shadow.hi[i] +
                   (d == grid.ndims() - 1 ? field.pad : 0);
        }
        std::vector<double*> memory;
        for (int copy = 0; copy < field.copies; ++copy) {
          own.emplace_back(static_cast<std::size_t>(cells) + 1);
          memory.push_back(own.back().data());
        }
        fields.emplace_back(grid, memory, options);
      }
      entries.emplace_back(fields.back(), field.width);
    }
    HaloOptions options;
    options.corners = shape.corners;
    options.reverse = shape.reverse;
    options.alternating = shape.alternating;
    options.path = shape.path;
    options.cuts = shape.cuts;
    halo.emplace(entries, options);
  }
};

}  // namespace

RANK_TEST("halos planned off line are the live ones: widths, corners, reverse, pairs, several fields, empty ranks") {
  std::mt19937 random(4321);
  for (int i = 0; i < (ctx.size() > 8 ? 4 : 24); ++i) {
    CAPTURE(i);
    const HaloShape shape = random_halo(ctx.size(), random);
    const LiveHalo live(ctx, shape);
    check_equal(ctx, *live.halo, shape);
  }
}

RANK_TEST("halos on a forced path are planned off line as live, with cuts that leave ranks empty too") {
  for (const auto& path : host_paths(ctx)) {
    CAPTURE(path);
    HaloShape shape;
    shape.extents = {37, 5};
    shape.grid.split = {ctx.size(), 1};
    shape.grid.periodic = {true, false};
    std::vector<std::int64_t> cuts{0};
    for (int r = 1; r < ctx.size(); ++r) cuts.push_back(r % 2 == 0 ? cuts.back() : 37 * r / ctx.size());
    cuts.push_back(37);
    shape.grid.cuts = {cuts, {}};
    shape.path = path;
    shape.fields.push_back({.name = "p", .shadow = 2, .width = 2});
    shape.fields.push_back({.name = "q", .shadow = 1, .width = 1, .copies = 2});
    const LiveHalo live(ctx, shape);
    check_equal(ctx, *live.halo, shape);
  }
}

RANK_TEST("transfers planned off line are the live ones, whatever the layouts and whose memory it is") {
  std::mt19937 random(99);
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    TransferShape shape;
    shape.from = static_cast<int>(random() % static_cast<unsigned>(ctx.size()));
    shape.to = static_cast<int>(random() % static_cast<unsigned>(ctx.size()));
    shape.shared = random() % 3 != 0;
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 300);
    const std::int64_t words = 1 + static_cast<std::int64_t>(random() % 40);
    const Layout word = Layout::bytes(8);
    shape.src = Layout::hvector(rows, words, 8 * (words + static_cast<std::int64_t>(random() % 5)), word);
    shape.dst =
        random() % 2 == 0 ? Layout::bytes(shape.src.size()) : Layout::hvector(words, rows, 8 * (rows + 1), word);
    const std::int64_t bytes = std::max(shape.src.true_upper_bound(), shape.dst.true_upper_bound());
    std::vector<std::shared_ptr<std::byte>> shared;
    std::vector<std::vector<double>> own;
    std::byte* base[2];
    for (std::byte*& at : base) {
      if (shape.shared) {
        shared.push_back(shared_alloc(ctx, bytes));
        at = shared.back().get();
      } else {
        own.emplace_back(static_cast<std::size_t>(bytes / 8 + 2));
        at = reinterpret_cast<std::byte*>(own.back().data());
      }
    }
    const Transfer live(ctx, {shape.from, base[0], shape.src}, {shape.to, base[1], shape.dst});
    check_equal(ctx, live, shape);
  }
}

RANK_TEST("broadcasts planned off line are the live ones, whatever their trees") {
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{8}, std::int64_t{100001}, std::int64_t{1} << 20}) {
    for (const BroadcastLayoutWanted& wanted : {BroadcastLayoutWanted{0, 0, 0}, {2, 3, 4096}, {3, 1, 0}}) {
      for (const bool is_shared : {false, true}) {
        CAPTURE(bytes);
        CAPTURE(wanted.trees);
        CAPTURE(is_shared);
        CollectiveShape shape = CollectiveShape::broadcast(ctx.size() - 1, bytes);
        shape.trees = wanted.trees;
        shape.arity = wanted.arity;
        shape.chunk = wanted.chunk;
        shape.shared = is_shared;
        const auto shared = shared_alloc(ctx, bytes + 64);
        std::vector<double> own(static_cast<std::size_t>(bytes / 8 + 2));
        BroadcastOptions options;
        options.trees = shape.trees;
        options.arity = shape.arity;
        options.chunk = shape.chunk;
        void* data = is_shared ? static_cast<void*>(shared.get()) : own.data();
        const Broadcast live(ctx, shape.root, data, bytes, options);
        check_equal(ctx, live, shape, bytes < 200000);
      }
    }
  }
}

RANK_TEST("neighbour collectives planned off line are the live ones: on grids, and on graphs with layouts") {
  std::mt19937 random(271);
  const int n = ctx.size();
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    const bool allgather = i % 2 == 1;
    const std::int64_t count = 1 + static_cast<std::int64_t>(random() % 50);
    const std::vector<bool> periodic{i % 3 != 0, random() % 2 == 0};
    const Grid grid(ctx, {n, n}, {.split = {0, 0}, .periodic = periodic});
    const NeighbourShape shape = NeighbourShape::on_grid(machine_of(ctx), {0, 0}, periodic, 8 * count, allgather);
    std::vector<double> in(static_cast<std::size_t>(4 * count)), out(in.size());
    if (allgather)
      check_equal(ctx, NeighbourAllgather(ctx, Neighbours(grid), in.data(), out.data(), count, DType::f64), shape);
    else
      check_equal(ctx, NeighbourAlltoall(ctx, Neighbours(grid), in.data(), out.data(), count, DType::f64), shape);
  }
  // Each rank sends a column of a matrix to the next rank and to the one after, which are the rank itself if it is
  // alone; rows arrive.
  const std::int64_t rows = 7;
  NeighbourShape shape;
  shape.shared = true;
  for (int rank = 0; rank < n; ++rank) {
    NeighbourBlocks& blocks = shape.blocks.emplace_back();
    for (const int step : {1, 2}) {
      blocks.to.push_back((rank + step) % n);
      blocks.from.push_back((rank + n * step - step) % n);
      blocks.sent.push_back(moved_by(Layout::hvector(rows, 1, 24, Layout::bytes(8)), 8 * step));
      blocks.received.push_back(moved_by(Layout::bytes(8 * rows), 8 * rows * (step - 1)));
    }
  }
  const auto memory = shared_alloc(ctx, 24 * rows);
  const auto arrived = shared_alloc(ctx, 16 * rows);
  const NeighbourBlocks& mine = shape.blocks[static_cast<std::size_t>(ctx.rank())];
  check_equal(
      ctx,
      NeighbourAlltoall(ctx, Neighbours(mine.to, mine.from), memory.get(), mine.sent, arrived.get(), mine.received),
      shape);
}

TEST_CASE("neighbour collectives that cannot be are refused off line") {
  const Machine machine = Machine::uniform(2, 2, 2);
  NeighbourShape shape;
  shape.blocks.resize(2);
  CHECK_NOTHROW(plan(machine, shape));
  shape.blocks[0].to = {1};
  CHECK_THROWS_WITH_AS(plan(machine, shape), "rank 0: argument 'to' names 1 neighbours, but there are 0 layouts",
                       Error);
  shape.blocks[0].sent = {Layout::bytes(8)};
  CHECK_THROWS_WITH_AS(plan(machine, shape), doctest::Contains("rank 0 names rank 1 in 'to' 1 times"), Error);
  shape.blocks[1].from = {0};
  shape.blocks[1].received = {Layout::bytes(4)};
  CHECK_THROWS_WITH_AS(plan(machine, shape), doctest::Contains("sends 8 bytes to rank 1"), Error);
  shape.blocks[1].from = {2};
  CHECK_THROWS_WITH_AS(plan(machine, shape), doctest::Contains("'from' names rank 2 (entry 0)"), Error);
  shape.blocks.resize(1);
  CHECK_THROWS_WITH_AS(plan(machine, shape), "argument 'blocks' is of 1 rank, but the machine has 2", Error);
}
