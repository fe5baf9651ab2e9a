// Blocks that exchange a halo barrier-free (KernelGroup::cells): stencils on random grids, cut into random blocks,
// are bit for bit what one rank computes alone, whether the group can do without barriers or not.
#include <algorithm>
#include <array>
#include <random>
#include <type_traits>
#include <utility>

#include "kernel_test.hpp"
#include "random_split.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr int kDims = 3;
using Number = std::uint32_t;

TASUKI_BOTH Number stirred(Number a, Number b) {
  Number x = (a + 1) * 0x9e3779b9u + b;
  x = (x ^ x >> 16) * 0x85ebca6bu;
  return x ^ x >> 13;
}

/// The grid, and what a cell is computed from: those at most `reach` away; without corners along the dimensions alone.
struct Shape {
  int extent[kDims];
  int periodic[kDims];
  int reach;
  int corners;
};

template <class At>
TASUKI_BOTH Number next_value(const Shape& s, const int (&cell)[kDims], const At& at) {
  Number value = 0;
  for (int a = -s.reach; a <= s.reach; ++a)
    for (int b = -s.reach; b <= s.reach; ++b)
      for (int c = -s.reach; c <= s.reach; ++c) {
        const int off[kDims] = {a, b, c};
        bool inside = s.corners != 0 || (a != 0) + (b != 0) + (c != 0) <= 1;
        for (int d = 0; d < kDims; ++d)
          inside = inside && (s.periodic[d] != 0 || (cell[d] + off[d] >= 0 && cell[d] + off[d] < s.extent[d]));
        if (inside)
          value += stirred(at(cell[0] + a, cell[1] + b, cell[2] + c), static_cast<Number>(a * 25 + b * 5 + c));
      }
  return value;
}

struct Cells {
  Shape shape;
  Number* copies[2];
  long long stride[kDims];
  long long first;   // of the cell with index 0, from the beginning of the memory
  const int* boxes;  // first cells and last ones + 1
  const int* begin;  // by block, of its boxes, and the end
};

enum Mode : int { kFused, kFusedInParts, kByHand, kKept, kModes };

TASUKI_DEVICE void compute(const Cells& c, const Number* from, Number* to) {
  const auto block = device::this_block();
  const auto at = [&](int i, int j, int k) {
    return from[c.first + i * c.stride[0] + j * c.stride[1] + k * c.stride[2]];
  };
  for (int n = c.begin[block.block()]; n < c.begin[block.block() + 1]; ++n) {
    const int* const box = c.boxes + 2 * kDims * n;
    const int extent[kDims] = {box[3] - box[0], box[4] - box[1], box[5] - box[2]};
    for (int m = block.thread(); m < extent[0] * extent[1] * extent[2]; m += block.threads()) {
      const int cell[kDims] = {box[0] + m / extent[2] / extent[1], box[1] + m / extent[2] % extent[1],
                               box[2] + m % extent[2]};
      to[c.first + cell[0] * c.stride[0] + cell[1] * c.stride[1] + cell[2] * c.stride[2]] =
          next_value(c.shape, cell, at);
    }
  }
}

/// `next(mine, done, swaps)`: from a step to the next.
template <class Next>
TASUKI_DEVICE bool steps(const device::Handle& halo, const device::Neighbours& neighbours, const Cells& c, int shown,
                         Word before, int count, Word seed, const Next& next) {
  const auto block = device::this_block();
  const device::Steps mine(neighbours);
  if (!mine.wait(halo, before)) return false;
  for (int n = 0; n < count; ++n) {
    const Word done = before + static_cast<Word>(n) + 1;
    if (block.thread() == 0 && mixed(seed, static_cast<Word>(block.block()), done) % 5 == 0) {  // it dawdles
      const Word begin = device::detail::now_ns();
      while (device::detail::now_ns() - begin < 10000) {
      }
    }
    block.sync();
    compute(c, c.copies[(shown + n) % 2], c.copies[(shown + n + 1) % 2]);
    if (!next(mine, done, static_cast<Word>(n) + 1)) return false;
  }
  return true;
}

