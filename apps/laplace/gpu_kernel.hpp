// The 5-point stencil on a GPU: the same arithmetic as kernel.cpp, so that every bit is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "laplace/kernel.hpp"
#include "tasuki/device.hpp"

namespace laplace {

/// A Jacobi step on some regions in one launch, prepared once. Arrays are on the current GPU, aligned to 16 bytes.
class GpuSweep {
 public:
  /// At most four regions of one layout; empty ones are left out. Local.
  explicit GpuSweep(const std::vector<Region>& regions);

  /// As `sweep`: reads `u` and writes `next`. Without cells it launches nothing.
  void enqueue(const double* u, double* next, tasuki::Stream stream) const;

  /// The largest change of the last step, whose work must have ended.
  double change() const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

/// The start in the cells of `region`, in both copies. `row` and `column` are the global indices of the region's first
/// cell, `rows` is the global grid's.
void fill_initial(const Region& region, std::int64_t row, std::int64_t column, std::int64_t rows, double* now,
                  double* next, tasuki::Stream stream);

}  // namespace laplace
