// The Himeno benchmark computed on CPUs.
#include "himeno/serial.hpp"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

class CpuSolver final : public Solver {
 public:
  CpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host),
        steps_(options, p_, halo_, [this](int now, const tasuki::Box& box, bool first) {
          if (first) gosa_ = 0;
          gosa_ += sweep(coefficients_, p_.data(1 - now), p_.data(now), region(box));
        }) {
    for (std::size_t n = 0; n < arrays_.size(); ++n) {
      arrays_[n].for_each([n](const tasuki::Index&, float& cell) { cell = kArrays[n].value; });
    }
  }

  void initialise() override {
    p_.swap();  // once between two exchanges, as promised by `alternating`
    float* const now = p_.data();
    float* const next = p_.next();  // its fixed cells are never computed
    p_.for_each([&](const tasuki::Index& at, float& cell) {
      next[&cell - now] = cell = initial_pressure(at[0], grid_.extent(0));
    });
    steps_.exchange();
  }

  apps::Timing run(int iterations) override { return steps_.run(iterations); }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  double local_gosa() const override { return gosa_; }

  double gosa_ = 0;
  apps::CpuSteps steps_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuSolver>(context, options);
}

}  // namespace himeno
