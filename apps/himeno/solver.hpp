// The Himeno benchmark on a grid of ranks: the equation's arrays as fields, the pressure's halo as one operation.
#pragma once

#include <memory>
#include <vector>

#include "common/jacobi.hpp"
#include "himeno/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace himeno {

/// What solving on CPUs and on GPUs have in common. All is collective.
class Solver : public apps::Solver {
 public:
  double norm() const override;  ///< Gosa of the last step.
  bool equals_serial(int iterations) const override;
  const tasuki::Grid& grid() const override { return grid_; }
  const tasuki::Halo& halo() const override { return halo_; }

 protected:
  Solver(const tasuki::Context& context, const apps::Options& options, tasuki::Memory memory);
  virtual double local_gosa() const = 0;
  /// The pressure's, cut also there (HaloOptions::cuts).
  tasuki::Halo make_halo(const std::vector<std::vector<std::int64_t>>& cuts) const;
  Region region(const tasuki::Box& box) const;
  std::vector<Region> regions(const std::vector<tasuki::Box>& boxes) const;
  void fill_on_host();                       ///< The coefficients.
  void start_on_host();                      ///< The initial values in both copies, without the halo.
  void start_on_gpu(tasuki::Stream stream);  ///< The same as work of a stream; in gpu_solver.cu.

  tasuki::Grid grid_;
  apps::Options options_;
  std::vector<tasuki::Field<float>> arrays_;  // in the order of kArrays, laid out like the pressure
  tasuki::Field<float> p_;
  tasuki::Halo halo_;
  Coefficients coefficients_;

 private:
  tasuki::FieldOptions layout(const char* name, tasuki::Memory memory) const;
};

/// A step after the other, with the host in between, or as a captured graph.
std::unique_ptr<apps::Solver> make_cpu_solver(const tasuki::Context& context, const apps::Options& options);
std::unique_ptr<apps::Solver> make_gpu_solver(const tasuki::Context& context, const apps::Options& options);
/// `--engine kernel`: one kernel for all steps, which exchanges by itself.
std::unique_ptr<apps::Solver> make_cpu_resident(const tasuki::Context& context, const apps::Options& options);
std::unique_ptr<apps::Solver> make_gpu_resident(const tasuki::Context& context, const apps::Options& options);

}  // namespace himeno
