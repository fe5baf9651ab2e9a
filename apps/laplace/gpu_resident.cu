// Laplace's equation on GPUs as one kernel for all iterations, which exchanges by itself. Compiled without contraction,
// as all stencils here.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/gpu.hpp"
#include "common/resident.cuh"
#include "laplace/gpu_groups.cuh"
#include "laplace/gpu_kernel.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

using Steps = apps::ResidentSteps<double>;

template <int V>
__global__ void __launch_bounds__(kThreads)
    iterate(const __grid_constant__ tasuki::device::Handle halo, const __grid_constant__ Launch l,
            const __grid_constant__ Steps steps) {
  double change = 0;
  const auto sweep = [&](const double* u, double* next, std::uint32_t block, int) {
    change = fmax(change, sweep_block<V>(l, u, next, block));
  };
  if (apps::run_steps(
          halo, steps, [&] { change = 0; }, sweep))
    keep_largest(l, change);
}

class GpuResident final : public Solver {
 public:
  GpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device), queue_(context, false) {
    const bool overlaps = options.overlap && !halo_.plan().commands.empty();
    std::vector<Region> all = regions(overlaps ? u_.boundary(1) : std::vector<tasuki::Box>{u_.local_owned()});
    steps_.side_tiles = static_cast<std::uint32_t>(cut(all).blocks);
    if (overlaps) all.push_back(region(u_.interior(1)));
    cut_ = cut(all);
    steps_.tiles = static_cast<std::uint32_t>(cut_.blocks);
    group_ = apps::resident_group(kernel(), kThreads, cut_.blocks);
    double* changes = nullptr;
    const auto bytes = static_cast<std::size_t>(group_.blocks) * sizeof(double);
    TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&changes), bytes);
    changes_ = {changes, [](double* p) { cudaFree(p); }};
    cut_.launch.changes = changes;
  }

  void initialise() override {
    start_on_gpu(queue_.stream());
    halo_.run(queue_.stream());
    queue_.finish();
    (void)halo_.device(group_);  // if no kernel can start it, an error now rather than in a run
  }

  apps::Timing run(int iterations) override {
    tasuki::ResidentOptions launch;
    launch.stream = queue_.stream();
    return apps::run_resident(grid_.context(), u_, halo_, iterations, group_, launch, kernel(), cut_.launch, steps_);
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  using Kernel = void (*)(tasuki::device::Handle, Launch, Steps);
  Kernel kernel() const { return cut_.aligned ? iterate<2> : iterate<1>; }

  double local_change() const override {
    std::vector<double> changes(static_cast<std::size_t>(group_.blocks));
    TASUKI_CUDA(cudaMemcpy, changes.data(), changes_.get(), changes.size() * sizeof(double), cudaMemcpyDeviceToHost);
    return *std::max_element(changes.begin(), changes.end());
  }

  apps::GpuQueue queue_;
  Cut cut_;
  Steps steps_{};
  tasuki::KernelGroup group_;
  std::shared_ptr<double> changes_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_gpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuResident>(context, options);
}

}  // namespace laplace
