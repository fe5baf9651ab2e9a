// Plans of GPU memory that are made off line, from the machine that a context describes, are the live ones.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "common.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

template <class Shape>
void check_equal(const Context& ctx, const Operation& live, const Shape& shape) {
  const Machine machine = machine_of(ctx);
  Shape wanted = shape;
  if constexpr (requires { wanted.algorithm; }) {
    // A program may be run with paths forced.
    if (const char* path = std::getenv("TASUKI_PATH"); path != nullptr && wanted.path == "auto") wanted.path = path;
  }
  const Planned planned = plan(Machine::from_json(machine.to_json()), wanted);
  CHECK(to_json(planned.plan(ctx.rank())) == to_json(live.plan()));
  const VerifyReport report = verify(planned.plans());
  INFO(report.text());
  CHECK(report.ok());
}

}  // namespace

RANK_TEST("halos on GPU memory planned off line are the live ones on every path") {
  use_gpu(ctx);
  std::mt19937 random(17);
  for (const std::string& path : gpu_paths(ctx)) {
    for (int i = 0; i < 4; ++i) {
      CAPTURE(path);
      CAPTURE(i);
      HaloShape shape;
      shape.extents = {5 + static_cast<std::int64_t>(random() % 40), 11, 3 + static_cast<std::int64_t>(random() % 50)};
      shape.grid.periodic = {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0};
      shape.corners = random() % 2 == 0;
      shape.alternating = random() % 2 == 0;
      shape.path = path;
      const Grid grid(ctx, shape.extents, shape.grid);
      std::vector<Field<float>> fields;
      std::vector<HaloField> entries;
      for (int f = 0; f < 1 + i % 3; ++f) {
        FieldShape field;
        field.name = "f" + std::to_string(f);
        field.element_bytes = 4;
        field.dtype = DType::f32;
        field.shadow = 2;
        field.width = 1 + f % 2;
        field.copies = 1 + static_cast<int>(random() % 2);
        field.pad = f;
        field.memory = Memory::device;
        shape.fields.push_back(field);
        fields.emplace_back(grid, FieldOptions{field.name, field.shadow, field.copies, field.pad, Memory::device});
        entries.emplace_back(fields.back(), field.width);
      }
      HaloOptions options;
      options.corners = shape.corners;
      options.alternating = shape.alternating;
      options.path = shape.path;
      const Halo live(entries, options);
      check_equal(ctx, live, shape);
    }
  }
}

RANK_TEST("transfers between GPUs planned off line are the live ones") {
  use_gpu(ctx);
  const Grid grid(ctx, {ctx.size() * 4096});
  const Field<float> field(grid, {.name = "memory", .shadow = 0, .memory = Memory::device});
  for (const std::int64_t words : {1, 3, 100, 511}) {
    CAPTURE(words);
    TransferShape shape;
    shape.to = ctx.size() - 1;
    shape.memory = Memory::device;
    shape.src = Layout::hvector(words, 1, 16, Layout::bytes(4));
    shape.dst = Layout::bytes(4 * words);
    // Where one rank is both, its halves.
    auto* base = reinterpret_cast<std::byte*>(field.data());
    const Transfer live(ctx, {shape.from, base, shape.src}, {shape.to, base + 8192, shape.dst});
    check_equal(ctx, live, shape);
  }
}

RANK_TEST("collectives on GPU memory planned off line are the live ones") {
  use_gpu(ctx);
  const int n = ctx.size();
  const Grid grid(ctx, {n * (std::int64_t{1} << 20)});
  const Field<float> field(grid, {.name = "memory", .shadow = 0, .memory = Memory::device});
  float* const in = field.data();
  for (const std::int64_t count : {1, 100, 4099, 200000}) {
    CAPTURE(count);
    float* const out = in + (std::int64_t{1} << 19);
    CollectiveShape shape;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.type = DType::f32;
    shape.count = count;
    check_equal(ctx, Allreduce(ctx, in, out, count, DType::f32), shape);
    shape.in_place = true;
    check_equal(ctx, Allreduce(ctx, in_place, out, count, DType::f32), shape);
    shape.in_place = false;
    shape.kind = CollectiveKind::reduce;
    shape.root = n - 1;
    check_equal(ctx, Reduce(ctx, n - 1, in, out, count, DType::f32), shape);
    shape.root = 0;
    shape.count = count / n;
    shape.kind = CollectiveKind::allgather;
    check_equal(ctx, Allgather(ctx, in, out, count / n, DType::f32), shape);
    shape.kind = CollectiveKind::reduce_scatter;
    check_equal(ctx, ReduceScatter(ctx, in, out, count / n, DType::f32), shape);
    shape.kind = CollectiveKind::alltoall;
    check_equal(ctx, Alltoall(ctx, in, out, count / n, DType::f32), shape);
  }
}
