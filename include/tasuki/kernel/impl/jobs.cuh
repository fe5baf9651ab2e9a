// Jobs: what a warp moves in a call of a user's kernel, with all numbers in 128 bytes. Part of tasuki/kernel.cuh.
//
// A task (program.cuh) is read through its header, its steps, its strided copies and their dimensions. These loads
// depend on each other, and each takes a fifth of the wire's time. Where a plan only moves data, into and out of LL
// lines or within the GPU, they are not needed in every epoch: the moves are cut into tiles and dealt out to the warps
// when the handle is made.
#pragma once

#include "tasuki/kernel/impl/copy.cuh"
#include "tasuki/kernel/impl/group_barrier.cuh"
#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki::device::lowered {

constexpr int kJobDims = 3;  ///< that a job's strided copy has at most

/// As GpuDim.
struct JobDim {
  std::uint32_t count = 1;
  std::uint32_t magic = 0;  ///< 0 in dimensions beyond those of the copy: all units are in their first place
  std::uint32_t shift = 0;
  std::int32_t src_stride = 0;
  std::int32_t dst_stride = 0;
};

/// Some rows of a strided copy, as GpuCopy has them.
struct alignas(16) Job {
  GpuPlace src;  ///< of the strided copy's first unit or line
  GpuPlace dst;
  std::uint32_t units = 0;  ///< of the strided copy
  std::uint32_t first = 0;  ///< row
  std::uint16_t row_units = 32;
  std::uint8_t rows = 0;  ///< 0: the warp has no more jobs
  std::int8_t log_unit = 0;
  std::int8_t ll_side = 0;  ///< as GpuStep has it
  std::int8_t ndims = 1;
  std::int8_t spare[2] = {};
  std::int32_t command = 0;
  JobDim dims[kJobDims];
};
static_assert(sizeof(Job) == 128);

/// The jobs of a part: those of each warp one after the other, `turns` at most.
struct Jobs {
  const Job* first;
  int turns;
};

/// As GpuTile. The copy's dimensions, of which there are at most so many, are in registers.
template <int kDims>
struct JobTile {
  const Job& copy;
  std::uint32_t first;
  std::uint32_t end;
  const std::byte* src;
  std::byte* dst;

  TASUKI_DEVICE const std::byte* from() const { return src; }
  TASUKI_DEVICE std::byte* to() const { return dst; }
  template <class Inner, class Outermost>
  TASUKI_DEVICE void each_dim(const Inner& inner, const Outermost& outermost) const {
    TASUKI_UNROLL
    for (int d = 0; d < kDims - 1; ++d) inner(copy.dims[d]);
    outermost(copy.dims[kDims - 1]);
  }
  static constexpr bool kLists = false;
};

#if defined(TASUKI_LANES_ARE_THREADS)
/// As GpuLines.
template <int kDims>
struct JobLines {
  const Job& copy;
  std::uint32_t lines;
  const std::byte* src;
  std::byte* dst;

  TASUKI_DEVICE JobTile<kDims> line(int j) const {
    const std::uint32_t begin = (copy.first + j) * kLineWords;
    return {copy, begin + lane(), least(copy.units, begin + kLineWords), src, dst};
  }
  TASUKI_DEVICE const std::byte* from() const { return src; }
  TASUKI_DEVICE std::byte* to() const { return dst; }
  TASUKI_DEVICE bool has(int j) const { return (copy.first + j) * kLineWords + lane() < copy.units; }
  TASUKI_DEVICE std::int64_t piece(int j) const {
    return static_cast<std::int64_t>(copy.first + j) * kLLLineBytes + lane() * 16;
  }
};

template <int kDims>
TASUKI_DEVICE bool do_lines(const PlanRun& l, const Job& job, const std::byte* src, std::byte* dst,
                            std::uint64_t epoch) {
  const auto flag = static_cast<std::uint32_t>(epoch);
  const std::uint32_t rows = job.rows;
  const JobLines<kDims> lines{job, rows, src, dst};
  if (job.ll_side == kLLTarget) {
    rows == 1 ? fill_lines<1>(lines, flag) : fill_lines<kTileRows>(lines, flag);
    return true;
  }
  Deadline deadline(l, job.command, epoch);
  const auto more = [&] { return deadline.more((epoch - 1) * kShares, epoch * kShares); };
  return rows == 1 ? unpack_lines<1>(lines, flag, more) : unpack_lines<kTileRows>(lines, flag, more);
}
#endif

/// By a whole warp. False, to all its lanes, if something that was to come has not arrived. `l` is read only while the
/// warp waits.
TASUKI_DEVICE bool do_job([[maybe_unused]] const PlanRun& l, std::uint64_t selection, const Job& job,
                          std::uint64_t epoch) {
  const std::byte* const src = base_of(selection, job.src, epoch);
  std::byte* const dst = base_of(selection, job.dst, epoch);
#if defined(TASUKI_LANES_ARE_THREADS)
  // Each dimension more is a division for each word.
  if (job.ll_side != 0) {
    if (job.ndims == 1) return do_lines<1>(l, job, src, dst, epoch);
    return job.ndims == 2 ? do_lines<2>(l, job, src, dst, epoch) : do_lines<kJobDims>(l, job, src, dst, epoch);
  }
#endif
  const std::uint32_t rows = job.rows;
  each_lane([&](std::uint32_t lane) {
    const JobTile<kJobDims> tile{job, job.first * job.row_units + lane,
                                 least(job.units, (job.first + rows) * job.row_units), src, dst};
    move_units(tile, rows);
  });
  return true;
}

/// A job that is being loaded: each lane holds a word of it, because a whole job would take 32 registers of every
/// thread.
class ComingJob {
 public:
  /// By a whole warp.
  TASUKI_DEVICE explicit ComingJob(const Job* from)
#if defined(TASUKI_LANES_ARE_THREADS)
      : word_(reinterpret_cast<const std::uint32_t*>(from)[lane()]) {
  }
  TASUKI_DEVICE Job come() const {
    constexpr int kWords = sizeof(Job) / 4;
    std::uint32_t words[kWords];
    TASUKI_UNROLL
    for (int k = 0; k < kWords; ++k) words[k] = __shfl_sync(~0u, word_, k);
    Job job;
    memcpy(&job, words, sizeof job);
    return job;
  }

 private:
  std::uint32_t word_;
#else
      : job_(from) {
  }
  Job come() const {
    return *job_;
  }

 private:
  const Job* job_;
#endif
};

/// A block's jobs of a part. Warps may differ in the result; `good` is what the warp has found before.
template <class Crew>
TASUKI_NOINLINE bool run_jobs(const PlanRun& l, std::uint64_t selection, const Crew& crew, Jobs jobs, int block,
                              std::uint64_t epoch, bool good) {
  const auto warp = static_cast<std::int64_t>(block) * crew.warps() + crew.warp();
  const Job* const mine = jobs.first + warp * jobs.turns;
  ComingJob next(mine);
  for (int turn = 1; good; ++turn) {
    const Job job = next.come();
    if (job.rows == 0) break;
    if (turn < jobs.turns) next = ComingJob(mine + turn);  // on its way while this one is done
    good = do_job(l, selection, job, epoch);
    if (turn == jobs.turns) break;
  }
  return good;
}

}  // namespace tasuki::device::lowered
