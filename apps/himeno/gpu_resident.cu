// The Himeno benchmark on GPUs as one kernel for all iterations, which exchanges by itself: no launch an iteration, and
// nothing for the host to do. A block has the same tiles in every iteration. If the coefficients of all of them fit in
// its shared memory, it keeps them there: they are loaded from their arrays once, not in every iteration. Else the
// memory serves better as a cache of the pressure. Compiled without contraction, as all stencils here.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/gpu.hpp"
#include "himeno/gpu_kernel.hpp"
#include "himeno/gpu_tiles.cuh"
#include "himeno/solver.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/kernel.hpp"

namespace himeno {
namespace {

namespace device = tasuki::device;

struct Steps {
  float* p[2];  // the copies
  int first;    // the copy that the first step computes
  int count;
  std::uint32_t side_tiles;  // which come first; they are computed before the halo starts
  std::uint32_t tiles;       // in all
  int kept;                  // tiles of a block, if their coefficients are in shared memory
};

// A thread's coefficients of the tiles that are kept, in shared memory.
template <int V>
struct Kept {
  Group<V>* memory;  // of a tile each array after the other, of an array each thread
  int tile;
  __device__ Group<V>& at(int array) const {
    return memory[(tile * static_cast<int>(kArrays.size()) + array) * kThreads + static_cast<int>(threadIdx.x)];
  }
  __device__ Group<V> operator()(int array, std::int64_t) const { return at(array); }
};

// Calls `f` with the tiles of this block from `first` on, and their numbers among the block's.
template <class F>
__device__ void each_tile(std::uint32_t first, std::uint32_t end, int& turn, const F& f) {
  for (std::uint32_t tile = first; tile < end; tile += gridDim.x) f(tile, turn++);
}

// Tiles are dealt out in turns: sides to the first blocks, which send, the others to the last ones.
template <int V, bool kKept>
__global__ void __launch_bounds__(kThreads, 2)
    iterate(const __grid_constant__ device::Handle halo, const __grid_constant__ Launch l,
            const __grid_constant__ Steps steps) {
  const auto grid = device::this_grid();
  const std::uint32_t mirrored = gridDim.x - 1 - blockIdx.x;
  extern __shared__ float4 kept[];
  auto* const memory = reinterpret_cast<Group<V>*>(kept);
  int turn = 0;
  if constexpr (kKept) {
    const auto keep = [&](std::uint32_t tile, int mine) {
      const Place place = place_in<V>(l, tile);
      if (!place.is) return;
      for (int a = 0; a < static_cast<int>(kArrays.size()); ++a)
        Kept<V>{memory, mine}.at(a) = FromArrays<V>{l}(a, place.n);
    };
    each_tile(blockIdx.x, steps.side_tiles, turn, keep);
    each_tile(steps.side_tiles + mirrored, steps.tiles, turn, keep);
  }
  double gosa = 0;
  for (int n = 0; n < steps.count; ++n) {
    float* const next = steps.p[(steps.first + n) % 2];
    const float* const p = steps.p[(steps.first + n + 1) % 2];
    const auto swaps = static_cast<device::Word>(n) + 1;  // `next` is what is exchanged
    const auto sweep = [&](std::uint32_t tile, int mine) {
      if constexpr (kKept) {
        const Place place = place_in<V>(l, tile);
        if (place.is) gosa += sweep_group<V>(l, p, next, place, Kept<V>{memory, mine});
      } else {
        gosa += sweep_tile<V>(l, p, next, tile);
      }
    };
    gosa = 0;
    turn = 0;
    each_tile(blockIdx.x, steps.side_tiles, turn, sweep);
    if (steps.side_tiles == steps.tiles) {  // nothing is left to do meanwhile
      if (!device::run(halo, grid, swaps)) return;
      continue;
    }
    if (!device::start(halo, grid, swaps)) return;
    each_tile(steps.side_tiles + mirrored, steps.tiles, turn, sweep);
    if (!device::wait(halo, grid, swaps)) return;
  }
  keep_sum(l, gosa);
}

class GpuResident final : public Solver {
 public:
  GpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device), queue_(context, false) {
    std::vector<Region> regions;
    const bool overlaps = options.overlap && !halo_.plan().commands.empty();
    for (const tasuki::Box& box : overlaps ? p_.boundary(1) : std::vector<tasuki::Box>{p_.local_owned()})
      regions.push_back(region(box));
    const std::int64_t sides = cut(regions).tiles;
    if (overlaps) regions.push_back(region(p_.interior(1)));
    cut_ = cut(regions);
    steps_.side_tiles = static_cast<std::uint32_t>(sides);
    steps_.tiles = static_cast<std::uint32_t>(cut_.tiles);
    set_coefficients(cut_.launch, coefficients_);
    group_.threads = kThreads;
    group_.blocks = static_cast<int>(std::clamp<std::int64_t>(cut_.tiles, 1, most_blocks()));
    steps_.kept = kept();
    double* sums = nullptr;
    TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&sums), static_cast<std::size_t>(group_.blocks) * sizeof(double));
    sums_ = {sums, [](double* p) { cudaFree(p); }};
    cut_.launch.sums = sums;
    const auto cells = p_.bytes() / static_cast<std::int64_t>(sizeof(float));
    for (std::size_t n = 0; n < arrays_.size(); ++n) fill(arrays_[n].data(), cells, kArrays[n].value, queue_.stream());
    queue_.finish();
  }

  void initialise() override {
    p_.swap();  // once between two exchanges, as promised by `alternating`
    const tasuki::Box own = p_.local_owned();
    const Region all{
        {own.lo[0], own.lo[1], own.lo[2]}, {own.hi[0], own.hi[1], own.hi[2]}, p_.strides()[0], p_.strides()[1]};
    fill_initial(all, p_.owned().lo[0], grid_.extent(0), p_.data(), p_.next(), queue_.stream());
    halo_.run(queue_.stream());
    queue_.finish();
  }

  apps::Timing run(int iterations) override {
    Steps steps = steps_;
    steps.p[0] = p_.data(0);
    steps.p[1] = p_.data(1);
    steps.first = 1 - p_.current();
    steps.count = iterations;
    tasuki::ResidentOptions launch;
    launch.blocks = group_.blocks;
    launch.threads = group_.threads;
    launch.stream = queue_.stream();
    launch.shared_bytes = steps.kept * kept_bytes();
    const device::Handle halo = halo_.device(group_);
    grid_.context().barrier();
    const double begin = apps::now();
    tasuki::launch_resident(grid_.context(), launch, kernel(steps.kept > 0), halo, cut_.launch, steps).wait();
    const double took = apps::now() - begin;
    for (int n = 0; n < iterations; ++n) p_.swap();  // as the kernel did
    return {took, took};
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  using Kernel = void (*)(device::Handle, Launch, Steps);
  Kernel kernel(bool keeps) const {
    if (keeps) return cut_.aligned ? iterate<4, true> : iterate<1, true>;
    return cut_.aligned ? iterate<4, false> : iterate<1, false>;
  }

  static int attribute(cudaDeviceAttr which) {
    int gpu = 0;
    int value = 0;
    TASUKI_CUDA(cudaGetDevice, &gpu);
    TASUKI_CUDA(cudaDeviceGetAttribute, &value, which, gpu);
    return value;
  }

  int blocks_each() const {  // on a multiprocessor
    int each = 0;
    TASUKI_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &each, reinterpret_cast<const void*>(kernel(true)),
                kThreads, 0);
    return each;
  }
  int most_blocks() const { return blocks_each() * attribute(cudaDevAttrMultiProcessorCount); }

  // Bytes of a tile's coefficients.
  int kept_bytes() const {
    return static_cast<int>(kArrays.size() * sizeof(float)) * kThreads * (cut_.aligned ? 4 : 1);
  }

  // All, if they fit beside the other blocks of a multiprocessor.
  int kept() const {
    cudaFuncAttributes takes{};
    TASUKI_CUDA(cudaFuncGetAttributes, &takes, reinterpret_cast<const void*>(kernel(true)));
    const int taken = static_cast<int>(takes.sharedSizeBytes) + attribute(cudaDevAttrReservedSharedMemoryPerBlock);
    const int each = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / std::max(1, blocks_each());
    const int room = std::min(each, attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) - taken;
    const auto blocks = static_cast<std::uint32_t>(group_.blocks);
    const std::uint32_t sides = (steps_.side_tiles + blocks - 1) / blocks;
    const std::uint32_t rest = (steps_.tiles - steps_.side_tiles + blocks - 1) / blocks;
    const auto all = static_cast<int>(sides + rest);
    return std::int64_t{all} * kept_bytes() <= room ? all : 0;
  }

  double local_gosa() const override {
    std::vector<double> sums(static_cast<std::size_t>(group_.blocks));
    TASUKI_CUDA(cudaMemcpy, sums.data(), sums_.get(), sums.size() * sizeof(double), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (const double one : sums) sum += one;
    return sum;
  }

  apps::GpuQueue queue_;
  Cut cut_;
  Steps steps_{};
  tasuki::KernelGroup group_;
  std::shared_ptr<double> sums_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_gpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuResident>(context, options);
}

}  // namespace himeno