template <bool kBarrierFree>
TASUKI_DEVICE bool next_in(int mode, const device::Handle& halo, const device::Steps& mine, Word done, Word swaps) {
  const auto grid = device::this_grid();
  if (mode == kFused || mode == kKept) return mine.template next_with_run<kBarrierFree>(halo, grid, done, swaps);
  if (mode == kFusedInParts)
    return device::start<kBarrierFree>(halo, grid, swaps) &&
           mine.template next_with_wait<kBarrierFree>(halo, grid, done, swaps);
  return device::run(halo, grid, swaps) && mine.next(halo, done);
}

TASUKI_KERNEL void stencil(device::Handle halo, device::Neighbours neighbours, Cells c, int mode, int shown,
                           Word before, int count, Word seed, Word* ended) {
  const auto all = [&](const auto& next) { return steps(halo, neighbours, c, shown, before, count, seed, next); };
  const auto next_by = [&](auto barrier_free) {
    return [&](const device::Steps& mine, Word done, Word swaps) {
      return next_in<decltype(barrier_free)::value>(mode, halo, mine, done, swaps);
    };
  };
  bool good = false;
  if (device::barrier_free(halo) && mode == kKept) {
    device::BarrierFreeRun<> kept(halo, device::this_grid());
    good = all([&](const device::Steps& mine, Word done, Word swaps) { return mine.next_with(kept, done, swaps); });
  } else if (device::barrier_free(halo) && mode % 2 == 0) {
    good = all(next_by(std::true_type()));
  } else {
    good = all(next_by(std::false_type()));
  }
  kernel_tests::count(ended, good ? 1 : 0);
}

// A box, cut where these say.
std::vector<tasuki::Box> cut(const tasuki::Box& box, const std::vector<std::vector<std::int64_t>>& cuts) {
  std::vector<tasuki::Box> all;
  if (!box.empty()) all.push_back(box);
  for (std::size_t d = 0; d < cuts.size(); ++d)
    for (const std::int64_t at : cuts[d])
      for (std::size_t n = 0, count = all.size(); n < count; ++n) {
        if (at <= all[n].lo[d] || at >= all[n].hi[d]) continue;
        all.push_back(all[n]);
        all.back().lo[d] = all[n].hi[d] = at;
      }
  return all;
}

// Whether cells of two boxes are so close, also over edges that a rank has with itself.
bool near(const tasuki::Grid& grid, const tasuki::Box& a, const tasuki::Box& b, std::int64_t distance) {
  for (int d = 0; d < a.ndims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    bool close = false;
    for (const std::int64_t turn : {-1, 0, 1}) {
      if (turn != 0 && (!grid.periodic(d) || grid.split(d) > 1)) continue;
      const std::int64_t shift = turn * grid.extent(d);
      close = close || (a.lo[i] + shift - (b.hi[i] - 1) <= distance && b.lo[i] - (a.hi[i] - 1 + shift) <= distance);
    }
    if (!close) return false;
  }
  return true;
}

struct Made {
  std::vector<std::vector<tasuki::Box>> cells;
  std::vector<std::vector<int>> neighbours;
};

// Deals boxes out to at most so many blocks.
Made deal_boxes(const tasuki::Grid& grid, const std::vector<tasuki::Box>& boxes, int blocks, std::int64_t reach) {
  Made made;
  const int used = std::max(1, std::min<int>(blocks, static_cast<int>(boxes.size())));
  made.cells.resize(static_cast<std::size_t>(used));
  for (std::size_t n = 0; n < boxes.size(); ++n) made.cells[n % static_cast<std::size_t>(used)].push_back(boxes[n]);
  made.neighbours.resize(static_cast<std::size_t>(used));
  for (int a = 0; a < used; ++a)
    for (int b = 0; b < used; ++b) {
      bool close = false;
      for (const auto& one : made.cells[static_cast<std::size_t>(a)])
        for (const auto& other : made.cells[static_cast<std::size_t>(b)])
          close = close || near(grid, one, other, 2 * reach);
      if (a != b && close) made.neighbours[static_cast<std::size_t>(a)].push_back(b);
    }
  return made;
}

