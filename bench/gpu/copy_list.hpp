// Any number of strided copies in one kernel launch: what packs and unpacks for a peer that sends messages.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/problem.hpp"

namespace bench {

/// Bytes from rows to as many rows of the same lengths.
struct StridedCopy {
  const std::byte* from = nullptr;  ///< the first row
  std::byte* to = nullptr;
  GpuRows from_rows;  ///< whose offset is not used
  GpuRows to_rows;
};

/// The rows of a box one after the other.
GpuRows packed(const GpuRows& rows);

class CopyList {
 public:
  /// At most 256 copies, which must not overlap; throws otherwise.
  explicit CopyList(const std::vector<StridedCopy>& copies);
  void enqueue(tasuki::Stream stream) const;  ///< Nothing for an empty list.

 private:
  struct Pieces;
  std::shared_ptr<const Pieces> pieces_;  // on the GPU
  unsigned tiles_ = 0;
};

}  // namespace bench
