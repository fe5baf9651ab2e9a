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
// So neighbours are never more than one step apart.
#pragma once

#include "tasuki/kernel/plan.cuh"

namespace tasuki::device {

namespace lowered {
/// A failure's command, if a block did not end a step (PlanFailure::epoch): this less the block's number.
constexpr std::int32_t kNoStep = -2;
}  // namespace lowered

/// Which blocks of a launch are neighbours: a small plain value that is passed to a kernel. Its members are Tasuki's
/// own. Made by tasuki::BlockNeighbours.
struct Neighbours {
  std::uint32_t version;  // of the library; first in all versions
  Word* ended;            // by block: the steps that it has ended
  const int* lists;       // by block where its list begins, then the end of the last one, then the lists
  int blocks;             // of the launch
};

/// The steps of this block. Every thread has one, made once in a kernel: what it needs in each step is in registers.
class Steps {
 public:
  TASUKI_DEVICE explicit Steps(const Neighbours& neighbours) : neighbours_(neighbours) {
    if (neighbours.version != kKernelVersion) return;  // which the handle's calls will tell
    const int* const lists = neighbours.lists;
    first_ = lists[this_block().block()];
    end_ = lists[this_block().block() + 1];
    if (first_ + this_block().thread() < end_) mine_ = lists[first_ + this_block().thread()];
  }

  /// By all threads of the block: returns when all its neighbours have ended `steps` steps. Then its threads may read
  /// what these have written before. Numbers only grow, over launches too, and all blocks end the same ones. False, as
  /// all calls of the handle then, if the wait came to the deadline, or something has failed on this rank.
  template <bool kReduces>
  TASUKI_DEVICE bool wait(const BasicHandle<kReduces>& handle, Word steps) const {
    if (!detail::same_version(handle.heading)) return false;
    const BlockGroup block = this_block();
    bool good = true;
    int neighbour = mine_;
    for (int at = first_ + block.thread(); at < end_ && good; at += block.threads()) {
      if (at >= first_ + block.threads()) neighbour = neighbours_.lists[at];
      good = has_ended(handle.run, neighbour, steps);
    }
    return block.all(good);
  }

  /// By all threads of the block: it has ended `steps` steps. What its threads have written before, the neighbours may
  /// read that wait for this.
  TASUKI_DEVICE void end(Word steps) const {
    if (first_ == end_) return;  // nobody waits
    this_block().sync();
    if (this_block().thread() == 0) detail::store_release_gpu(neighbours_.ended + this_block().block(), steps);
  }

 private:
  TASUKI_DEVICE bool has_ended(const lowered::PlanRun& run, int neighbour, Word steps) const {
    const Word* const word = neighbours_.ended + neighbour;
    const std::int32_t who = lowered::kNoStep - neighbour;
    lowered::Patience patience(run, who, steps, lowered::Why::meeting);
    for (;;) {
      const Word ended = detail::load_acquire_gpu(word);
      if (ended >= steps) return true;
      if (!patience.more(ended, steps)) return false;
    }
  }

  Neighbours neighbours_;
  int first_ = 0;  // of the block's list
  int end_ = 0;
  int mine_ = -1;  // the neighbour that this thread looks at first
};

}  // namespace tasuki::device