struct Case {
  std::vector<std::int64_t> extents;
  tasuki::GridOptions grid;
  std::vector<std::vector<std::int64_t>> cuts;
  int reach = 1;
  bool corners = true;
  int blocks = 1;
};

class Serial {
 public:
  Serial(const Shape& shape) : shape_(shape) {
    values_.resize(static_cast<std::size_t>(shape.extent[0]) * static_cast<std::size_t>(shape.extent[1]) *
                   static_cast<std::size_t>(shape.extent[2]));
    for (std::size_t n = 0; n < values_.size(); ++n) values_[n] = stirred(static_cast<Number>(n), 17);
  }
  Number at(std::int64_t i, std::int64_t j, std::int64_t k) const {
    const std::int64_t index[] = {i, j, k};
    std::int64_t n = 0;
    for (int d = 0; d < kDims; ++d) n = n * shape_.extent[d] + (index[d] + 8L * shape_.extent[d]) % shape_.extent[d];
    return values_[static_cast<std::size_t>(n)];
  }
  void step() {
    std::vector<Number> next(values_.size());
    std::size_t n = 0;
    for (int i = 0; i < shape_.extent[0]; ++i)
      for (int j = 0; j < shape_.extent[1]; ++j)
        for (int k = 0; k < shape_.extent[2]; ++k)
          next[n++] = next_value(shape_, {i, j, k}, [&](int a, int b, int c) { return at(a, b, c); });
    values_ = std::move(next);
  }

 private:
  Shape shape_;
  std::vector<Number> values_;
};

// Copies between the host and a field's current copy.
template <class F>
void each_cell(tasuki::Field<Number>& field, const F& f) {
#if defined(__CUDACC__)
  const std::size_t count = static_cast<std::size_t>(field.bytes()) / sizeof(Number);
  std::vector<Number> values(count);
  TASUKI_CUDA(cudaMemcpy, values.data(), field.data(), count * sizeof(Number), cudaMemcpyDefault);
  Number* const memory = values.data();
#else
  Number* const memory = field.data();
#endif
  const tasuki::Box owned = field.owned();
  const tasuki::Box local = field.local_owned();
  for (std::int64_t i = owned.lo[0]; i < owned.hi[0]; ++i)
    for (std::int64_t j = owned.lo[1]; j < owned.hi[1]; ++j)
      for (std::int64_t k = owned.lo[2]; k < owned.hi[2]; ++k)
        f(i, j, k,
          memory[(i - owned.lo[0] + local.lo[0]) * field.strides()[0] +
                 (j - owned.lo[1] + local.lo[1]) * field.strides()[1] +
                 (k - owned.lo[2] + local.lo[2]) * field.strides()[2]]);
#if defined(__CUDACC__)
  TASUKI_CUDA(cudaMemcpy, field.data(), values.data(), count * sizeof(Number), cudaMemcpyDefault);
#endif
}

