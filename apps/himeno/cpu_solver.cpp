// The Himeno benchmark computed on CPUs.
#include "himeno/serial.hpp"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

class CpuSolver final : public Solver {
 public:
  CpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host),
        steps_(options, p_, halo_,
               [this](int now, const tasuki::Box& box, bool first) {
                 if (first) gosa_ = 0;
                 gosa_ += sweep(coefficients_, p_.data(1 - now), p_.data(now), region(box));
               },
               {[this] { return gosa_; }, tasuki::ReduceOp::sum}) {
    fill_on_host();
  }

  void initialise() override {
    start_on_host();
    steps_.exchange();
  }

  apps::Timing run(int iterations) override { return steps_.run(iterations); }
  std::optional<apps::Split> split(int) override { return {}; }
  double norm() const override { return steps_.norm().value_or(Solver::norm()); }

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
