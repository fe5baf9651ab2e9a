// The Himeno benchmark computed on CPUs.
#include "himeno/serial.hpp"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

class CpuSolver final : public Solver {
 public:
  CpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host) {
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
    if (options_.communicate) p_.swap();  // from here on `now` is the pressure to compute
    const int now = options_.communicate ? p_.current() : (unshown_ = 1 - unshown_);
    gosa_ = 0;
    const auto compute = [&](const tasuki::Box& box) {
      const double since = apps::now();
      gosa_ += sweep(coefficients_, p_.data(1 - now), p_.data(now), region(box));
      timing.compute += apps::now() - since;
    };
    if (options_.communicate && options_.overlap) {
      tasuki::overlap(halo_, p_, 1, compute);
      return;
    }
    compute(p_.local_owned());
    if (!options_.communicate) return;
    halo_.start();
    halo_.wait();
  }

  double local_gosa() const override { return gosa_; }

  double gosa_ = 0;
  int unshown_ = 0;  // without exchanges the copies take turns behind the field's back: its swaps belong to the halo
};

}  // namespace

std::unique_ptr<Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuSolver>(context, options);
}

}  // namespace himeno
