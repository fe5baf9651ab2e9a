// The Himeno benchmark on a grid of ranks: the equation's arrays as fields, the pressure's halo as one operation.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/options.hpp"
#include "common/report.hpp"
#include "himeno/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace himeno {

/// What solving on CPUs and on GPUs have in common. All is collective.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual void initialise() = 0;                                 ///< The initial pressure, in cells and halo.
  virtual apps::Timing run(int iterations) = 0;                  ///< Jacobi steps from the pressure as it is.
  virtual std::optional<apps::Split> split(int iterations) = 0;  ///< Where it can be measured; spoils the pressure.
  double gosa() const;                                           ///< Of the last step, over all ranks.
  bool equals_serial(int iterations) const;                      ///< Bitwise, after `iterations` from the start.

  const tasuki::Grid& grid() const { return grid_; }
  const tasuki::Halo& halo() const { return halo_; }

 protected:
  Solver(const tasuki::Context& context, const apps::Options& options, tasuki::Memory memory);
  virtual double local_gosa() const = 0;
  Region region(const tasuki::Box& box) const;

  tasuki::Grid grid_;
  apps::Options options_;
  std::vector<tasuki::Field<float>> arrays_;  // in the order of kArrays, laid out like the pressure
  tasuki::Field<float> p_;
  tasuki::Halo halo_;
  Coefficients coefficients_;

 private:
  tasuki::FieldOptions layout(const char* name, tasuki::Memory memory) const;
};

std::unique_ptr<Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options);
std::unique_ptr<Solver> make_gpu_solver(const tasuki::Context& context, const apps::Options& options);

}  // namespace himeno
