// Jacobi's method for Laplace's equation on a grid of ranks: a field with two copies, its halo as one operation.
#pragma once

#include <memory>
#include <optional>

#include "common/options.hpp"
#include "common/report.hpp"
#include "laplace/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace laplace {

/// What solving on CPUs and on GPUs have in common. All is collective.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual void initialise() = 0;                                 ///< The start, in cells and halo.
  virtual apps::Timing run(int iterations) = 0;                  ///< Jacobi steps from the values as they are.
  virtual std::optional<apps::Split> split(int iterations) = 0;  ///< Where it can be measured; spoils the values.
  double change() const;                                         ///< Largest change of a cell in the last step.
  bool equals_serial(int iterations) const;                      ///< Bitwise, after `iterations` from the start.

  const tasuki::Grid& grid() const { return grid_; }
  const tasuki::Halo& halo() const { return halo_; }

 protected:
  Solver(const tasuki::Context& context, const apps::Options& options, tasuki::Memory memory);
  virtual double local_change() const = 0;
  Region region(const tasuki::Box& box) const;

  tasuki::Grid grid_;
  apps::Options options_;
  tasuki::Field<double> u_;
  tasuki::Halo halo_;

 private:
  tasuki::FieldOptions layout(tasuki::Memory memory) const;
};

std::unique_ptr<Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options);
std::unique_ptr<Solver> make_gpu_solver(const tasuki::Context& context, const apps::Options& options);

}  // namespace laplace
