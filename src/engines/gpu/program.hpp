// GpuProgram: a plan lowered to plain arrays that a kernel can run. Made on the host, without CUDA.
//
// A lane that moves data becomes a task of some thread blocks. All blocks of the task go through all its steps: each
// block polls for a wait, the tiles of a move are dealt out to the warps (neighbouring tiles to one block), and a
// signal is complete when every block has added its share. The lanes that move no data form one further task of a
// single block, one thread a lane. The bytes of a task lie together, so that a block can fetch them at once.
//
// An epoch has two parts, which one kernel may run together: start sends, wait receives. If each of them is worth more
// than half of the blocks, they become two rounds of the same blocks: otherwise half of the GPU would only wait to
// receive while the other half sends. The same holds for many scattered numbers that travel in stamped lines.
//
// Chunk loops are unrolled. If two steps of a lane touch the same bytes, one of them writing, the later step waits
// until every block has ended the earlier one. Exception: two reductions of the same elements are dealt out alike, so
// that the same thread has the same element in both.
//
// Messages that a thread of the process carries (`ThreadChannel::ended`) take two threads of the single block for each
// lane. One thread asks for each message when its bytes have been packed. The other waits for messages, and tells the
// blocks that unpack. Meanwhile the lane's blocks pack the next message, or unpack the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "plan/builder.hpp"
#include "session/runtime.hpp"

