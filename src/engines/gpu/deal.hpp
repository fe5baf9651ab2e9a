// How the tasks of a GPU program share the thread blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/gpu/program.hpp"
#include "engines/gpu/task.hpp"

namespace tasuki {

/// What the tasks of a part are worth, in thread blocks. Staging tasks do not count: they should pack some messages
/// while they unpack others.
struct Worth {
  /// of lanes that wait for signals, that signal, or that copy within the GPU; but not of those that combine one part
  /// while the next one travels, which would have to wait until all has been sent
  std::int64_t waiting = 0;
  std::int64_t scattered = 0;  ///< of lanes that move scattered units into or out of LL lines
};
Worth worth_of(const std::vector<TaskDraft>& tasks);

/// Whether start and wait become two rounds of `most` blocks. They do if each would keep more than half of the blocks
/// from the other. LL lines are normally received while others are sent, because they are unpacked as they arrive.
/// But with many scattered numbers the SMs are the bottleneck, not the links, and two rounds are faster.
bool both_want_most(const Worth& start, const Worth& wait, int most);

/// The two parts one after the other, each by all blocks, with the tasks that they have as kernels of their own.
void in_rounds(GpuProgram& out);

/// Decides how many of `most` thread blocks each task has, of which the first is that of single threads, and adds the
/// tasks to the program as its `parts`. Staging tasks keep their blocks: the way to the host takes longer than copying
/// within the GPUs beside it.
void deal_out(const Plan& plan, std::vector<TaskDraft>& tasks, int parts, int most, GpuProgram& out);
/// The same for each stage of the tasks by itself, as a round. Single threads have their block in all of them.
void deal_stages(const Plan& plan, std::vector<TaskDraft>& tasks, int parts, int most, GpuProgram& out);

}  // namespace tasuki
