// A lowered plan in memory: tasks, which consist of steps, strided copies and dimensions. Part of tasuki/kernel.cuh;
// src/engines/gpu/program.hpp says how plans are lowered.
#pragma once

#include "tasuki/dtype.hpp"
#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/stop.cuh"
#include "tasuki/kernel/impl/words.cuh"
#include "tasuki/verb.hpp"

namespace tasuki::device::lowered {

constexpr int kGpuTasks = 128;  ///< tasks in one launch
constexpr int kTileRows = 4;    ///< most rows of a tile
constexpr int kRowWords = 4;    ///< words of a row that one thread moves, if the row's words are contiguous
/// By how much the counter of an end grows when all blocks of its task have reached the end; a signal's counter in GPU
/// memory likewise. Each block adds 1, and the first block the rest. Counters in host memory, which the host's engines
/// use too, have one writer and count signals.
constexpr std::uint64_t kShares = 1 << 16;
#if defined(__CUDACC__)
constexpr std::uint64_t kWholeSignal = kShares;
#else
constexpr std::uint64_t kWholeSignal = 1;
#endif

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
/// innermost first, are among the task's; strides are in units (reductions: in bytes). On an LL side the units
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
  /// It turns rows into columns (turn.cuh): the source is dense along its first dimension, `down`, the target along the
  /// second one, `across`. Its tiles are rectangles of these two, whatever `tile_rows` is, along `down` first.
  std::int8_t turned = 0;
  /// Sides (kSource, kTarget) on which the steps of the outermost dimension, whose stride there is 0, lie at listed
  /// offsets. The lists, of 32-bit numbers in units, follow the copy's dimensions, each in a whole number of GpuDims.
  std::int8_t listed = 0;
};
constexpr int kSource = 1;
constexpr int kTarget = 2;
constexpr std::uint32_t kListedInDim = sizeof(GpuDim) / sizeof(std::int32_t);  ///< offsets in the place of a GpuDim

/// Sides of a tile of a turned copy in units of 2^kLogUnit bytes, as powers of two: 64 to 256 bytes each, so that lines
/// are loaded and stored as a whole, and 64 bytes a thread.
template <int kLogUnit>
constexpr int kLogTurnedDown = kLogUnit == 4 ? 3 : 4;
template <int kLogUnit>
constexpr int kLogTurnedAcross = kLogUnit == 2 ? 5 : 4;

/// Where a buffer is: base + copy * stride. Which copy: that of the epoch, or, of a field with two copies, the one that
/// is current at the launch.
struct GpuPlace {
  std::byte* base = nullptr;
  std::int64_t stride = 0;
  std::uint32_t copies = 1;      ///< a power of two: dividing by others takes the kernel tenths of a microsecond
  std::int16_t pair = -1;        ///< a field with two copies: the bit of the launch's selection that selects the copy
  std::int16_t takes_turns = 0;  ///< epoch e uses copy (e - 1) % copies
};

/// A step of a lane. Moves that follow each other without a wait or a signal are dealt out to the blocks together: the
/// first of them holds the numbers, the others are its followers. If each move were dealt out by itself, every warp
/// would need a tenth of a microsecond for each step.
struct GpuStep {
  GpuPlace src;  ///< of moves
  GpuPlace dst;
  std::uint64_t* counter = nullptr;  ///< of signals and waits
  std::uint64_t per_epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t lag = 0;
  std::int32_t followers = 0;  ///< moves after this one that are dealt out with it; their own `tiles` are 0
  std::uint32_t tiles = 0;     ///< of this move and its followers together, as all numbers up to `first_block`
  /// in each round every block gets one tile for each of its warps; a block's tiles are neighbours
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
  std::int8_t awaited = 0;     ///< kAwaited or kInBlock; while a task is put together, the bits of both
  std::int8_t follows = 0;     ///< the last dependency is an earlier step of this lane
  std::int8_t keeps_turn = 0;  ///< the next move is dealt out like this one
  std::int8_t untraced = 0;    ///< not recorded in traces, because another step of the command is
  std::int8_t credit = 0;
  std::int8_t alone = 0;  ///< a signal that says only that earlier kernels have ended
  /// A signal that asks a thread of the host for a message, which lies in the buffer `src`: see `ask`.
  std::int8_t asks = 0;
  std::int8_t ll_side = 0;  ///< the side, if any, that is LL lines
  /// A reduction of several operands: this many steps after it hold the other operands, in the order in which they are
  /// combined. These steps have the same destination and are not dealt out.
  std::int8_t joined = 0;
  std::int8_t sends = 0;     ///< this many of these, the last ones, are puts: the result is stored there, too
  std::int8_t begins = 0;    ///< a reduction: its first source stands for the old value of the destination
  std::int8_t flat = 0;      ///< a reduction in units of 16 bytes that follow each other on all sides
  std::int8_t by_lines = 0;  ///< a reduction in words, whose rows are as long as LL lines
  Verb verb{};
  DType dtype = DType::none;
  ReduceOp op = ReduceOp::sum;
};

