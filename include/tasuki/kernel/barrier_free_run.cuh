// What a block does in each epoch of a barrier-free halo, looked up once in a kernel. Part of
// tasuki/kernel.cuh.
//
// `Steps::next_with_run` of a handle looks up in every step which epoch it is and what the thread's warp moves first.
// Both come from the L2 cache, for waiting for the neighbours has emptied the L1 cache. In a block of 512 threads of an
// H200 that takes 1400 cycles, read with the SM's clock. None of it changes while a kernel runs. An BarrierFreeRun
// keeps it in some 30 registers of each thread; 400 cycles are left.
#pragma once

#include "tasuki/kernel/plan.cuh"

namespace tasuki::device {

/// What the calling thread does in each epoch of a halo. For `Steps::next_with`, in a kernel whose handle says that its
/// group is barrier-free (`barrier_free`). Made once in a kernel, by all threads of the group's blocks. As long as the
/// kernel runs, the group begins epochs of the handle by this alone. If the handle's group has barriers, or the group
/// is not the handle's, `run` returns false, and the host's next call of the operation throws.
template <bool kReduces = false>
class BarrierFreeRun {
 public:
  template <class Group>
  TASUKI_DEVICE BarrierFreeRun(const BasicHandle<kReduces>& handle, const Group& group)
      : handle_(handle), block_(lowered::block_in(handle, handle.run, lowered::members_of(group))) {
    if (block_ < 0) return;
    if (!barrier_free(handle)) {
      lowered::give_up(handle.run, lowered::Why::has_barriers, -1, 0, 0, 0);
      block_ = -1;
      return;
    }
    found_ = lowered::look_up(handle, block_);
    turns_ = lowered::ListedWork().prepare(handle, block_, lowered::kRunPart);
  }
  BarrierFreeRun(const BarrierFreeRun&) = delete;
  BarrierFreeRun& operator=(const BarrierFreeRun&) = delete;

  TASUKI_DEVICE const BasicHandle<kReduces>& handle() const { return handle_; }

  /// By all threads of the block: an epoch, as `device::run`, and `beside()` by the last warp when what the block
  /// copies within the rank is there. False if either has failed.
  template <class Beside>
  TASUKI_DEVICE bool run(Word swaps, const Beside& beside) {
    if (block_ < 0) return false;
    found_.failed = lowered::own(handle_.run.failed);  // on its way until something is waited for
    lowered::Epoch e;
    e.block = block_;
    if (!lowered::enter(handle_, handle_.run, swaps, lowered::kRunPart, found_, e)) return false;
    found_.phases += 2;
    const bool good = lowered::work(lowered::BarrierFreeWork<Beside>(beside), turns_, handle_, handle_.run, e,
                                    lowered::kRunPart, true);
    return lowered::leave(handle_, handle_.run, e, good, 0);
  }

 private:
  const BasicHandle<kReduces>& handle_;
  int block_;
  lowered::Found found_{};
  lowered::ListedTurns turns_;
};

/// The old name, for one minor version.
template <bool kReduces = false>
using ApartRun [[deprecated("it is called BarrierFreeRun")]] = BarrierFreeRun<kReduces>;

}  // namespace tasuki::device
