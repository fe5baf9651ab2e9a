// Handles: a kernel starts and finishes any persistent operation by itself, with the plan and the protocols by which
// the host runs it. Part of tasuki/kernel.cuh. A handle is made by Operation::device (tasuki/operation.hpp).
//
// A group of blocks runs an epoch together: all threads of all its blocks call start and wait, or run, with equal
// arguments. The group is the one for which the handle was made: so many blocks of so many threads.
//
// An epoch has two group barriers, one at its beginning and one at its end.
//   * Beginning: every block arrives, which says that what its threads have written may be sent. Only a block that has
//     something to do waits for the others.
//   * End: the blocks arrive that have done something (in `wait` all blocks, for the user may have computed since
//     `start`), and all blocks wait.
// If no block has anything to do, `run` is one group barrier. A word for each block counts the barriers that it has
// passed, so that a block knows the epoch's number without asking the others.
//
// Neither barrier can be left out, unless the host knows which blocks write and read which cells:
//   * Before the first, another block may not have written yet what this one sends, or may still read the cells that
//     this one overwrites with what arrives. LL lines (lines.cuh) order both between ranks, but they do not order
//     the user's own loads and stores.
//   * Before the last, another block may not have stored yet what has arrived, which this one's threads read next, or
//     may still read what it sends, which they overwrite next.
// A group of one block needs neither. For a halo the user can say which block computes which cells
// (KernelGroup::cells). Then each block sends its own cells and receives the shadow cells that its own cells read, and
// the group is barrier-free. A block orders its accesses to other blocks' cells by waiting for its neighbours
// (steps.cuh), which a stencil does in any case.
//
// `Handle` is the handle of any operation that only moves data, `ReducingHandle` of one that combines elements.
//
// Errors. A call returns false if the group is not the handle's, if a start or a wait is out of turn, if its deadline
// has passed, if the host has aborted, or if any call of this handle on this rank has failed before. The first failure
// is kept, and the host throws it. After false: leave the kernel.
//
// Deadline. Every wait ends after nine tenths of the context's deadline, and at once when the host has seen a rank die.
#pragma once

#include "tasuki/kernel/impl/epochs.cuh"

namespace tasuki::device {

/// Begins the next epoch, as Operation::start does on the host: permits the peers to write, and sends what leaves this
/// rank. What is sent must not change before `wait`. `swaps`: how often the kernel has swapped the operation's fields
/// with two copies since the handle was made. `kBarrierFree`: only for handles of which `barrier_free` is true; the
/// kernel then has no code for others.
/// Who calls: all threads of all blocks of the group. Order: what they have written before is sent; in a barrier-free
/// group each block sends its own cells. Waits for the other blocks where this one has something to send.
template <bool kBarrierFree = false, bool kReduces = false, class Group>
TASUKI_DEVICE bool start(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  if constexpr (kBarrierFree) return lowered::call_listed<lowered::kStartPart>(handle, group, swaps);
  return lowered::call<lowered::kStartPart>(handle, group, swaps);
}

/// Returns when the epoch that `start` began has ended on this rank. `swaps` as at the start.
/// Who calls: all threads of all blocks of the group. Order: all of them may read what has arrived, and change what was
/// sent; in a barrier-free group each block the cells of its own and their shadow.
template <bool kReduces, class Group>
TASUKI_DEVICE bool wait(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  return lowered::call<lowered::kWaitPart>(handle, group, swaps);
}

/// `start`, then `wait`, in one call that is quicker than the two.
template <bool kReduces, class Group>
TASUKI_DEVICE bool run(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  return lowered::call<lowered::kRunPart>(handle, group, swaps);
}

/// True if the handle's group is barrier-free (KernelGroup::cells): its blocks do not wait for all others in an epoch.
/// Who calls: any thread, by itself.
template <bool kReduces>
TASUKI_DEVICE bool barrier_free(const BasicHandle<kReduces>& handle) {
  return detail::same_version(handle.heading) && handle.only_moves == lowered::OnlyMoves::barrier_free;
}

/// The old name, for one minor version.
template <bool kReduces>
[[deprecated("use device::barrier_free")]] TASUKI_DEVICE bool apart(const BasicHandle<kReduces>& handle) {
  return barrier_free(handle);
}

/// True if a call of the handle has failed on this rank, or the host has ended its kernels' waits. As `failed` of a
/// Team: any thread may call it, and it does not wait.
template <bool kReduces>
TASUKI_DEVICE bool failed(const BasicHandle<kReduces>& handle) {
  if (!detail::same_version(handle.heading) || lowered::failed(handle.run)) return true;
  if (!detail::stop_requested(handle.run.stop, detail::now_ns())) return false;
  lowered::give_up(handle.run, lowered::Why::asked, -1, 0, 0, 0);  // so that the other threads know it
  return true;
}

}  // namespace tasuki::device
