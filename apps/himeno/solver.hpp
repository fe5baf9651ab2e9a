// The Himeno benchmark on a grid of ranks: the equation's arrays as fields, the pressure's halo as one operation.
#pragma once

#include <vector>

#include "common/options.hpp"
#include "common/report.hpp"
#include "himeno/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace himeno {

class Solver {
 public:
  Solver(const tasuki::Context& context, const apps::Options& options);

  void initialise();                         ///< The initial pressure, in cells and halo.
  apps::Timing run(int iterations);          ///< Jacobi steps from the pressure as it is.
  double gosa() const;                       ///< Of the last step, over all ranks. Collective.
  bool equals_serial(int iterations) const;  ///< Bitwise, after `iterations` from the start. Collective.

  const tasuki::Grid& grid() const { return grid_; }
  const tasuki::Halo& halo() const { return halo_; }

 private:
  tasuki::Field<float> constant(const char* name, float value) const;
  Region region(const tasuki::Box& box) const;

  tasuki::Grid grid_;
  std::vector<std::int64_t> extents_;
  apps::Options options_;
  std::vector<tasuki::Field<float>> a_, b_, c_;
  tasuki::Field<float> bnd_, wrk1_, p_;
  tasuki::Halo halo_;
  Coefficients coefficients_;
  double local_gosa_ = 0;
};

}  // namespace himeno
