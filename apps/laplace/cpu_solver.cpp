// Laplace's equation solved on CPUs.
#include <algorithm>

#include "laplace/serial.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

class CpuSolver final : public Solver {
 public:
  CpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host) {}

  void initialise() override {
    u_.swap();  // once between two exchanges, as promised by `alternating`
    double* const now = u_.data();
    double* const next = u_.next();  // its fixed cells are never computed
    u_.for_each([&](const tasuki::Index& at, double& cell) {
      next[&cell - now] = cell = initial_value(at[0], at[1], grid_.extent(0));
    });
    halo_.start();
    halo_.wait();
  }

  apps::Timing run(int iterations) override {
    apps::Timing timing;
    apps::Progress progress(grid_.context(), options_, iterations);
    grid_.context().barrier();
    const double begin = apps::now();
    for (int n = 0; n < iterations; ++n) {
      step(timing);
      progress.done(n + 1);
    }
    timing.total = apps::now() - begin;
    return timing;
  }

  std::optional<apps::Split> split(int) override { return {}; }

 private:
  void step(apps::Timing& timing) {
    if (options_.communicate) u_.swap();  // from here on `now` has the values to compute
    const int now = options_.communicate ? u_.current() : (unshown_ = 1 - unshown_);
    change_ = 0;
    const auto compute = [&](const tasuki::Box& box) {
      const double since = apps::now();
      change_ = std::max(change_, sweep(u_.data(1 - now), u_.data(now), region(box)));
      timing.compute += apps::now() - since;
    };
    if (options_.communicate && options_.overlap) {
      tasuki::overlap(halo_, u_, 1, compute);
      return;
    }
    compute(u_.local_owned());
    if (!options_.communicate) return;
    halo_.start();
    halo_.wait();
  }

  double local_change() const override { return change_; }

  double change_ = 0;
  int unshown_ = 0;  // without exchanges the copies take turns behind the field's back: its swaps belong to the halo
};

}  // namespace

std::unique_ptr<Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuSolver>(context, options);
}

}  // namespace laplace