// Returns how the group's blocks run the halo.
std::string compare(const tasuki::Context& ctx, const Case& one, const tasuki::ResidentOptions& width, unsigned seed) {
  const tasuki::Grid grid(ctx, one.extents, one.grid);
  tasuki::Field<Number> field(grid, {.name = "u", .shadow = one.reach, .copies = 2, .memory = kWhere});
  tasuki::HaloOptions how;
  how.corners = one.corners;
  how.alternating = true;
  how.cuts = one.cuts;
  tasuki::Halo halo(field, how);
  CHECK(tasuki::verify(halo).ok());

  Cells cells{};
  for (int d = 0; d < kDims; ++d) {
    cells.shape.extent[d] = static_cast<int>(one.extents[static_cast<std::size_t>(d)]);
    cells.shape.periodic[d] = grid.periodic(d) ? 1 : 0;
    cells.stride[d] = field.strides()[static_cast<std::size_t>(d)];
    const auto i = static_cast<std::size_t>(d);
    cells.first += (field.local_owned().lo[i] - field.owned().lo[i]) * cells.stride[d];
  }
  cells.shape.reach = one.reach;
  cells.shape.corners = one.corners ? 1 : 0;
  for (int n = 0; n < 2; ++n) cells.copies[n] = field.data(n);

  const Made made = deal_boxes(grid, cut(field.owned(), one.cuts), one.blocks, one.reach);
  std::vector<int> boxes;
  std::vector<int> begin{0};
  for (const auto& of_block : made.cells) {
    for (const tasuki::Box& box : of_block) {
      for (std::size_t d = 0; d < kDims; ++d) boxes.push_back(static_cast<int>(box.lo[d]));
      for (std::size_t d = 0; d < kDims; ++d) boxes.push_back(static_cast<int>(box.hi[d]));
    }
    begin.push_back(static_cast<int>(boxes.size() / (2 * kDims)));
  }
  boxes.push_back(0);
  const Buffer<int> kept_boxes(boxes);
  const Buffer<int> kept_begin(begin);
  const Buffer<Word> ended(1);
  cells.boxes = kept_boxes.get();
  cells.begin = kept_begin.get();
  const tasuki::BlockNeighbours neighbours(ctx, made.neighbours);
  tasuki::KernelGroup group;
  group.blocks = static_cast<int>(made.cells.size());
  group.threads = width.threads;
  group.cpu_threads = width.cpu_threads;
  group.cells = made.cells;
  tasuki::ResidentOptions launch = width;
  launch.blocks = group.blocks;

  Serial serial(cells.shape);
  each_cell(field, [&](auto i, auto j, auto k, Number& cell) { cell = serial.at(i, j, k); });
#if defined(__CUDACC__)
  halo.run(tasuki::Stream());
  tasuki::synchronize(ctx, tasuki::Stream());
#else
  halo.start();
  halo.wait();
#endif
  (void)halo.device(group);
  Word before = 0;
  Word threads = 0;
  for (int mode = 0; mode < kModes; ++mode) {
    const int count = 1 + static_cast<int>(seed + static_cast<unsigned>(mode) * 3) % 5;
    tasuki::launch_resident(ctx, launch, stencil, halo.device(group), neighbours.device(), cells, mode, field.current(),
                            before, count, Word{seed}, ended.get())
        .wait();
    before += static_cast<Word>(count);
    for (int n = 0; n < count; ++n) {
      field.swap();
      serial.step();
    }
    std::int64_t wrong = 0;
    each_cell(field, [&](auto i, auto j, auto k, Number& cell) { wrong += cell != serial.at(i, j, k) ? 1 : 0; });
    CHECK(wrong == 0);
#if defined(__CUDACC__)
    threads += static_cast<Word>(launch.blocks) * static_cast<Word>(launch.threads);
#else
    threads += static_cast<Word>(launch.blocks) * static_cast<Word>(launch.cpu_threads);
#endif
    CHECK(ended[0] == threads);
  }
  return halo.device_group();
}

}  // namespace

