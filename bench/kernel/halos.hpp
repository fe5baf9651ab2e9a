// Cases of tasuki-bench-kernel: epochs of halos by kernels beside those of the host, and what computing loses beside
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench.hpp"

namespace {

#if defined(__CUDACC__)
constexpr int kMostThreads = 512;  // of a halo's block
#define AT_MOST(threads) __launch_bounds__(threads)
#else
#define AT_MOST(threads)
#endif

// A pair of copies takes turns where `alternates` says so.
TASUKI_KERNEL void AT_MOST(kMostThreads) epochs(TASUKI_PARAMETER device::Handle halo, Run run, bool alternates) {
  const auto block = device::this_block();
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    const Word swaps = alternates ? i : 0;
    const bool good =
        block.blocks() == 1 ? device::run(halo, block, swaps) : device::run(halo, device::this_grid(), swaps);
    if (!good) return;
  }
  if (block.thread() == 0) run.times[block.block()] = device::detail::now_ns() - begin;
}

// The same in a barrier-free group: each block signals its neighbours that it has been there, as a step of computing
// does.
TASUKI_KERNEL void AT_MOST(kMostThreads)
    epochs_barrier_free(TASUKI_PARAMETER device::Handle halo, TASUKI_PARAMETER device::Neighbours neighbours, Run run,
                        Word before) {
  if (!device::barrier_free(halo)) return;
  const auto block = device::this_block();
  const device::Steps mine(neighbours);
  device::BarrierFreeRun exchange(halo, device::this_grid());
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    if (!mine.next_with(exchange, before + i + 1, i)) return;
  }
  if (block.thread() == 0) run.times[block.block()] = device::detail::now_ns() - begin;
}

#if defined(__CUDACC__)
constexpr tasuki::Memory kWhere = tasuki::Memory::device;
#else
constexpr tasuki::Memory kWhere = tasuki::Memory::host;
#endif

// Epochs by the host: two at a time, after which the same copy is shown again.
void run_by_host(tasuki::Field<float>& field, tasuki::Halo& halo, Bench& bench, const std::string& name, Word bytes) {
#if defined(__CUDACC__)
  constexpr int kInGraph = 20;
  cudaStream_t stream = nullptr;
  TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  {
    const tasuki::Graph graph(stream, [&] {
      for (int n = 0; n < kInGraph; ++n) {
        halo.run(stream);
        if (field.copies() == 2) field.swap();
      }
    });
    bench.measure_host(name, bytes, [&](int epochs) {
      for (int n = 0; n < epochs; n += kInGraph) graph.launch(stream);
      tasuki::synchronize(halo.context(), stream);
    });
  }
  TASUKI_CUDA(cudaStreamDestroy, stream);
#else
  bench.measure_host(name, bytes, [&](int epochs) {
    for (int n = 0; n < epochs; ++n) {
      halo.start();
      halo.wait();
      if (field.copies() == 2) field.swap();
    }
  });
#endif
}

struct HaloCase {
  const char* name;
  std::vector<std::int64_t> cells;  // of each rank
  std::vector<bool> periodic;
  tasuki::Width shadow;
  std::vector<int> split;
};

#if defined(__CUDACC__)
const std::vector<std::string> kPaths = {"auto", "peer:ll", "peer:eager", "peer:put"};
const std::vector<tasuki::KernelGroup> kGroups = {
    {.blocks = 1, .threads = 256},  {.blocks = 1, .threads = 512},  {.blocks = 2, .threads = 256},
    {.blocks = 2, .threads = 512},  {.blocks = 4, .threads = 256},  {.blocks = 4, .threads = 512},
    {.blocks = 8, .threads = 256},  {.blocks = 8, .threads = 512},  {.blocks = 16, .threads = 256},
    {.blocks = 32, .threads = 256}, {.blocks = 64, .threads = 256}, {.blocks = 128, .threads = 256}};
constexpr int kFewestForLong = 16;  // blocks: fewer take a millisecond
#else
const std::vector<std::string> kPaths = {"auto", "shared:put", "shared:eager"};
const std::vector<tasuki::KernelGroup> kGroups = {{.blocks = 1}, {.blocks = 4}};
constexpr int kFewestForLong = 1;
#endif

