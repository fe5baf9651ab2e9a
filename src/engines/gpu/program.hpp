// GpuProgram: a plan lowered to plain arrays that a kernel can run. Made on the host, without CUDA.
//
// A lane that moves data becomes a task of some thread blocks. All blocks of the task go through all its steps: each
// block polls for a wait, the tiles of a move are dealt out to the warps (neighbouring tiles to one block), and a
// signal is complete when every block has added its share. The lanes that move no data form one further task of a
// single block, one thread a lane. The bytes of a task lie together, so that a block can fetch them at once.
//
// An epoch has two parts, which one kernel may run together: start sends, wait receives. If each of them is worth more
// than half of the blocks, they become two rounds of the same blocks: otherwise half of the GPU would only wait to
// receive while the other half sends. The same holds for many scattered numbers that travel in LL lines. It does
// not where a lane combines one part of a vector while the next one travels.
//
// Stages of a plan (`Command::stage`) are rounds, too. The block of single threads serves all of them from the
// beginning: what a thread waits for may come at the end.
//
// Chunk loops are unrolled. If two steps of a lane touch the same bytes, one of them writing, the later step waits
// until every block has ended the earlier one. Exception: two reductions of the same elements are dealt out alike, so
// that the same thread has the same element in both.
//
// Messages that a thread of the process carries (`ThreadChannel::ended`) take two threads of the single block for each
// lane. One thread asks for each message when its bytes have been packed. The other waits for messages, and signals the
// blocks that unpack. Meanwhile the lane's blocks pack the next message, or unpack the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "plan/builder.hpp"
#include "session/runtime.hpp"
#include "tasuki/kernel/impl/program.cuh"

namespace tasuki {

using namespace device::lowered;  // NOLINT(google-build-using-namespace): the plan is lowered to its nouns
static_assert(kShares == kSignal);

constexpr int kGpuPairs = 64;     ///< fields with two copies in one operation
constexpr int kGpuThreads = 256;  ///< of a block
constexpr std::uint32_t kGpuWarps = kGpuThreads / 32;
constexpr std::int64_t kGpuSteps = 1 << 14;  ///< steps of an operation: commands, with loops unrolled
constexpr int kPartStart = 1;
constexpr int kPartWait = 2;
constexpr int kPartPack = 4;    ///< beside these two: what comes before messages in a stream
constexpr int kPartUnpack = 8;  ///< and what comes after them
constexpr int kParts = 11;      ///< size of tables by parts
constexpr int kBoth = kPartStart | kPartWait;
constexpr int kBefore = kPartPack | kPartStart;  ///< with messages in the same stream: the kernel before them
constexpr int kAfter = kPartUnpack | kPartWait;  ///< and the kernel after them

/// Sides of a tile of a turned copy, as powers of two.
constexpr int log_turned_down(int log_unit) {
  return log_unit == 4 ? kLogTurnedDown<4> : kLogTurnedDown<3>;
}
constexpr int log_turned_across(int log_unit) {
  return log_unit == 2 ? kLogTurnedAcross<2> : kLogTurnedAcross<3>;
}

/// A range of tasks. All blocks do the tasks of one round before those of the next.
struct GpuRound {
  std::int32_t first_task = 0;
  std::int32_t last_task = 0;  ///< past the last
  std::int32_t blocks = 0;
  /// The first task is the one of single threads, which the first block has. Rounds without one leave out that block,
  /// which is still busy with those of an earlier round.
  bool single = true;
};
constexpr std::size_t kGpuRounds = 4;

/// What is signalled when a put of a stream has ended, before the next one begins. A kernel between two puts would keep
/// the copy engine waiting for some ten microseconds. So the engine itself copies the signal's new value, from a word
/// that the kernel before the puts has set. Steps of this rank that wait for the put, because they write where it
/// reads, are signalled in the same way.
struct StreamSignal {
  std::int32_t message = 0;  ///< the put's command
  std::uint64_t* counter = nullptr;
  const std::uint64_t* word = nullptr;
  std::int32_t end = -1;      ///< for which steps of this rank wait; -1: none does
  std::int32_t prepared = 0;  ///< the end that the kernel before the puts has given, to be copied there
};

struct GpuProgram {
  std::vector<std::byte> bytes;              ///< of all tasks
  std::vector<GpuTask> tasks[kParts];        ///< by parts
  int blocks[kParts] = {};                   ///< by parts
  std::vector<GpuRound> rounds[kParts];      ///< by parts: at most kGpuRounds
  bool direct = false;                       ///< there is something to do besides messages
  std::vector<std::int32_t> messages;        ///< commands that channels carry in a stream
  std::vector<StreamSignal> stream_signals;  ///< if there are several puts among them
  bool in_line = false;                      ///< kBefore, messages and kAfter can be one sequence in a stream
  bool wait_after = false;                   ///< kPartWait uses what messages have brought, so it comes after them
  std::vector<const int*> pairs;  ///< pointers to the number of the current copy, of each field with two copies
  /// The command of each end beyond those of the plan's commands. The last round of a loop has the command's own end.
  std::vector<std::int32_t> more_ends;
  bool reduces = false;      ///< it has reductions
  bool cooperative = false;  ///< blocks of a lane wait for each other, so all must be on the GPU at once
};

/// Channels of threads for commands of a program that have another kind of channel, by command; null: none.
using ThreadChannels = std::vector<const ThreadChannel*>;

/// Lowers a bound program. `most_blocks` is how many thread blocks may move data at once, of so many warps each; if
/// there are more tasks than blocks, each task gets one. Without `atomics`, several blocks cannot add to a signal of
/// another GPU. Throws `Error` for what the kernel cannot run: messages in chunk loops, reductions into LL lines,
/// and more than kGpuSteps steps, kGpuPairs fields with two copies, kGpuTasks tasks or kGpuThreads lanes that move
/// nothing. Messages with a channel among `carried` are asked for as those are whose own channel is a thread's.
/// `signal_words`: words in GPU memory, one for each command of the plan, for what is signalled between puts of a
/// stream; without them all is signalled after the last one. `own`: for the kernel of engine `stream`, in which a block
/// has one task: where lanes signal often, a warp of each block does nothing else; threads that wait have warps of
/// their own; and stages are rounds.
GpuProgram lower(const Program& program, int most_blocks, bool atomics, int warps = static_cast<int>(kGpuWarps),
                 const ThreadChannels& carried = {}, std::uint64_t* signal_words = nullptr, bool own = false);

/// The error text when a kernel has given up waiting at `command`, whose counter was at `value`.
std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target);

}  // namespace tasuki