RANK_TEST("barrier-free: stencils in random blocks, with and without group barriers") {
  prepare(ctx);
  int barrier_free = 0;
  for (unsigned seed = 1; seed <= 14; ++seed) {
    std::mt19937 chance(seed);  // the same on all ranks
    const auto below = [&](int n) { return static_cast<int>(chance() % static_cast<unsigned>(n)); };
    Case one;
    one.reach = 1 + below(2);
    one.corners = below(3) != 0;
    one.blocks = 1 + below(7);
    for (int d = 0; d < kDims; ++d) {
      one.extents.push_back(3 + below(14));
      one.grid.periodic.push_back(below(2) == 0);
    }
    one.grid.split = random_split(ctx.size(), kDims, chance);
    for (int d = 0; d < kDims; ++d) {
      auto& extent = one.extents[static_cast<std::size_t>(d)];
      extent = std::max<std::int64_t>(extent, 2 * one.reach);
      extent = std::max<std::int64_t>(extent, one.grid.split[static_cast<std::size_t>(d)]);
    }
    while (one.cuts.empty()) one.cuts = random_cuts(one.extents, 2, chance);
    const auto all = widths();
    CAPTURE(seed);
    const std::string found = compare(ctx, one, all[seed % all.size()], seed);
    CAPTURE(found);
    CHECK(contains(found, "barrier"));
    if (contains(found, "barrier-free")) ++barrier_free;
  }
#if defined(__CUDACC__)
  CHECK(barrier_free > 5);
#else
  CHECK((barrier_free > 0) == (ctx.size() == 1));  // in the memory of hosts there are no LL lines
#endif
}

RANK_TEST("barrier-free: groups that need barriers say why, and cells that cannot be are errors") {
  prepare(ctx);
  const std::int64_t rows = 8;
  const tasuki::Grid grid(ctx, {rows * ctx.size(), 6}, {.split = {ctx.size(), 1}});
  tasuki::Field<Number> field(grid, {.name = "u", .shadow = 1, .copies = 2, .memory = kWhere});
  tasuki::HaloOptions how;
  how.alternating = true;
  tasuki::Halo halo(field, how);
  CHECK(halo.device_group().empty());
  tasuki::KernelGroup group;
  group.blocks = 2;
  (void)halo.device(group);
  CHECK(contains(halo.device_group(), "with group barriers: the group has no cells"));
  const tasuki::Box owned = field.owned();
  tasuki::Box left = owned;
  tasuki::Box right = owned;
  left.hi[1] = right.lo[1] = 3;
  group.cells = {{left}, {right}};
  (void)halo.device(group);
  if (ctx.size() > 1) CHECK(contains(halo.device_group(), "with group barriers: on rank 0, "));
#if defined(__CUDACC__)
  if (ctx.size() > 1) CHECK(contains(halo.device_group(), "blocks 0 and 1 are sent in one line: cut the halo"));
#endif
  const auto error = [&](std::vector<std::vector<tasuki::Box>> cells) {
    group.cells = std::move(cells);
    return error_of([&] { (void)halo.device(group); });
  };
  CHECK(contains(error({{left}}), "argument 'cells' is of 1 blocks; the group has 2"));
  CHECK(contains(error({{left}, {owned}}), "have cells in common"));
  tasuki::Box outside = right;
  outside.hi[1] = 7;
  CHECK(contains(error({{left}, {outside}}), "argument 'cells': block 1 has "));
  tasuki::Box flat = right;
  flat.ndims = 1;
  CHECK(contains(error({{left}, {flat}}), "a box of block 1 has 1 dimensions; the grid has 2"));

  const auto halo_with = [&](std::vector<std::vector<std::int64_t>> cuts) {
    how.cuts = std::move(cuts);
    return error_of([&] { const tasuki::Halo made(field, how); });
  };
  CHECK(contains(halo_with({{}, {4, 2}}), "option 'cuts' is 4,2 in dimension 1; it must be ascending, from 0 to 6"));
  CHECK(contains(halo_with({{}, {7}}), "it must be ascending, from 0 to 6"));
  CHECK(contains(halo_with({{}, {}, {1}}), "option 'cuts' has 3 dimensions, but a grid has 2"));
  if (ctx.size() > 1) CHECK(contains(halo_with({{ctx.rank()}}), "argument 'cuts' differs between ranks"));
}
