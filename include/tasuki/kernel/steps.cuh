// Steps: blocks of a launch that wait for their neighbours, whose data they use, rather than for all blocks. Part of
// tasuki/kernel.cuh.
//
// A block counts the steps that it has ended in a word of its own. Before a step it looks at the words of its
// neighbours, a thread at each: once all of them have ended the step before, it begins. Who is a neighbour of whom the
// host says (tasuki::BlockNeighbours); each of two neighbours waits for the other.
//
// For two copies that take turns that is enough. In step n a block reads copy n - 1 and writes copy n, which is also
// copy n - 2.
//   * It reads what its neighbours wrote in step n - 1: they have ended it.
//   * It overwrites what its neighbours read in step n - 1, last of all, for in step n they read the other copy: they
//     have ended step n - 1.
//   * What it reads stays until it has: a neighbour writes copy n - 1 again in step n + 1, and begins that once this
//     block has ended step n.
// So neighbours are never more than one step from each other.
//
// With a halo that some blocks run barrier-free (KernelGroup::cells), blocks that read the same cells of the shadow
// are neighbours, too. Each of them stores what has arrived there. In step n they store the same values. What a slow
// one stores, it has stored before it ends its next step, and before that a quick one does not begin step n + 2, in
// which the same copy is stored again. What is copied within the rank is stored by the block whose cells it are, before
// it says that it has ended the step. `next_with`, `next_with_run` and `next_with_wait` do all of a step's end in this
// order: send, copy, say that the step has ended; then take what arrives while the last warp looks at the neighbours.
#pragma once

#include "tasuki/kernel/barrier_free_run.cuh"

namespace tasuki::device {

namespace lowered {
/// A failure's command, if a block did not end a step (PlanFailure::epoch): this less the block's number.
constexpr std::int32_t kNoStep = -2;
}  // namespace lowered

/// Which blocks of a launch are neighbours: a small plain value that is passed to a kernel. Its members are Tasuki's
/// own. Made by tasuki::BlockNeighbours.
struct Neighbours {
  std::uint32_t version;  // of the library; first in all versions
  std::uint32_t number;   // as a Heading has it
  Word* ended;            // by block: the steps that it has ended
  const int* lists;       // by block where its list begins, then the end of the last one, then the lists
  int blocks;             // of the launch
};

/// The steps of this block. Every thread has one, made once in a kernel: what it needs in each step is in registers.
class Steps {
 public:
  TASUKI_DEVICE explicit Steps(const Neighbours& neighbours) : neighbours_(neighbours) {
    if (neighbours.version != kKernelVersion) return;  // the handle's calls will report it
    const int* const lists = neighbours.lists;
    first_ = lists[this_block().block()];
    end_ = lists[this_block().block() + 1];
    const int at = first_ + looker();
    if (looks() && at < end_) mine_ = lists[at];
  }

  /// By all threads of the block: returns when all its neighbours have ended `steps` steps. Then its threads may read
  /// what these have written before. Numbers only grow, over launches too, and all blocks end the same ones. False, as
  /// all calls of the handle then, if the wait came to the deadline, or something has failed on this rank.
  template <bool kReduces>
  TASUKI_DEVICE bool wait(const BasicHandle<kReduces>& handle, Word steps) const {
    if (!detail::same_version(handle.heading)) return false;
    return this_block().all(!looks() || look(handle.run, steps));
  }

  /// By all threads of the block: it has ended `steps` steps. What its threads have written before, the neighbours may
  /// read that wait for this.
  TASUKI_DEVICE void end(Word steps) const {
    if (first_ == end_) return;  // nobody waits
    this_block().sync();
    if (looks()) signal_end(steps);
  }

  /// `end`, then `wait`: from a step to the next.
  template <bool kReduces>
  TASUKI_DEVICE bool next(const BasicHandle<kReduces>& handle, Word steps) const {
    end(steps);
    return wait(handle, steps);
  }

