// Group barrier: the blocks of a group wait for each other. Part of tasuki/kernel.cuh.
//
// A word counts the blocks that have arrived. Arriving and waiting are two calls, so that a block which has nothing to
// do need not wait. On a GPU one thread arrives for its block, by a release after a barrier of the block: whoever
// acquires the count sees what all threads of the block have written. From the first block's arrival to the last
// block's return it takes about a microsecond.
#pragma once

#include "tasuki/kernel/impl/interpret.cuh"
#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki::device::lowered {

#if defined(__CUDACC__)
// For words that only this block writes while the kernel runs, in front of a barrier of the block.
TASUKI_DEVICE Word own(const Word* p) {
  return detail::load_near(p);
}
TASUKI_DEVICE std::uint32_t own(const std::uint32_t* p) {
  return detail::load_near(p);
}
TASUKI_DEVICE void set_own(Word* p, Word value) {
  *p = value;
}
#else
inline Word own(const Word* p) {
  return detail::load_relaxed(p);
}
inline std::uint32_t own(const std::uint32_t* p) {
  return look(p);
}
inline void set_own(Word* p, Word value) {
  detail::store_relaxed(p, value);
}
#endif

/// By one thread, after a barrier of the block: adds `shares` to the blocks that have arrived. If the group has one
/// block, the word becomes `all`.
TASUKI_DEVICE void arrive(Word* word, Word all, Word shares, int blocks) {
  if (blocks == 1) {
    set_own(word, all);
  } else {
    detail::change_release_gpu(word, shares);
  }
}

/// By all threads of a block: waits until the word counts so many. `good`: false on a thread that has found something
/// wrong before.
TASUKI_DEVICE bool wait_for_all(const PlanRun& l, const Word* word, Word all, std::uint64_t epoch, bool good) {
  const BlockGroup block = this_block();
  if (block.thread() == 0 && good) {
    const std::int32_t none = -1;
    Deadline deadline(l, none, epoch, Why::group_barrier);
    for (;;) {
      const Word count = detail::load_acquire_gpu(word);
      if (count >= all) break;
      good = deadline.more(count, all);
      if (!good) break;
    }
  }
  return block.all(good);
}

}  // namespace tasuki::device::lowered
