// Jacobi steps on CPUs as one kernel for all of them, which exchanges by itself (resident_steps.hpp): its blocks are
// threads. On GPUs: resident.cuh.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/resident_steps.hpp"

namespace apps {

inline constexpr int kResidentBlocks = 2;

/// What the kernel of a `Stencil` needs. A stencil has types `Element` and `Region`, `sweep(from, to, region)`, which
/// returns the region's part of the norm, and `join(a, b)`, which makes one part of two.
template <class Stencil>
struct CpuTiles {
  Stencil stencil;
  const typename Stencil::Region* tiles;
  double* norms;  // of the last step, by block
};

template <class Stencil>
TASUKI_KERNEL void resident_steps(tasuki::device::Handle halo, tasuki::device::Neighbours neighbours,
                                  CpuTiles<Stencil> cpu, ResidentSteps<typename Stencil::Element> steps) {
  double norm = 0;
  const auto sweep = [&](const auto* from, auto* to, std::uint32_t tile, int) {
    norm = Stencil::join(norm, cpu.stencil.sweep(from, to, cpu.tiles[tile]));
  };
  if (run_steps<true>(
          halo, neighbours, steps, [&] { norm = 0; }, sweep))
    cpu.norms[tasuki::device::this_block().block()] = norm;
}

/// Some regions, each cut into tiles of some rows.
template <class Region>
struct CpuTiling {
  std::vector<Region> tiles;
  Tiling tiling;

  CpuTiling(const std::vector<Region>& sides, const std::vector<Region>& rest) {
    for (const Region& region : sides) cut(region, kResidentBlocks);
    tiling.sides = static_cast<std::uint32_t>(tiles.size());
    for (const Region& region : rest) cut(region, 8 * kResidentBlocks);
  }

 private:
  void cut(const Region& region, std::int64_t most) {
    const std::int64_t rows = region.hi[0] - region.lo[0];
    for (std::int64_t n = 0; n < most; ++n) {
      Region tile = region;
      tile.lo[0] = region.lo[0] + rows * n / most;
      tile.hi[0] = region.lo[0] + rows * (n + 1) / most;
      tasuki::Box cells;
      cells.ndims = static_cast<int>(tile.lo.size());
      for (std::size_t d = 0; d < tile.lo.size(); ++d) {
        cells.lo[d] = tile.lo[d];
        cells.hi[d] = tile.hi[d];
      }
      if (cells.empty()) continue;
      tiling.pieces.push_back({static_cast<std::uint32_t>(tiles.size()), cells});
      tiling.work.push_back(cells.cells());
      tiles.push_back(tile);
    }
  }
};

/// The steps of a solver of one field with two copies and its alternating halo.
template <class Stencil>
class CpuResidentSteps {
 public:
  using Region = typename Stencil::Region;
  using Element = typename Stencil::Element;

  /// The sides are computed before the halo starts, if there is one to run.
  CpuResidentSteps(const tasuki::FieldBase& field, Stencil stencil, const std::vector<Region>& sides,
                   const std::vector<Region>& rest, bool exchanges)
      : stencil_(stencil),
        tiling_(sides, rest),
        deal_(deal(tiling_.tiling, kResidentBlocks, exchanges, Dealt::in_runs)),
        norms_(kResidentBlocks),
        launches_(field, deal_, deal_.shares.data(), 1) {}

  /// Collective.
  Timing run(tasuki::Field<Element>& field, tasuki::Halo& halo, int iterations) {
    return launches_.run(field, halo, iterations, resident_steps<Stencil>,
                         CpuTiles<Stencil>{stencil_, tiling_.tiles.data(), norms_.data()});
  }

  /// Of this rank's cells in the last step.
  double norm() const {
    double all = 0;
    for (const double one : norms_) all = Stencil::join(all, one);
    return all;
  }

 private:
  Stencil stencil_;
  CpuTiling<Region> tiling_;
  Deal deal_;
  std::vector<double> norms_;
  ResidentLaunches<Element> launches_;
};

}  // namespace apps
