// The Himeno benchmark as one kernel for all iterations, which exchanges by itself; on CPUs its blocks are threads.
#include <algorithm>
#include <vector>

#include "himeno/serial.hpp"
#include "himeno/solver.hpp"
#include "tasuki/kernel.hpp"

namespace himeno {
namespace {

namespace device = tasuki::device;

constexpr tasuki::KernelGroup kGroup{.blocks = 2};

struct Steps {
  Coefficients coefficients;
  float* p[2] = {};  // the copies
  int first = 0;     // the copy that the first step computes
  int count = 0;
  const Region* sides = nullptr;  // computed before the halo starts
  int side_count = 0;
  Region rest;             // computed while it travels
  double* gosa = nullptr;  // of the last step, by block
};

// A block's part of a region.
Region part_of(const Region& region, const device::BlockGroup& block) {
  Region part = region;
  const std::int64_t rows = std::max<std::int64_t>(0, region.hi[0] - region.lo[0]);
  part.lo[0] = region.lo[0] + rows * block.block() / block.blocks();
  part.hi[0] = region.lo[0] + rows * (block.block() + 1) / block.blocks();
  return part;
}

TASUKI_KERNEL void iterate(device::Handle halo, Steps steps) {
  const auto grid = device::this_grid();
  const auto block = device::this_block();
  double gosa = 0;
  for (int n = 0; n < steps.count; ++n) {
    float* const next = steps.p[(steps.first + n) % 2];
    const float* const p = steps.p[(steps.first + n + 1) % 2];
    const auto swaps = static_cast<device::Word>(n) + 1;  // `next` is what is exchanged
    gosa = 0;
    for (int side = 0; side < steps.side_count; ++side)
      gosa += sweep(steps.coefficients, p, next, part_of(steps.sides[side], block));
    if (!device::start(halo, grid, swaps)) return;
    gosa += sweep(steps.coefficients, p, next, part_of(steps.rest, block));
    if (!device::wait(halo, grid, swaps)) return;
  }
  steps.gosa[block.block()] = gosa;
}

class CpuResident final : public Solver {
 public:
  CpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::host) {
    for (std::size_t n = 0; n < arrays_.size(); ++n)
      arrays_[n].for_each([n](const tasuki::Index&, float& cell) { cell = kArrays[n].value; });
    for (const tasuki::Box& box : options.overlap ? p_.boundary(1) : std::vector<tasuki::Box>{p_.local_owned()})
      sides_.push_back(region(box));
    if (options.overlap) rest_ = region(p_.interior(1));
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
    Steps steps{coefficients_,
                {p_.data(0), p_.data(1)},
                1 - p_.current(),
                iterations,
                sides_.data(),
                static_cast<int>(sides_.size()),
                rest_,
                gosa_.data()};
    const device::Handle halo = halo_.device(kGroup);
    tasuki::ResidentOptions launch;
    launch.blocks = kGroup.blocks;
    grid_.context().barrier();
    const double begin = apps::now();
    tasuki::launch_resident(grid_.context(), launch, iterate, halo, steps).wait();
    const double took = apps::now() - begin;
    for (int n = 0; n < iterations; ++n) p_.swap();  // as the kernel did
    return {took, took};
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  double local_gosa() const override {
    double sum = 0;
    for (const double one : gosa_) sum += one;
    return sum;
  }

  std::vector<Region> sides_;
  Region rest_;
  std::vector<double> gosa_ = std::vector<double>(static_cast<std::size_t>(kGroup.blocks));
};

}  // namespace

std::unique_ptr<apps::Solver> make_cpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<CpuResident>(context, options);
}

}  // namespace himeno