// Cells of slabs * folds blocks. Each has a part of the first dimension, and of the second one two parts that lie alike
// on both sides of its middle: so a row and the one that a periodic edge copies it to are one block's.
struct Folded {
  std::vector<std::vector<tasuki::Box>> cells;
  std::vector<std::vector<int>> neighbours;
  std::vector<std::vector<std::int64_t>> cuts;
};
[[maybe_unused]] Folded fold(const tasuki::Grid& grid, int slabs, int folds) {
  const tasuki::Box owned = grid.owned();
  const std::int64_t planes = owned.extent(0) / slabs;
  const std::int64_t rows = owned.extent(1) / folds / 2;
  Folded all;
  all.cuts.resize(2);
  for (std::int64_t plane = 0; plane < grid.extent(0); plane += planes) all.cuts[0].push_back(plane);
  for (std::int64_t row = 0; row < grid.extent(1); row += rows) all.cuts[1].push_back(row);
  for (int slab = 0; slab < slabs; ++slab) {
    for (int part = 0; part < folds; ++part) {
      tasuki::Box mine = owned;
      mine.lo[0] = owned.lo[0] + slab * planes;
      mine.hi[0] = mine.lo[0] + planes;
      auto& both = all.cells.emplace_back(2, mine);
      both[0].lo[1] = owned.lo[1] + part * rows;
      both[0].hi[1] = both[0].lo[1] + rows;
      both[1].hi[1] = owned.hi[1] - part * rows;
      both[1].lo[1] = both[1].hi[1] - rows;
      auto& near = all.neighbours.emplace_back();
      for (int s = std::max(0, slab - 1); s < std::min(slabs, slab + 2); ++s)
        for (int p = std::max(0, part - 1); p < std::min(folds, part + 2); ++p)
          if (s != slab || p != part) near.push_back(s * folds + p);
    }
  }
  return all;
}

#if defined(__CUDACC__)
void halos_barrier_free(const tasuki::Context& context, Bench& bench, const tasuki::Grid& grid, const HaloCase& one,
                        const std::string& name, Word bytes) {
  if (!bench.wants(name)) return;
  const bool edges = one.shadow.lo[1] > 0;  // of the rank alone
  struct Way {
    int slabs;
    int folds;
    int threads;
  };
  const std::vector<Way> ways = edges
                                    ? std::vector<Way>{{4, 4, 256}, {8, 8, 256}, {4, 4, 512}, {8, 8, 512}, {16, 8, 512}}
                                    : std::vector<Way>{{1, 4, 256}, {1, 8, 256}, {1, 16, 256}, {1, 32, 256}};
  for (const auto& [slabs, folds, threads] : ways) {
    const int blocks = slabs * folds;
    Folded cut = fold(grid, slabs, folds);
    if (!edges) cut.neighbours.assign(static_cast<std::size_t>(blocks), {});  // nobody reads another's shadow
    tasuki::Field<float> field(grid, {.shadow = one.shadow, .copies = 2, .memory = kWhere});
    tasuki::HaloOptions how;
    how.alternating = true;
    how.cuts = cut.cuts;
    tasuki::Halo halo(field, how);
    const tasuki::BlockNeighbours neighbours(context, cut.neighbours);
    const tasuki::KernelGroup group{.blocks = blocks, .threads = threads, .cells = cut.cells};
    (void)halo.device(group);  // collective
    if (halo.device_group().find("barrier-free") == std::string::npos) {
      if (context.is_root()) std::printf("%s: %s\n", name.c_str(), halo.device_group().c_str());
      continue;
    }
    Word before = 0;
    bench.measure(name, bytes, blocks, group.threads, 1, [&](const tasuki::ResidentOptions& launch, const Run& run) {
      tasuki::launch_resident(context, launch, epochs_barrier_free, halo.device(group), neighbours.device(), run,
                              before)
          .wait();
      before += run.iterations + kWarmUp;
      if ((run.iterations + kWarmUp) % 2 != 0) field.swap();
    });
  }
}
#endif

