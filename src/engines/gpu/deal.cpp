#include "engines/gpu/deal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMostSpread = 4;
// Start and wait become two rounds if each is worth more than this many times the blocks because of scattered numbers.
constexpr std::int64_t kMostScattered = 2;

// Factor by which tasks with LL lines may have more blocks than they are worth, if blocks are left over: an SM
// with little work is done sooner. Other tasks get no more blocks, because every block has to add a share to their
// signals.
std::int64_t spread_of(const std::vector<TaskDraft>& tasks, std::int64_t left) {
  std::int64_t sum = 0;
  for (const TaskDraft& task : tasks) sum += task.lines > 0 ? task.blocks() : 0;
  return 1 + (sum > 0 ? std::clamp<std::int64_t>(left / sum, 0, kMostSpread - 1) : 0);
}

// Gives blocks to the tasks of a kind, one each and then up to `room` in all. Each further block goes to the task
// that would end last without it, unless it has as many as it is worth.
void give(std::vector<TaskDraft>& tasks, bool staging, std::int64_t room, std::vector<std::int64_t>& blocks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].staging == staging) room -= blocks[i] = 1;
  }
  for (; room > 0; --room) {
    std::size_t last = tasks.size();
    double latest = -1;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].staging != staging || blocks[i] == tasks[i].blocks()) continue;
      if (const double time = tasks[i].time(blocks[i]); time > latest) {
        last = i;
        latest = time;
      }
    }
    if (last == tasks.size()) return;
    ++blocks[last];
  }
}

void check(const Plan& plan, const std::vector<TaskDraft>& tasks) {
  if (tasks.size() > kGpuTasks) {
    throw Error(ErrorKind::not_possible,
                fmt::format("rank {}: {}: {} lanes move data; one operation on GPU memory takes at most {}", plan.rank,
                            plan.operation, tasks.size(), kGpuTasks - 1));
  }
  if (tasks[0].ends.size() > kGpuThreads) {
    throw Error(ErrorKind::not_possible,
                fmt::format("rank {}: {}: {} threads would signal other ranks or wait for them; one operation on GPU "
                            "memory takes at most {}",
                            plan.rank, plan.operation, tasks[0].ends.size(), kGpuThreads));
  }
}

// Adds the tasks with their shares of `most` blocks, which are numbered after those that the parts have so far.
void deal(std::vector<TaskDraft>& tasks, int parts, int most, GpuProgram& out) {
  std::int64_t sum[2] = {};  // of other tasks, of staging tasks
  std::int64_t count[2] = {};
  for (const TaskDraft& task : tasks) {
    sum[task.staging ? 1 : 0] += task.blocks();
    ++count[task.staging ? 1 : 0];
  }
  std::int64_t room[2] = {sum[0], sum[1]};
  if (sum[0] + sum[1] > most) {
    // Each other task keeps at least one block, so all together have more than `most` only if each has one.
    const std::int64_t left = std::max(count[1], most - count[0]);
    room[1] = std::max(count[1], std::min({sum[1], left, sum[0] > 0 ? (most + 1) / 2 : std::int64_t{most}}));
    room[0] = std::min(sum[0], most - room[1]);
  }
  std::vector<std::int64_t> blocks_of(tasks.size());
  give(tasks, false, room[0], blocks_of);
  give(tasks, true, room[1], blocks_of);
  const std::int64_t spread = spread_of(tasks, most - sum[0] - sum[1]);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    TaskDraft& task = tasks[i];
    const std::int64_t blocks =
        task.lines == 0 ? blocks_of[i] : std::min({task.lines, blocks_of[i] * spread, task.most});
    task.cut(blocks);
    GpuTask placed;
    placed.offset = static_cast<std::uint32_t>(out.bytes.size());
    placed.first_block = out.blocks[parts];
    task.write(out.bytes);
    placed.bytes = static_cast<std::uint32_t>(out.bytes.size()) - placed.offset;
    out.blocks[parts] += static_cast<int>(blocks);
    out.tasks[parts].push_back(placed);
  }
}

}  // namespace

Worth worth_of(const std::vector<TaskDraft>& tasks) {
  Worth worth;
  for (const TaskDraft& task : tasks) {
    if (task.staging) continue;
    if (task.lines == 0 && !task.in_pieces()) worth.waiting += task.blocks();
    if (task.lines > 0 && task.scattered()) worth.scattered += task.blocks();
  }
  return worth;
}

bool both_want_most(const Worth& start, const Worth& wait, int most) {
  return 2 * std::min(start.waiting, wait.waiting) > most ||
         std::min(start.scattered, wait.scattered) > kMostScattered * most;
}

void in_rounds(GpuProgram& out) {
  const auto& start = out.tasks[kPartStart];
  const auto& wait = out.tasks[kPartWait];
  auto& both = out.tasks[kBoth];
  both = start;
  both.insert(both.end(), wait.begin(), wait.end());
  out.blocks[kBoth] = std::max(out.blocks[kPartStart], out.blocks[kPartWait]);
  const auto first = static_cast<std::int32_t>(start.size());
  out.rounds[kBoth] = {{0, first, out.blocks[kPartStart]},
                       {first, static_cast<std::int32_t>(both.size()), out.blocks[kPartWait]}};
}

void deal_out(const Plan& plan, std::vector<TaskDraft>& tasks, int parts, int most, GpuProgram& out) {
  check(plan, tasks);
  deal(tasks, parts, most, out);
  out.rounds[parts] = {{0, static_cast<std::int32_t>(out.tasks[parts].size()), out.blocks[parts]}};
}

void deal_stages(const Plan& plan, std::vector<TaskDraft>& tasks, int parts, int most, GpuProgram& out) {
  check(plan, tasks);
  std::map<int, std::vector<TaskDraft>> stages;
  for (std::size_t t = 1; t < tasks.size(); ++t)
    stages[std::min(tasks[t].stage, static_cast<int>(kGpuRounds) - 1)].push_back(std::move(tasks[t]));
  tasks.resize(1);
  deal(tasks, parts, 1, out);
  if (stages.empty()) out.rounds[parts] = {{0, 1, 1}};
  int blocks = 1;
  for (auto& [stage, its] : stages) {
    const bool single = out.rounds[parts].empty();
    const std::int32_t first = single ? 0 : static_cast<std::int32_t>(out.tasks[parts].size());
    out.blocks[parts] = 1;
    deal(its, parts, std::max(most - 1, 1), out);
    blocks = std::max(blocks, out.blocks[parts]);
    out.rounds[parts].push_back({first, static_cast<std::int32_t>(out.tasks[parts].size()), out.blocks[parts], single});
  }
  out.blocks[parts] = blocks;
}

}  // namespace tasuki
