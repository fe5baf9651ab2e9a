// Laplace's equation on CPUs as one kernel for all iterations, which exchanges by itself; its blocks are threads.
#include <algorithm>
#include <vector>

#include "common/resident.hpp"
#include "laplace/serial.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

struct Stencil {
  using Element = double;
  using Region = laplace::Region;
  double sweep(const double* u, double* next, const Region& region) const { return laplace::sweep(u, next, region); }
  static double join(double a, double b) { return std::max(a, b); }
};

class CpuResident final : public Solver {
 public:
  CpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host),
        boxes_(apps::step_boxes(u_, halo_, options.overlap)),
        steps_(u_, {}, regions(boxes_.sides), regions(boxes_.rest), boxes_.exchanges) {}

  void initialise() override {
    start_on_host();
    halo_.start();
    halo_.wait();
  }

  apps::Timing run(int iterations) override { return steps_.run(u_, halo_, iterations); }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  double local_change() const override { return steps_.norm(); }

  apps::StepBoxes boxes_;
  apps::CpuResidentSteps<Stencil> steps_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_cpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuResident>(context, options);
}

}  // namespace laplace