void halos(const tasuki::Context& context, Bench& bench) {
  const int ranks = context.size();
  const std::vector<int> slabs = {ranks, 1, 1};
  const std::vector<bool> all_around(3, true);
  std::vector<HaloCase> cases = {{"one face", {64, 64, 64}, {false, false, false}, {{1, 0, 0}, {1, 0, 0}}, slabs},
                                 {"64^3 periodic with corners", {64, 64, 64}, all_around, 1, slabs},
                                 {"256^3 periodic with corners", {256, 256, 256}, all_around, 1, slabs}};
  if (ranks > 2 && ranks % 2 == 0)
    cases.push_back({"64^3 periodic with corners, cut in two", {64, 64, 64}, all_around, 1, {2, ranks / 2, 1}});
  for (const HaloCase& one : cases) {
    std::vector<std::int64_t> extents = one.cells;
    for (std::size_t d = 0; d < extents.size(); ++d) extents[d] *= one.split[d];
    tasuki::GridOptions options;
    options.split = one.split;
    options.periodic = one.periodic;
    const tasuki::Grid grid(context, extents, options);
    const Word bytes = static_cast<Word>(one.cells[1] * one.cells[2]) * sizeof(float);
#if defined(__CUDACC__)
    if (ranks > 1 && bytes < kLong && one.split == slabs)
      halos_barrier_free(context, bench, grid, one, std::string("halo: ") + one.name + ", apart", bytes);
#endif
    for (const std::string& path : kPaths) {
      if (context.size() == 1 && path != "auto") continue;
      for (const bool alternates : {true, false}) {
        if (!alternates && path != "auto") continue;
        const std::string name =
            std::string("halo: ") + one.name + (alternates ? "" : ", one copy") + (path == "auto" ? "" : ", " + path);
        if (!bench.wants(name)) continue;
        tasuki::Field<float> field(grid, {.shadow = one.shadow, .copies = alternates ? 2 : 1, .memory = kWhere});
        tasuki::HaloOptions how;
        how.alternating = alternates;
        how.path = path;
        tasuki::Halo by_kernel(field, how);
        for (const tasuki::KernelGroup& group : kGroups) {
          if (bytes >= kLong && group.blocks < kFewestForLong) continue;
          (void)by_kernel.device(group);  // allocates, which may wait for kernels that run
          bench.measure(
              name, bytes, group.blocks, group.threads, 1, [&](const tasuki::ResidentOptions& launch, const Run& run) {
                tasuki::launch_resident(context, launch, epochs, by_kernel.device(group), run, alternates).wait();
                if (alternates && (run.iterations + kWarmUp) % 2 != 0) field.swap();
              });
        }
        tasuki::Field<float> other(grid, {.shadow = one.shadow, .copies = alternates ? 2 : 1, .memory = kWhere});
        tasuki::Halo by_host(other, how);
        run_by_host(other, by_host, bench, name, bytes);
      }
    }
  }
}

#if defined(__CUDACC__)

// What a user computes: each cell is read twice and written once, so that memory is what limits it.
__global__ void add_up(const float4* a, const float4* b, float4* sum, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum[i] = {a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w};
}

// What computing loses while a kernel beside it runs epochs without a pause.
void beside_epochs(const tasuki::Context& context, Bench& bench) {
  constexpr unsigned kCells = 4 << 20;
  constexpr Word kEpochsEach = 20;  // of a step of computing: more than end meanwhile
  const std::string name = "interior beside epochs of 64^3 with corners";
  if (!bench.wants(name)) return;
  const auto arrays = allocate(3 * sizeof(float4) * kCells);
  auto* const cells = reinterpret_cast<float4*>(arrays.get());
  const tasuki::Grid grid(context, {64 * context.size(), 64, 64},
                          {.split = {context.size(), 1, 1}, .periodic = {true, true, true}});
  tasuki::Field<float> field(grid, {.shadow = 1, .memory = kWhere});
  tasuki::Halo halo(field);
  int multiprocessors = 0;
  TASUKI_CUDA(cudaDeviceGetAttribute, &multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams) TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  const auto compute = [&](int steps) {
    for (int n = 0; n < steps; ++n)
      add_up<<<4 * multiprocessors, 256, 0, streams[0]>>>(cells, cells + kCells, cells + 2 * kCells, kCells);
    TASUKI_CUDA(cudaStreamSynchronize, streams[0]);
  };
  bench.measure_host(name, sizeof(float4) * kCells, compute, "alone");
  for (const int blocks : {1, 16, 64}) {
    const tasuki::KernelGroup group{.blocks = blocks, .threads = 256};
    (void)halo.device(group);
    std::optional<tasuki::Resident> beside;
    const auto launch = [&] {
      if (beside) beside->wait();
      tasuki::ResidentOptions how;
      how.blocks = blocks;
      how.threads = group.threads;
      how.stream = streams[1];
      const Run run = bench.run_of(0, kEpochsEach * static_cast<Word>(bench.iterations(sizeof(float4) * kCells)));
      static_cast<void>(beside.emplace(tasuki::launch_resident(context, how, epochs, halo.device(group), run, false)));
    };
    bench.measure_host(name, sizeof(float4) * kCells, compute, std::to_string(blocks) + " x 256", launch);
    if (beside) beside->wait();
  }
  for (cudaStream_t stream : streams) TASUKI_CUDA(cudaStreamDestroy, stream);
}

#endif

}  // namespace
