// Laplace's equation on GPUs as one kernel for all iterations, which exchanges by itself. Compiled without contraction,
// as all stencils here.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "common/resident.cuh"
#include "laplace/gpu_groups.cuh"
#include "laplace/gpu_kernel.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

namespace device = tasuki::device;

using Steps = apps::ResidentSteps<double>;

constexpr int kBlocksEach = 4;  // on a multiprocessor, so that what one waits for is hidden by the others

template <int V, bool kExchanges>
__global__ void __launch_bounds__(kThreads, kBlocksEach)
    iterate(const __grid_constant__ device::Handle halo, const __grid_constant__ device::Neighbours neighbours,
            const __grid_constant__ Launch l, const __grid_constant__ Steps steps) {
  double change = 0;
  const auto sweep = [&](const double* u, double* next, std::uint32_t tile, int) {
    change = fmax(change, sweep_block<V>(l, u, next, tile));
  };
  if (apps::run_steps<kExchanges>(
          halo, neighbours, steps, [&] { change = 0; }, sweep))
    keep_largest(l, change);
}

class GpuResident final : public Solver {
 public:
  GpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device),
        queue_(context, false),
        boxes_(apps::step_boxes(u_, halo_, options.overlap)),
        cut_(cut(regions(boxes_.all()))),
        tiling_(tiling_of(cut_, cut(regions(boxes_.sides)).blocks)),
        steps_(u_, tiling_, boxes_.exchanges, kernel(), kThreads) {
    halo_ = make_halo(apps::side_cuts(u_, tiling_));
    cut_.launch.changes = steps_.numbers();
  }

  void initialise() override {
    start_on_gpu(queue_.stream());
    halo_.run(queue_.stream());
    queue_.finish();
    steps_.launches().check(halo_);  // an error now rather than in a run
  }

  apps::Timing run(int iterations) override {
    return steps_.launches().run(u_, halo_, iterations, kernel(), cut_.launch, queue_.stream());
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  using Kernel = void (*)(device::Handle, device::Neighbours, Launch, Steps);
  Kernel kernel() const {
    if (boxes_.exchanges) return cut_.aligned ? iterate<2, true> : iterate<1, true>;
    return cut_.aligned ? iterate<2, false> : iterate<1, false>;
  }

  double local_change() const override {
    const std::vector<double> changes = steps_.numbers_on_host();
    return *std::max_element(changes.begin(), changes.end());
  }

  apps::GpuQueue queue_;
  apps::StepBoxes boxes_;
  Cut cut_;
  apps::Tiling tiling_;
  apps::GpuResidentSteps<double> steps_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_gpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuResident>(context, options);
}

}  // namespace laplace
