// Where the blocks of a group meet. Part of tasuki/kernel.cuh.
//
// A word counts blocks that have come. Coming and waiting are two steps, so that a block which has nothing to do goes
// on. On a GPU a block comes with one release, by a thread, when all its threads have met: what they have written is
// there for those that see the count. That takes a microsecond from the first block to the last.
#pragma once

#include "tasuki/kernel/interpret.cuh"
#include "tasuki/kernel/standard.hpp"

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

/// By one thread, when the block's threads have met: the block comes, for so many, and `all` is what the word then
/// counts if it is the group's only one.
TASUKI_DEVICE void come(Word* word, Word all, Word shares, int blocks) {
  if (blocks == 1) {
    set_own(word, all);
  } else {
    detail::change_release_gpu(word, shares);
  }
}

/// By all threads of a block: waits until the word counts so many. `good`: false on a thread that has found something
/// wrong before.
TASUKI_DEVICE bool all_have_come(const PlanRun& l, const Word* word, Word all, std::uint64_t epoch, bool good) {
  const BlockGroup block = this_block();
  if (block.thread() == 0 && good) {
    const std::int32_t none = -1;
    Deadline deadline(l, none, epoch, Why::meeting);
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
