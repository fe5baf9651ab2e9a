// The Himeno benchmark on GPUs as one kernel for all iterations, which exchanges by itself: no launch an iteration, and
// nothing for the host to do. Compiled without contraction, as all stencils here.
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
};

// Tiles are dealt out in turns: sides to the first blocks, which send, the others to the last ones.
template <int V>
__global__ void __launch_bounds__(kThreads, 2)
    iterate(const __grid_constant__ device::Handle halo, const __grid_constant__ Launch l,
            const __grid_constant__ Steps steps) {
  const auto grid = device::this_grid();
  const std::uint32_t mirrored = gridDim.x - 1 - blockIdx.x;
  double gosa = 0;
  for (int n = 0; n < steps.count; ++n) {
    float* const next = steps.p[(steps.first + n) % 2];
    const float* const p = steps.p[(steps.first + n + 1) % 2];
    const auto swaps = static_cast<device::Word>(n) + 1;  // `next` is what is exchanged
    gosa = 0;
    for (std::uint32_t tile = blockIdx.x; tile < steps.side_tiles; tile += gridDim.x)
      gosa += sweep_tile<V>(l, p, next, tile);
    if (steps.side_tiles == steps.tiles) {  // nothing is left to do meanwhile
      if (!device::run(halo, grid, swaps)) return;
      continue;
    }
    if (!device::start(halo, grid, swaps)) return;
    for (std::uint32_t tile = steps.side_tiles + mirrored; tile < steps.tiles; tile += gridDim.x)
      gosa += sweep_tile<V>(l, p, next, tile);
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
    const device::Handle halo = halo_.device(group_);
    grid_.context().barrier();
    const double begin = apps::now();
    tasuki::launch_resident(grid_.context(), launch, kernel(), halo, cut_.launch, steps).wait();
    const double took = apps::now() - begin;
    for (int n = 0; n < iterations; ++n) p_.swap();  // as the kernel did
    return {took, took};
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  using Kernel = void (*)(device::Handle, Launch, Steps);
  Kernel kernel() const { return cut_.aligned ? iterate<4> : iterate<1>; }

  int most_blocks() const {
    int gpu = 0;
    int processors = 0;
    int each = 0;
    TASUKI_CUDA(cudaGetDevice, &gpu);
    TASUKI_CUDA(cudaDeviceGetAttribute, &processors, cudaDevAttrMultiProcessorCount, gpu);
    TASUKI_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &each, reinterpret_cast<const void*>(kernel()), kThreads,
                0);
    return each * processors;
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
