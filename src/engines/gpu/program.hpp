// GpuProgram: a plan lowered to plain arrays that a kernel can run. Made on the host, without CUDA.
//
// A lane that moves data becomes a task of some thread blocks, all of its steps done by all of them: a wait is polled
// by each block, a move's tiles are dealt out to the warps, neighbours to one block, and a signal is complete when
// every block has added its share. The lanes that move nothing are one further task of a single block, a thread each.
// An epoch has two parts, which one kernel may run together: start sends, wait receives. Where each of them is worth
// more than half of the blocks, they are two rounds of the same blocks: nobody sends while half of the GPU only waits
// to receive. So are many scattered numbers that travel in lines. What a task needs lies together, so that a block can
// fetch it at once.
//
// Chunk loops are unrolled. Steps of a lane that touch the same bytes, one of them writing, run one after the other:
// the later waits until every block has ended the earlier one, unless both are reductions of the same elements, which
// are then dealt out alike, so that the same thread has the same element in both.
//
// Messages that a thread of the process carries (`ThreadChannel::ended`) have two such threads of the single block a
// lane: one asks for them, each when its bytes have been packed, one waits for them and tells the blocks that unpack.
// The lane's blocks pack the next meanwhile, or unpack the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "plan/builder.hpp"
#include "session/runtime.hpp"

