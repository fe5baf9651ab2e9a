// The 19-point stencil on a GPU: the same arithmetic in the same order as kernel.cpp, so that every bit is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "himeno/kernel.hpp"
#include "tasuki/device.hpp"

namespace himeno {

/// A Jacobi step on some regions in one launch, prepared once. Arrays are on the current GPU, aligned to 16 bytes.
class GpuSweep {
 public:
  /// At most six regions of one layout; empty ones are left out. Local.
  explicit GpuSweep(const std::vector<Region>& regions);

  /// As `sweep`: reads the pressure `p` and writes `next`. Without cells it launches nothing.
  void enqueue(const Coefficients& coefficients, const float* p, float* next, tasuki::Stream stream) const;

  /// The sum of the squared residuals of the last step, whose work must have ended.
  double gosa() const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

/// Puts `value` into `count` elements.
void fill(float* array, std::int64_t count, float value, tasuki::Stream stream);

/// The initial pressure in the cells of `region`, in both copies. `first` is the global index of the region's first
/// cell in i, `extent` the global grid's.
void fill_initial(const Region& region, std::int64_t first, std::int64_t extent, float* now, float* next,
                  tasuki::Stream stream);

}  // namespace himeno