  /// The same in a block that runs a halo with the other blocks of `group`, and with an epoch of it: `end`, then `run`
  /// of the handle, then `wait`. Where the group is barrier-free (KernelGroup::cells) all three proceed at once: a
  /// step takes as long as the longest of them.
  ///
  /// `kBarrierFree`: only for handles of which `barrier_free` is true. The kernel's loop then has no code for others,
  /// and so needs fewer registers: let it have two loops, and choose between them.
  template <bool kBarrierFree = false, bool kReduces = false, class Group>
  TASUKI_DEVICE bool next_with_run(const BasicHandle<kReduces>& handle, const Group& group, Word steps,
                                   Word swaps = 0) const {
    return next_with<lowered::kRunPart, kBarrierFree>(handle, group, steps, swaps);
  }
  /// The same with what a BarrierFreeRun keeps of the handle, which the blocks then need not look up in every step.
  template <bool kReduces>
  TASUKI_DEVICE bool next_with(BarrierFreeRun<kReduces>& exchange, Word steps, Word swaps = 0) const {
    return exchange.run(swaps, [&] {
      signal_end(steps);
      return look(exchange.handle().run, steps);
    });
  }
  /// The same after `start` of the handle: with `wait` of it.
  template <bool kBarrierFree = false, bool kReduces = false, class Group>
  TASUKI_DEVICE bool next_with_wait(const BasicHandle<kReduces>& handle, const Group& group, Word steps,
                                    Word swaps = 0) const {
    return next_with<lowered::kWaitPart, kBarrierFree>(handle, group, steps, swaps);
  }

 private:
  // The last warp, which on a processor is a thread.
#if defined(TASUKI_LANES_ARE_THREADS)
  static constexpr int kMostLookers = 32;
#else
  static constexpr int kMostLookers = 1;
#endif

  TASUKI_DEVICE static int lookers() {
    const int threads = this_block().threads();
    return threads < kMostLookers ? threads : kMostLookers;
  }
  // The thread's number among them; below 0 if it is none.
  TASUKI_DEVICE static int looker() {
    return this_block().thread() - (this_block().threads() - lookers());
  }
  TASUKI_DEVICE static bool looks() {
    return looker() >= 0;
  }

  // By all that look, after a barrier of the block. The rest of the warp stands still meanwhile: neighbours are
  // looked at when the block's stores are there, and their words are left alone before.
  TASUKI_DEVICE void signal_end(Word steps) const {
    if (looker() == 0 && first_ != end_) detail::store_release_gpu(neighbours_.ended + this_block().block(), steps);
  }

  // By each that looks: whether its neighbours have ended so many steps, once they have.
  TASUKI_DEVICE bool look(const lowered::PlanRun& run, Word steps) const {
    bool good = true;
    int neighbour = mine_;
    for (int at = first_ + looker(); at < end_ && good; at += lookers()) {
      if (at >= first_ + lookers()) neighbour = neighbours_.lists[at];
      good = has_ended(run, neighbour, steps);
    }
    return good;
  }

  template <lowered::Part kPart, bool kBarrierFree, bool kReduces, class Group>
  TASUKI_DEVICE bool next_with(const BasicHandle<kReduces>& handle, const Group& group, Word steps, Word swaps) const {
    if constexpr (!kBarrierFree) {
      if (!barrier_free(handle)) {
        end(steps);
        return lowered::call<kPart>(handle, group, swaps) && wait(handle, steps);
      }
    }
    return lowered::call_beside<kPart>(handle, group, swaps, [&] {
      signal_end(steps);
      return look(handle.run, steps);
    });
  }

  TASUKI_DEVICE bool has_ended(const lowered::PlanRun& run, int neighbour, Word steps) const {
    const Word* const word = neighbours_.ended + neighbour;
    const std::int32_t who = lowered::kNoStep - neighbour;
    lowered::Deadline deadline(run, who, steps, lowered::Why::group_barrier);
    for (;;) {
      const Word ended = detail::load_acquire_gpu(word);
      if (ended >= steps) return true;
      if (!deadline.more(ended, steps)) return false;
    }
  }

  Neighbours neighbours_;
  int first_ = 0;  // of the block's list
  int end_ = 0;
  int mine_ = -1;  // the neighbour that this thread looks at first
};

}  // namespace tasuki::device
