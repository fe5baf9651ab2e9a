// A task of a GPU program while it is put together: strided copies become units, dimensions, rows, then tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engines/gpu/program.hpp"
#include "engines/host/executor.hpp"

namespace tasuki {

/// MPI's term: bytes from the first that the copy touches to the last, on the side where that is more.
std::int64_t true_extent(const StridedCopy& copy);
/// Whether the kernel can count the words of a copy out of or into stamped lines (others are cut into several copies).
bool fits_lines(const StridedCopy& copy, bool adds);

struct TaskDraft {
  std::vector<std::int32_t> ends;  ///< of lanes, as in GpuTaskHeader
  std::vector<GpuStep> steps;
  std::vector<GpuCopy> copies;
  std::vector<GpuDim> dims;
  std::vector<std::int32_t> deps;
  std::int64_t rows = 0;
  std::int64_t accesses = 0;                                     ///< to memory, by threads
  std::int64_t lines = 0;                                        ///< stamped ones that it fills or takes
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< blocks that may share it
  bool in_turn = false;  ///< its steps wait for each other: how tiles are cut depends on the largest, not on all
  bool staging = false;  ///< it packs or unpacks messages that a thread carries meanwhile

  std::int64_t blocks() const;                   ///< Thread blocks that it is worth.
  bool scattered() const;                        ///< Whether most accesses are to a unit by itself.
  double time(std::int64_t blocks_of_it) const;  ///< That so many blocks take about; to compare.
  /// Adds the copy in the widest units that addresses and strides allow, or, for additions, in elements of `element`
  /// bytes.
  void add_copy(const StridedCopy& copy, const Located& src, const Located& dst, std::int64_t element);
  /// Adds the steps of another task as a lane of this one, if it has any.
  void add_lane(const TaskDraft& lane);
  /// Adds the lanes of another task.
  void add_lanes(const TaskDraft& other);
  /// Adds empty lanes: the next one is the first of a warp, if lanes are threads.
  void fill_warp();
  std::int64_t most_rows_of_a_step() const;
  /// Cuts what the steps move into tiles for so many blocks.
  void cut(std::int64_t blocks_of_it);
  /// Appends the task's bytes, which begin with its header.
  void write(std::vector<std::byte>& to) const;
};

}  // namespace tasuki