constexpr std::int8_t kAwaited = 1;  ///< commands of other lanes, or other blocks, depend on the step
/// only later steps of the same lane depend on it, and one block runs the lane: a barrier of the block is enough
constexpr std::int8_t kInBlock = 2;

constexpr std::uint32_t kLineWords = kLLLineData / 4;  ///< in an LL line
constexpr std::int8_t kLLSource = 1;
constexpr std::int8_t kLLTarget = 2;

/// The beginning of a task's bytes. The members are offsets of what follows: the ends of its lanes (step numbers, one
/// lane after the other), its steps, strided copies, dimensions and dependencies; only `lanes` is a number.
struct GpuTaskHeader {
  std::int32_t lanes = 0;
  std::int32_t ends = 0;
  std::int32_t steps = 0;
  std::int32_t copies = 0;
  std::int32_t dims = 0;
  std::int32_t deps = 0;
  /// The last warp of each block moves nothing: it signals how far the block has come. A signal waits until all that
  /// the block has stored is visible; meanwhile the other warps proceed.
  std::int32_t signaller = 0;
};

struct GpuTask {
  std::uint32_t offset = 0;  ///< of its bytes
  std::uint32_t bytes = 0;
  std::int32_t first_block = 0;
};

/// A record of a traced kernel: when the first block of the task began and ended a command, by the GPU's clock.
struct GpuEvent {
  std::uint64_t epoch = 0;
  std::uint64_t begin = 0;  ///< ns
  std::uint64_t end = 0;
  std::int32_t command = 0;
  std::int32_t spare = 0;
};
constexpr std::uint64_t kGpuEvents = 1 << 15;  ///< that an operation keeps; older ones are overwritten

/// Why a run of a plan has ended for good.
enum class Why : std::int32_t {
  waited,         ///< a wait came to its deadline
  group_barrier,  ///< likewise, while blocks of the group waited for each other
  aborted,        ///< the host has ended all waits
  group,          ///< another group than the handle was made for; `value` blocks, `target` threads each
  active,         ///< a start while an epoch was active
  idle,           ///< a wait without a start
  turn,           ///< an alternating halo shows the wrong copy, after `value` swaps
  has_barriers,   ///< a BarrierFreeRun of a handle whose group has barriers
  asked,          ///< `failed` has found that the host has ended all waits
};

/// The first failure of a handle's runs, in host memory. Not the Failure of a team: only `set` and `block` mean the
/// same in both, and with one list of reasons whoever describes a failure would have to describe those of the other.
struct PlanFailure {
  std::uint32_t set;     // or see kOtherVersion
  std::int32_t command;  // that waited
  std::uint64_t epoch;
  std::uint64_t value;
  std::uint64_t target;
  Why why;
  std::int32_t block;
};

/// What a kernel that runs a plan is given.
struct PlanRun {
  const std::byte* bytes;
  std::uint64_t* ends;  // of steps, by GpuStep::end: dependencies wait for these
  std::uint32_t* failed;
  PlanFailure* failure;
  Stop stop;
  GpuEvent* events;              // if traced
  unsigned long long* recorded;  // likewise: how many events
  std::uint64_t elsewhere;       // epochs that the host or other kernels ran: they have ends of their own
  std::uint64_t selection;       // bit p: number of the current copy of field p of those with two copies
  std::uint64_t deadline;        // ns
};

}  // namespace tasuki::device::lowered
