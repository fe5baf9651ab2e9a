// Jacobi steps on CPUs as one kernel for all of them, which exchanges by itself: its blocks are threads. On GPUs:
// resident.cuh.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/report.hpp"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace apps {

inline constexpr tasuki::KernelGroup kResidentGroup{.blocks = 2};

/// `Stencil` has types `Element` and `Region`, `sweep(from, to, region)`, which returns the region's part of the norm,
/// and `join(a, b)`, which makes one part of two.
template <class Stencil>
struct ResidentSteps {
  using Element = typename Stencil::Element;
  using Region = typename Stencil::Region;
  Stencil stencil;
  const Region* sides = nullptr;  // computed before the halo starts
  int side_count = 0;
  Region rest;              // computed while it travels
  double* norms = nullptr;  // of the last step, by block
  Element* copies[2] = {};
  int first = 0;  // the copy that the first step computes
  int count = 0;
};

/// A block's part of a region: some of its rows.
template <class Region>
Region part_of(const Region& region, const tasuki::device::BlockGroup& block) {
  Region part = region;
  const std::int64_t rows = std::max<std::int64_t>(0, region.hi[0] - region.lo[0]);
  part.lo[0] = region.lo[0] + rows * block.block() / block.blocks();
  part.hi[0] = region.lo[0] + rows * (block.block() + 1) / block.blocks();
  return part;
}

template <class Stencil>
TASUKI_KERNEL void resident_steps(tasuki::device::Handle halo, ResidentSteps<Stencil> steps) {
  namespace device = tasuki::device;
  const auto grid = device::this_grid();
  const auto block = device::this_block();
  double norm = 0;
  for (int n = 0; n < steps.count; ++n) {
    auto* const to = steps.copies[(steps.first + n) % 2];
    const auto* const from = steps.copies[(steps.first + n + 1) % 2];
    const auto swaps = static_cast<device::Word>(n) + 1;  // `to` is what is exchanged
    const auto sweep = [&](const auto& region) {
      norm = Stencil::join(norm, steps.stencil.sweep(from, to, part_of(region, block)));
    };
    norm = 0;
    for (int side = 0; side < steps.side_count; ++side) sweep(steps.sides[side]);
    if (!device::start(halo, grid, swaps)) return;
    sweep(steps.rest);
    if (!device::wait(halo, grid, swaps)) return;
  }
  steps.norms[block.block()] = norm;
}

/// The steps of a solver of one field with two copies and its alternating halo.
template <class Stencil>
class CpuResidentSteps {
 public:
  using Region = typename Stencil::Region;
  using Element = typename Stencil::Element;

  CpuResidentSteps(Stencil stencil, std::vector<Region> sides, const Region& rest)
      : stencil_(stencil), sides_(std::move(sides)), rest_(rest), norms_(kResidentGroup.blocks) {}

  /// Collective.
  Timing run(const tasuki::Context& context, tasuki::Field<Element>& field, tasuki::Halo& halo, int iterations) {
    const ResidentSteps<Stencil> steps{stencil_,
                                       sides_.data(),
                                       static_cast<int>(sides_.size()),
                                       rest_,
                                       norms_.data(),
                                       {field.data(0), field.data(1)},
                                       1 - field.current(),
                                       iterations};
    const tasuki::device::Handle handle = halo.device(kResidentGroup);
    tasuki::ResidentOptions launch;
    launch.blocks = kResidentGroup.blocks;
    context.barrier();
    const double begin = now();
    tasuki::launch_resident(context, launch, resident_steps<Stencil>, handle, steps).wait();
    const double took = now() - begin;
    for (int n = 0; n < iterations; ++n) field.swap();  // as the kernel did
    return {took, took};
  }

  /// Of this rank's cells in the last step.
  double norm() const {
    double all = 0;
    for (const double one : norms_) all = Stencil::join(all, one);
    return all;
  }

 private:
  Stencil stencil_;
  std::vector<Region> sides_;
  Region rest_;
  std::vector<double> norms_;
};

}  // namespace apps
