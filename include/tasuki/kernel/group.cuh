// Groups: which threads of a kernel make a call of tasuki::device together. Part of tasuki/kernel.cuh.
//
// On a GPU a block is a thread block. On a processor a block is one thread of the host, or a few, and so a kernel asks
// its group for `thread()` and `threads()` in place of threadIdx and blockDim, and calls `sync()` in place of
// __syncthreads. Every call that takes a group is made by all of its threads, with equal arguments, and gives all of
// them the same result.
#pragma once

#include "tasuki/kernel/impl/words.cuh"
#if !defined(__CUDACC__)
#include "tasuki/kernel/impl/cpu_threads.cuh"
#endif

namespace tasuki::device {

/// One thread by itself.
class ThreadGroup {
 public:
  TASUKI_DEVICE int thread() const { return 0; }
  TASUKI_DEVICE int threads() const { return 1; }
  TASUKI_DEVICE void sync() const {}
  TASUKI_DEVICE bool all(bool mine) const { return mine; }
  TASUKI_DEVICE Word broadcast(Word mine) const { return mine; }
};

#if defined(__CUDACC__)

namespace detail {
TASUKI_DEVICE int linear_thread() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
TASUKI_DEVICE int linear_threads() {
  return static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
}
}  // namespace detail

/// The threads of a warp: 32, or what is left for a block's last.
class WarpGroup {
 public:
  TASUKI_DEVICE int thread() const { return detail::linear_thread() % 32; }
  TASUKI_DEVICE int threads() const {
    const int left = detail::linear_threads() - detail::linear_thread() / 32 * 32;
    return left < 32 ? left : 32;
  }
  TASUKI_DEVICE int warp() const { return detail::linear_thread() / 32; }  ///< its number in the block
  TASUKI_DEVICE int warps() const { return (detail::linear_threads() + 31) / 32; }
  TASUKI_DEVICE void sync() const { __syncwarp(mask()); }
  TASUKI_DEVICE bool all(bool mine) const { return __all_sync(mask(), mine ? 1 : 0) != 0; }
  TASUKI_DEVICE Word broadcast(Word mine) const { return __shfl_sync(mask(), mine, 0); }

 private:
  TASUKI_DEVICE unsigned mask() const { return threads() == 32 ? ~0u : (1u << threads()) - 1; }
};

/// The threads of a block.
class BlockGroup {
 public:
  TASUKI_DEVICE int thread() const { return detail::linear_thread(); }
  TASUKI_DEVICE int threads() const { return detail::linear_threads(); }
  TASUKI_DEVICE int block() const {
    return static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  }
  TASUKI_DEVICE int blocks() const { return static_cast<int>(gridDim.x * gridDim.y * gridDim.z); }
  TASUKI_DEVICE void sync() const {
    gather_warp();
    __syncthreads();
  }
  /// True to all if `mine` is true on all threads. A `sync`, too.
  TASUKI_DEVICE bool all(bool mine) const {
    gather_warp();
    return __syncthreads_and(mine ? 1 : 0) != 0;
  }
  /// What thread 0 has. A `sync`, too.
  TASUKI_DEVICE Word broadcast(Word mine) const {
    __shared__ Word from_first;
    if (thread() == 0) from_first = mine;
    sync();
    const Word value = from_first;
    sync();
    return value;
  }

 private:
  // A block's barrier counts warps, not threads. Code of nvcc 13.0 has been seen to let thread 0 reach it after the
  // other threads of its warp. The warp then counts twice, and the next barrier of another kind is an illegal
  // instruction. So the threads of each warp wait for each other first.
  TASUKI_DEVICE static void gather_warp() { __syncwarp(); }
};

#else

class WarpGroup {
 public:
  int thread() const { return detail::cpu_thread.thread % detail::kWarp; }
  int threads() const {
    const int left = detail::cpu_thread.threads - warp() * detail::kWarp;
    return left < detail::kWarp ? left : detail::kWarp;
  }
  int warp() const { return detail::cpu_thread.thread / detail::kWarp; }
  int warps() const { return (detail::cpu_thread.threads + detail::kWarp - 1) / detail::kWarp; }
  void sync() const { arrive_and_wait(detail::GroupCall::sync, true, 0); }
  bool all(bool mine) const { return arrive_and_wait(detail::GroupCall::all, mine, 0).all; }
  Word broadcast(Word mine) const { return arrive_and_wait(detail::GroupCall::broadcast, true, mine).word; }

 private:
  detail::ThreadBarrier::Result arrive_and_wait(detail::GroupCall call, bool yes, Word word) const {
    const auto& me = detail::cpu_thread;
    if (threads() == 1) return {yes, word};
    return me.shared->warps[warp()].arrive_and_wait(call, threads(), thread(), yes, word, *me.stopped, me.shared->stuck,
                                                    me.threads);
  }
};

class BlockGroup {
 public:
  int thread() const { return detail::cpu_thread.thread; }
  int threads() const { return detail::cpu_thread.threads; }
  int block() const { return detail::cpu_thread.block; }
  int blocks() const { return detail::cpu_thread.blocks; }
  void sync() const { arrive_and_wait(detail::GroupCall::sync, true, 0); }
  bool all(bool mine) const { return arrive_and_wait(detail::GroupCall::all, mine, 0).all; }
  Word broadcast(Word mine) const { return arrive_and_wait(detail::GroupCall::broadcast, true, mine).word; }

 private:
  detail::ThreadBarrier::Result arrive_and_wait(detail::GroupCall call, bool yes, Word word) const {
    const auto& me = detail::cpu_thread;
    if (me.threads == 1) return {yes, word};
    return me.shared->block.arrive_and_wait(call, me.threads, me.thread, yes, word, *me.stopped, me.shared->stuck,
                                            me.threads);
  }
};

#endif

/// All blocks of the launch, for `barrier`.
class GridGroup {
 public:
  TASUKI_DEVICE BlockGroup block() const { return {}; }
};

TASUKI_DEVICE ThreadGroup this_thread() {
  return {};
}
TASUKI_DEVICE WarpGroup this_warp() {
  return {};
}
TASUKI_DEVICE BlockGroup this_block() {
  return {};
}
TASUKI_DEVICE GridGroup this_grid() {
  return {};
}

/// Some blocks of the launch that run operations together.
class BlocksGroup {
 public:
  TASUKI_DEVICE BlocksGroup(int first, int count) : first_(first), count_(count) {}
  TASUKI_DEVICE int first() const { return first_; }
  TASUKI_DEVICE int blocks() const { return count_; }
  TASUKI_DEVICE bool has_this_block() const {
    const int me = this_block().block();
    return me >= first_ && me < first_ + count_;
  }

 private:
  int first_;
  int count_;
};

/// Blocks `first` to `first + count - 1` of the launch. Only they call what takes the group.
TASUKI_DEVICE BlocksGroup blocks(int first, int count) {
  return {first, count};
}

}  // namespace tasuki::device
