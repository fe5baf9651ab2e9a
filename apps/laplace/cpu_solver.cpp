// Laplace's equation solved on CPUs.
#include <algorithm>

#include "laplace/serial.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

class CpuSolver final : public Solver {
 public:
  CpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host),
        steps_(options, u_, halo_,
               [this](int now, const tasuki::Box& box, bool first) {
                 const double change = sweep(u_.data(1 - now), u_.data(now), region(box));
                 change_ = first ? change : std::max(change_, change);
               },
               {[this] { return change_; }, tasuki::ReduceOp::max}) {}

  void initialise() override {
    start_on_host();
    steps_.exchange();
  }

  apps::Timing run(int iterations) override { return steps_.run(iterations); }
  std::optional<apps::Split> split(int) override { return {}; }
  double norm() const override { return steps_.norm().value_or(Solver::norm()); }

 private:
  double local_change() const override { return change_; }

  double change_ = 0;
  apps::CpuSteps steps_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuSolver>(context, options);
}

}  // namespace laplace
