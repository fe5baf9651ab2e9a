// A task of a GPU program while it is put together: strided copies are cut into units, rows and tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engines/gpu/program.hpp"
#include "engines/host/executor.hpp"

namespace tasuki {

/// Bytes from the first to the last that the strided copy touches, on the side where that is more (MPI's term).
std::int64_t true_extent(const StridedCopy& copy);
/// Whether the kernel can count the words of a strided copy into and out of LL lines. Copies that are not to or from LL
/// lines are cut instead.
bool fits_lines(const StridedCopy& copy, bool adds);

/// The widest units, at most 16 bytes, of which all offsets, strides, blocks and addresses are multiples.
std::int64_t unit_of(const StridedCopy& copy, const Located& src, const Located& dst);

constexpr std::int64_t kWide = 16;     ///< bytes that a thread loads or stores at most at once
constexpr std::int64_t kByLines = -1;  ///< how reductions may be cut: in words, a line to a row
constexpr std::int64_t kByWide = -2;   ///< or in units of kWide bytes

struct TaskDraft {
  std::vector<std::int32_t> ends;  ///< of lanes, as in GpuTaskHeader
  std::vector<GpuStep> steps;
  std::vector<GpuCopy> copies;
  std::vector<GpuDim> dims;
  std::vector<std::int32_t> deps;
  std::int64_t rows = 0;
  std::int64_t accesses = 0;                                     ///< of memory, by threads
  std::int64_t lines = 0;                                        ///< LL lines that it fills or unpacks
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< blocks that may share it
  /// its steps wait for each other: tiles are cut by the largest step, not by all steps together
  bool in_turn = false;
  int stage = 0;
  std::int64_t warps = kGpuWarps;  ///< of a block
  bool signaller = false;          ///< the last warp of a block signals instead; it is not counted in `warps`
  bool staging = false;            ///< it packs or unpacks messages that a thread carries meanwhile

  std::int64_t blocks() const;                   ///< thread blocks that it is worth
  bool scattered() const;                        ///< whether most accesses are to single units
  bool reduces() const;                          ///< whether steps of it combine elements
  bool in_pieces() const;                        ///< whether it combines a part before it waits for the next one
  double time(std::int64_t blocks_of_it) const;  ///< estimated time with this many blocks; for comparisons
  /// Adds the strided copy in the widest units that addresses and strides allow if `form` is 0, or, for reductions, in
  /// elements of `form` bytes or as kByLines and kByWide say.
  void add_copy(const StridedCopy& copy, const Located& src, const Located& dst, std::int64_t form);
  /// Adds the steps of another task, if it has any, as a lane of this one.
  void add_lane(const TaskDraft& lane);
  /// Adds the lanes of another task.
  void add_lanes(const TaskDraft& other);
  /// A lane of it by itself.
  TaskDraft lane(std::size_t number) const;
  /// Adds empty lanes, so that the next lane is the first of a warp (where lanes are threads).
  void fill_warp();
  std::int64_t most_rows_of_a_step() const;
  /// Whether a step, with those joined to it, is what GpuStep::flat says.
  bool flat(std::size_t first) const;
  /// Cuts the moves into tiles for this many blocks.
  void cut(std::int64_t blocks_of_it);
  /// Appends the task's bytes, which begin with its header.
  void write(std::vector<std::byte>& to) const;

 private:
  void add_list(const OffsetList& list, std::int64_t unit);
};

/// The lanes of two tasks of single threads as one task, in which as few as possible share a warp: while one of them
/// waits, the others of its warp stand still. Those of `separate`, whose words lie in host memory so that every look
/// takes long, share none with the others.
TaskDraft spread(const TaskDraft& lanes, const TaskDraft& separate);

}  // namespace tasuki
