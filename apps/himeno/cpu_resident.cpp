// The Himeno benchmark as one kernel for all iterations, which exchanges by itself; on CPUs its blocks are threads.
#include <vector>

#include "common/resident.hpp"
#include "himeno/serial.hpp"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

struct Stencil {
  using Element = float;
  using Region = himeno::Region;
  Coefficients coefficients;
  double sweep(const float* p, float* next, const Region& region) const {
    return himeno::sweep(coefficients, p, next, region);
  }
  static double join(double a, double b) { return a + b; }
};

class CpuResident final : public Solver {
 public:
  CpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host),
        boxes_(apps::step_boxes(p_, halo_, options.overlap)),
        steps_(p_, {coefficients_}, regions(boxes_.sides), regions(boxes_.rest), boxes_.exchanges) {
    fill_on_host();
  }

  void initialise() override {
    start_on_host();
    halo_.start();
    halo_.wait();
  }

  apps::Timing run(int iterations) override { return steps_.run(p_, halo_, iterations); }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  double local_gosa() const override { return steps_.norm(); }

  apps::StepBoxes boxes_;
  apps::CpuResidentSteps<Stencil> steps_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_cpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuResident>(context, options);
}

}  // namespace himeno
