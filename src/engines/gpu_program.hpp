// GpuProgram: a plan lowered to plain arrays that a kernel can run. Made on the host, without CUDA.
//
// Every lane is run by a group of thread blocks, all of its steps by all of them: a wait is polled by each block, a
// move's tiles are dealt out to the group's warps, and a signal is given by the last block that gets there. Lanes that
// move nothing are run by single threads of one further block. An epoch has two parts, which one kernel may run
// together: `start` sends, `wait` receives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/executor.hpp"
#include "topology/runtime.hpp"

namespace tasuki {

constexpr int kGpuDims = 8;       ///< seven of the copy's and the units of a block
constexpr int kGpuPairs = 64;     ///< user's pairs of copies in one operation
constexpr int kTileUnits = 8;     ///< most units that a thread moves of a tile
constexpr int kGpuThreads = 512;  ///< of a block
constexpr int kPartStart = 1;
constexpr int kPartWait = 2;

/// One dimension of a copy, in units; n / count is (n * magic) >> shift for n < 2^31.
struct GpuDim {
  std::uint32_t count = 1;
  std::uint32_t magic = 0;
  std::uint32_t shift = 0;
  std::int64_t src_stride = 0;
  std::int64_t dst_stride = 0;
};

/// A strided copy of `units` units of 2^log_unit bytes (reductions: of one element), cut into tiles.
struct GpuCopy {
  std::int64_t src_offset = 0;
  std::int64_t dst_offset = 0;
  std::uint32_t units = 0;
  std::uint32_t first_tile = 0;  ///< within its step
  std::int32_t first_dim = 0;
  std::int16_t dims = 0;  ///< innermost first
  std::int16_t log_unit = 0;
};

/// Where a buffer is: base + copy * stride, the copy being the epoch's turn, or what the host says when it launches.
struct GpuPlace {
  std::byte* base = nullptr;
  std::int64_t stride = 0;
  std::uint32_t copies = 1;
  std::int32_t pair = -1;        ///< a user's pair: which bit of the launch's selection tells the copy of
  std::int32_t takes_turns = 0;  ///< the first epoch; else of every epoch
};

struct GpuStep {
  Verb verb{};
  DType dtype = DType::none;
  std::int32_t command = 0;
  std::int32_t part = kPartStart;
  std::int32_t src = -1;
  std::int32_t dst = -1;
  std::int32_t first_copy = 0;
  std::int32_t copies = 0;
  std::uint32_t tiles = 0;
  std::uint32_t tile_units = 1;  ///< units that a thread moves of a tile
  std::uint64_t* counter = nullptr;
  std::uint64_t per_epoch = 0;
  std::uint64_t index = 0;
  std::uint64_t lag = 0;
  std::int32_t credit = 0;
  std::int32_t first_dep = 0;
  std::int32_t deps = 0;
  std::int32_t awaited = 0;  ///< another lane depends on it
};

struct GpuLane {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int32_t blocks[4] = {};  ///< by parts: how many thread blocks run it; 0 if it moves nothing
};

/// What one thread block does in a launch of some parts.
struct GpuBlock {
  std::int32_t lane = -1;  ///< -1: all lanes that move nothing, a thread each
  std::int32_t index = 0;  ///< of the lane's blocks
};

struct GpuProgram {
  std::vector<GpuStep> steps;
  std::vector<GpuCopy> copies;
  std::vector<GpuDim> dims;
  std::vector<GpuPlace> places;
  std::vector<std::int32_t> deps;
  std::vector<GpuLane> lanes;
  std::vector<GpuBlock> blocks[4];  ///< by parts
  std::vector<const int*> pairs;    ///< which copy of each pair the user shows
};

/// Lowers a bound program. `most_blocks` is how many thread blocks may do nothing but move. Throws `Error` for what the
/// kernel does not run: chunk loops, commands that need a channel, more than kGpuPairs pairs.
GpuProgram lower(const Program& program, int most_blocks);

/// What to say when a kernel has given up waiting at `command`, whose counter stood at `value`.
std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target);

}  // namespace tasuki
