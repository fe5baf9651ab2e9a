// The Himeno benchmark computed on GPUs: kernels and exchanges in one stream, or replayed as CUDA graphs.
#include <vector>

#include "common/gpu.hpp"
#include "himeno/gpu_kernel.hpp"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

class GpuSolver final : public Solver {
 public:
  GpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device),
        steps_(context, options, p_, halo_,
               [this](bool sides, int now, tasuki::Stream stream) {
                 (sides ? sides_ : rest_).enqueue(coefficients_, p_.data(1 - now), p_.data(now), stream);
               }),
        sides_(regions(steps_.sides())),
        rest_(regions({steps_.rest()})) {
    const auto cells = p_.bytes() / static_cast<std::int64_t>(sizeof(float));
    for (std::size_t n = 0; n < arrays_.size(); ++n) fill(arrays_[n].data(), cells, kArrays[n].value, steps_.stream());
    steps_.finish();
  }

  void initialise() override {
    start_on_gpu(steps_.stream());
    steps_.exchange();
    steps_.finish();
  }

  apps::Timing run(int iterations) override { return steps_.run(iterations); }
  std::optional<apps::Split> split(int iterations) override { return steps_.split(iterations); }

 private:
  double local_gosa() const override { return sides_.gosa() + rest_.gosa(); }

  apps::GpuSteps steps_;
  GpuSweep sides_;  // without overlap: nothing, and all the rest
  GpuSweep rest_;
};

}  // namespace

void Solver::start_on_gpu(tasuki::Stream stream) {
  p_.swap();  // once between two exchanges, as promised by `alternating`
  const tasuki::Box own = p_.local_owned();
  const Region all{
      {own.lo[0], own.lo[1], own.lo[2]}, {own.hi[0], own.hi[1], own.hi[2]}, p_.strides()[0], p_.strides()[1]};
  fill_initial(all, p_.owned().lo[0], grid_.extent(0), p_.data(), p_.next(), stream);
}

std::unique_ptr<apps::Solver> make_gpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuSolver>(context, options);
}

}  // namespace himeno