namespace tasuki {

constexpr int kGpuPairs = 64;     ///< fields with two copies in one operation
constexpr int kGpuTasks = 128;    ///< tasks in one launch
constexpr int kGpuThreads = 256;  ///< of a block
constexpr std::uint32_t kGpuWarps = kGpuThreads / 32;
constexpr std::int64_t kGpuSteps = 1 << 14;  ///< steps of an operation: commands, with loops unrolled
constexpr int kTileRows = 4;                 ///< most rows of a tile
constexpr int kRowWords = 4;  ///< words of a row that one thread moves, if the row's words are contiguous
constexpr int kPartStart = 1;
constexpr int kPartWait = 2;
constexpr int kPartPack = 4;    ///< beside these two: what comes before messages in a stream
constexpr int kPartUnpack = 8;  ///< and what comes after them
constexpr int kParts = 11;      ///< size of tables by parts
constexpr int kBoth = kPartStart | kPartWait;
constexpr int kBefore = kPartPack | kPartStart;  ///< with messages in the same stream: the kernel before them
constexpr int kAfter = kPartUnpack | kPartWait;  ///< and the kernel after them

/// One dimension of a strided copy, in units. For n < 2^31, and count > 1, n / count is (n * magic) >> (32 + shift).
struct GpuDim {
  std::uint32_t count = 1;
  std::uint32_t magic = 0;
  std::uint32_t shift = 0;
  std::int32_t src_stride = 0;
  std::int32_t dst_stride = 0;
  std::uint32_t spare[3] = {};
};

/// A strided copy of `units` units of 2^log_unit bytes (reductions: of one element, or as the step and `wide` say). It
/// is cut into rows, in which each thread of a warp has a unit or a few, and tiles of some rows. Its dimensions,
/// innermost first, are among the task's; strides are in units (reductions: in bytes). On a stamped side the units
/// follow each other in the lines from its offset on, the strides are zero, and a row is a line.
struct GpuCopy {
  std::int64_t src_offset = 0;
  std::int64_t dst_offset = 0;
  std::uint32_t units = 0;
  std::uint32_t first_tile = 0;  ///< among those dealt out together
  std::int32_t first_dim = 0;
  std::int8_t dims = 0;
  std::int8_t log_unit = 0;
  std::uint16_t row_units = 32;
  std::int32_t step = 0;  ///< number of its step in the task
  std::int8_t wide = 0;   ///< a reduction of 16 bytes at a time; its strides are in these
};

/// Where a buffer is: base + copy * stride. The copy is the one whose turn the epoch is, or the one that is current at
/// the launch.
struct GpuPlace {
  std::byte* base = nullptr;
  std::int64_t stride = 0;
  std::uint32_t copies = 1;      ///< a power of two: dividing by others takes the kernel tenths of a microsecond
  std::int16_t pair = -1;        ///< a field with two copies: the bit of the launch's selection that tells the copy
  std::int16_t takes_turns = 0;  ///< epoch e uses copy (e - 1) % copies
};

/// Moves that follow each other without a wait or a signal are dealt out together; the first of them has the numbers.
/// If each were dealt out by itself, every warp would need a tenth of a microsecond for each step.
struct GpuStep {
  GpuPlace src;  ///< of moves
  GpuPlace dst;
  std::uint64_t* counter = nullptr;  ///< of signals and waits
  std::uint64_t per_epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t lag = 0;
  std::int32_t followers = 0;  ///< moves after this one that are dealt out with it; their own `tiles` are 0
  std::uint32_t tiles = 0;     ///< of this move and its followers together, as all numbers up to `first_block`
  /// in each round every block takes one tile for each of its warps; a block's tiles are neighbours
  std::uint32_t rounds = 0;
  std::uint32_t share = 0;        ///< tiles that each block gets of those left after the rounds; neighbours, too
  std::uint32_t more = 0;         ///< this many blocks get one tile more,
  std::uint32_t first_block = 0;  ///< beginning with this block
  std::uint32_t tile_rows = 1;
  std::int32_t first_copy = 0;  ///< among the task's
  std::int32_t copies = 0;      ///< the copies of the followers come right after
  std::int32_t first_dep = 0;   ///< among the task's: commands that must have ended before
  std::int32_t deps = 0;
  std::int32_t command = 0;
  std::int32_t end = 0;        ///< index in the list of ends, where dependencies look for it
  std::int8_t awaited = 0;     ///< kAwaited or kMet; while a task is put together, the bits of both
  std::int8_t follows = 0;     ///< the last dependency is an earlier step of this lane
  std::int8_t keeps_turn = 0;  ///< the next move is dealt out like this one
  std::int8_t untold = 0;      ///< not recorded in traces, because the command has another step, which is
  std::int8_t credit = 0;
  std::int8_t alone = 0;    ///< a signal that says only that earlier kernels have ended
  std::int8_t stamped = 0;  ///< the side, if any, that is stamped lines
  /// A reduction of several operands: so many steps after this one have the others, in the order in which they are
  /// combined. They have the same destination and are not dealt out.
  std::int8_t joined = 0;
  std::int8_t begins = 0;    ///< a reduction: its destination does not count, its first source takes that place
  std::int8_t by_lines = 0;  ///< a reduction in words, whose rows are as long as stamped lines
  Verb verb{};
  DType dtype = DType::none;
  ReduceOp op = ReduceOp::sum;
};

constexpr std::int8_t kAwaited = 1;  ///< commands of other lanes, or other blocks, depend on the step
/// only later steps of the same lane depend on it, and one block runs the lane: its threads meet at a barrier
constexpr std::int8_t kMet = 2;

constexpr std::uint32_t kLineWords = kStampedData / 4;  ///< in a stamped line
constexpr std::int8_t kStampedSource = 1;
constexpr std::int8_t kStampedTarget = 2;

/// The beginning of a task's bytes. At these offsets follow the ends of its lanes (step numbers; one lane after the
/// other), its steps, strided copies, dimensions and dependencies.
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

/// What a traced kernel records of a command: when the task's first block began and ended it, by the GPU's clock.
struct GpuEvent {
  std::uint64_t epoch = 0;
  std::uint64_t begin = 0;  ///< ns
  std::uint64_t end = 0;
  std::int32_t command = 0;
  std::int32_t spare = 0;
};
constexpr std::uint64_t kGpuEvents = 1 << 15;  ///< that an operation keeps; older ones are overwritten

/// A range of tasks. All blocks do the tasks of one round before those of the next. The first task is the one of single
/// threads.
struct GpuRound {
  std::int32_t first_task = 0;
  std::int32_t last_task = 0;  ///< past the last
  std::int32_t blocks = 0;
};

/// What is signalled when a put of a stream has ended, while the next ones travel: a task of a single thread.
struct GpuTell {
  std::int32_t message = 0;  ///< the put's command
  GpuTask task;
};

struct GpuProgram {
  std::vector<std::byte> bytes;          ///< of all tasks
  std::vector<GpuTask> tasks[kParts];    ///< by parts
  int blocks[kParts] = {};               ///< by parts
  std::vector<GpuRound> rounds[kParts];  ///< by parts: one or two
  bool direct = false;                   ///< there is something to do besides messages
  std::vector<std::int32_t> messages;    ///< commands that channels carry in a stream
  std::vector<GpuTell> tells;            ///< if there are several puts among them
  bool in_line = false;                  ///< kBefore, messages and kAfter can be one sequence in a stream
  std::vector<const int*> pairs;         ///< pointers to the number of the current copy, of each field with two copies
  /// The command of each end beyond those of the plan's commands. The last round of a loop has the command's own end.
  std::vector<std::int32_t> more_ends;
  bool reduces = false;  ///< it has reductions
  bool meets = false;    ///< blocks of a lane wait for each other, so all must be on the GPU at once
};

/// Lowers a bound program. `most_blocks` is how many thread blocks may move data at once. Without `atomics`, several
/// blocks cannot add to a signal of another GPU. Throws `Error` for what the kernel cannot run: messages in chunk
/// loops, reductions into stamped lines, and more than kGpuSteps steps, kGpuPairs fields with two copies, kGpuTasks
/// tasks or kGpuThreads lanes that move nothing.
GpuProgram lower(const Program& program, int most_blocks, bool atomics);

/// The error text when a kernel has given up waiting at `command`, whose counter was at `value`.
std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target);

}  // namespace tasuki
