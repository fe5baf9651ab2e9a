// Laplace's equation solved on GPUs: kernels and exchanges in one stream, or replayed as CUDA graphs.
#include <algorithm>
#include <vector>

#include "common/gpu.hpp"
#include "laplace/gpu_kernel.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

class GpuSolver final : public Solver {
 public:
  GpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device),
        steps_(context, options, u_, halo_,
               [this](bool sides, int now, tasuki::Stream stream) {
                 (sides ? sides_ : rest_).enqueue(u_.data(1 - now), u_.data(now), stream);
               }),
        sides_(regions(steps_.sides())),
        rest_(regions({steps_.rest()})) {}

  void initialise() override {
    start_on_gpu(steps_.stream());
    steps_.exchange();
    steps_.finish();
  }

  apps::Timing run(int iterations) override { return steps_.run(iterations); }
  std::optional<apps::Split> split(int iterations) override { return steps_.split(iterations); }

 private:
  double local_change() const override { return std::max(sides_.change(), rest_.change()); }

  apps::GpuSteps steps_;
  GpuSweep sides_;  // without overlap: nothing, and all the rest
  GpuSweep rest_;
};

}  // namespace

void Solver::start_on_gpu(tasuki::Stream stream) {
  u_.swap();  // once between two exchanges, as promised by `alternating`
  const tasuki::Box own = u_.local_owned();
  const Region all{{own.lo[0], own.lo[1]}, {own.hi[0], own.hi[1]}, u_.strides()[0]};
  fill_initial(all, u_.owned().lo[0], u_.owned().lo[1], grid_.extent(0), u_.data(), u_.next(), stream);
}

std::unique_ptr<apps::Solver> make_gpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuSolver>(context, options);
}

}  // namespace laplace