namespace tasuki {

constexpr int kGpuPairs = 64;     ///< user's pairs of copies in one operation
constexpr int kGpuTasks = 128;    ///< in one launch
constexpr int kGpuThreads = 256;  ///< of a block
constexpr std::uint32_t kGpuWarps = kGpuThreads / 32;
constexpr std::int64_t kGpuSteps = 1 << 14;  ///< commands of an operation, loops unrolled
constexpr int kTileRows = 4;                 ///< most of a tile
constexpr int kRowWords = 4;                 ///< that a thread moves of a row of words that lie together
constexpr int kPartStart = 1;
constexpr int kPartWait = 2;
constexpr int kPartPack = 4;    ///< beside them: what comes before messages in a stream
constexpr int kPartUnpack = 8;  ///< and after
constexpr int kParts = 11;      ///< room for tables by parts
constexpr int kBoth = kPartStart | kPartWait;
constexpr int kBefore = kPartPack | kPartStart;  ///< where messages go in the same stream: before
constexpr int kAfter = kPartUnpack | kPartWait;  ///< and after them

/// One dimension of a copy, in units; n / count is (n * magic) >> (32 + shift) for n < 2^31 and more than one of them.
struct GpuDim {
  std::uint32_t count = 1;
  std::uint32_t magic = 0;
  std::uint32_t shift = 0;
  std::int32_t src_stride = 0;
  std::int32_t dst_stride = 0;
  std::uint32_t spare[3] = {};
};

/// A strided copy of `units` units of 2^log_unit bytes (reductions: of one element), cut into tiles of rows of a few
/// units a thread. Its dimensions, innermost first, are among the task's; strides are in units (reductions: in bytes).
/// On a stamped side the units follow each other in the lines from its offset on, the strides there are zero, and a row
/// is a line.
struct GpuCopy {
  std::int64_t src_offset = 0;
  std::int64_t dst_offset = 0;
  std::uint32_t units = 0;
  std::uint32_t first_tile = 0;  ///< among those dealt out together
  std::int32_t first_dim = 0;
  std::int8_t dims = 0;
  std::int8_t log_unit = 0;
  std::uint16_t row_units = 32;
  std::int32_t step = 0;  ///< among the task's, that it belongs to
};

/// Where a buffer is: base + copy * stride, the copy being the epoch's turn, or what the user shows at the launch.
struct GpuPlace {
  std::byte* base = nullptr;
  std::int64_t stride = 0;
  std::uint32_t copies = 1;      ///< a power of two: dividing by others takes the kernel tenths of a microsecond
  std::int16_t pair = -1;        ///< a user's pair: which bit of the launch's selection tells the copy
  std::int16_t takes_turns = 0;  ///< epoch e uses copy (e - 1) % copies
};

/// Moves that follow each other without a wait or a signal are dealt out together, by what the first of them says:
/// looking at each in turn would take every warp a tenth of a microsecond a step.
struct GpuStep {
  GpuPlace src;  ///< moves
  GpuPlace dst;
  std::uint64_t* counter = nullptr;  ///< signals and waits
  std::uint64_t per_epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t lag = 0;
  std::int32_t followers = 0;     ///< moves after this one that are dealt out with it; their own tiles are 0
  std::uint32_t tiles = 0;        ///< of all of them, as the rest here
  std::uint32_t rounds = 0;       ///< in which each block takes a tile a warp, neighbours
  std::uint32_t share = 0;        ///< of the rest: tiles of each block, neighbours too, and one more
  std::uint32_t more = 0;         ///< of so many blocks from
  std::uint32_t first_block = 0;  ///< this one on
  std::uint32_t tile_rows = 1;
  std::int32_t first_copy = 0;  ///< among the task's
  std::int32_t copies = 0;      ///< those of the followers come right after
  std::int32_t first_dep = 0;   ///< among the task's: commands that must have ended
  std::int32_t deps = 0;
  std::int32_t command = 0;
  std::int32_t end = 0;        ///< its place in the list of ends, where dependencies look for it
  std::int8_t awaited = 0;     ///< kAwaited or kMet; while a task is put together, bits of both
  std::int8_t follows = 0;     ///< the last dependency is an earlier step of this lane
  std::int8_t keeps_turn = 0;  ///< the next move is dealt out as this one
  std::int8_t untold = 0;      ///< not recorded when traced: the command has another step, which is
  std::int8_t credit = 0;
  std::int8_t alone = 0;    ///< a signal that says only that earlier kernels have ended
  std::int8_t stamped = 0;  ///< which side, if any, is stamped lines
  Verb verb{};
  DType dtype = DType::none;
  ReduceOp op = ReduceOp::sum;
};

constexpr std::int8_t kAwaited = 1;  ///< others, or other blocks, depend on a step
constexpr std::int8_t kMet = 2;      ///< only later steps of its lane do, which one block runs: its threads meet

constexpr std::uint32_t kLineWords = kStampedData / 4;  ///< in a stamped line
constexpr std::int8_t kStampedSource = 1;
constexpr std::int8_t kStampedTarget = 2;

/// The beginning of a task's bytes: its lanes' ends (step numbers; one lane after the other), then steps, copies,
/// dimensions and dependencies at these offsets.
struct GpuTaskHeader {
  std::int32_t lanes = 0;
  std::int32_t ends = 0;
  std::int32_t steps = 0;
  std::int32_t copies = 0;
  std::int32_t dims = 0;
  std::int32_t deps = 0;
};

struct GpuTask {
  std::uint32_t offset = 0;  ///< of its bytes
  std::uint32_t bytes = 0;
  std::int32_t first_block = 0;
};

/// What a traced kernel says of a command: when the task's first block began it and had ended it, by the GPU's clock.
struct GpuEvent {
  std::uint64_t epoch = 0;
  std::uint64_t begin = 0;  ///< ns
  std::uint64_t end = 0;
  std::int32_t command = 0;
  std::int32_t spare = 0;
};
constexpr std::uint64_t kGpuEvents = 1 << 15;  ///< that an operation keeps; older ones are overwritten

/// Tasks that all blocks do before those of the next round; the first of them is that of single threads.
struct GpuRound {
  std::int32_t first_task = 0;
  std::int32_t last_task = 0;  ///< past the last
  std::int32_t blocks = 0;
};

struct GpuProgram {
  std::vector<std::byte> bytes;          ///< of all tasks
  std::vector<GpuTask> tasks[kParts];    ///< by parts
  int blocks[kParts] = {};               ///< by parts
  std::vector<GpuRound> rounds[kParts];  ///< by parts: one or two
  bool direct = false;                   ///< there is something to do besides messages
  std::vector<std::int32_t> messages;    ///< commands that channels carry in a stream
  bool in_line = false;                  ///< kBefore, messages, kAfter can be one sequence
  std::vector<const int*> pairs;         ///< which copy of each pair the user shows
  /// Of ends beyond those of the plan's commands: the command that each belongs to. A loop's last round has the
  /// command's own.
  std::vector<std::int32_t> more_ends;
  bool reduces = false;  ///< it has reductions
  bool meets = false;    ///< blocks of a lane wait for each other, so that all must find room at once
};

/// Lowers a bound program. `most_blocks` is how many thread blocks may move data at once; without `atomics` a signal to
/// another GPU cannot be added to by several blocks. Throws `Error` for what the kernel does not run: messages in chunk
/// loops, reductions into stamped lines, or out of them of elements of less than 4 bytes, more than kGpuSteps commands
/// with loops unrolled, kGpuPairs pairs, kGpuTasks tasks or kGpuThreads lanes that move nothing.
GpuProgram lower(const Program& program, int most_blocks, bool atomics);

/// What to say when a kernel has given up waiting at `command`, whose counter stood at `value`.
std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target);

}  // namespace tasuki
