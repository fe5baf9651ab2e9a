// Groups: which threads of a kernel make a call of tasuki::device together. Part of tasuki/kernel.cuh.
//
// On a GPU a block is a thread block. On a processor a block is one thread of the host, or a few, and so a kernel asks
// its group for `thread()` and `threads()` in place of threadIdx and blockDim, and calls `sync()` in place of
// __syncthreads. Every call that takes a group is made by all of its threads, with equal arguments, and gives all of
// them the same result.
#pragma once

#include "tasuki/kernel/impl/words.cuh"

#if !defined(__CUDACC__)
#include <stdexcept>
#include <string>
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

namespace detail {

/// Thrown by `sync` to end the other threads of a launch in which one has thrown.
struct Stopped {};

/// Thrown by `sync` if the threads of a group do not all make the same calls. The host adds the rank and the block.
struct Strayed : std::logic_error {
  using std::logic_error::logic_error;
};

/// The calls in which the threads of a group wait for each other.
enum class GroupCall { nothing, sync, all, broadcast };
inline const char* name_of(GroupCall call) {
  return call == GroupCall::sync ? "sync" : call == GroupCall::all ? "all" : "broadcast";
}

/// Counts the threads of a block that cannot proceed by themselves: they wait at a barrier, or have left the kernel.
/// When all are counted, none of their barriers will ever end. A thread that computes for long is not counted.
class Stuck {
 public:
  void more() { count_.fetch_add(1, std::memory_order_acq_rel); }
  void less(int threads) { count_.fetch_sub(threads, std::memory_order_acq_rel); }
  bool all(int threads) const { return count_.load(std::memory_order_acquire) == threads; }

 private:
  std::atomic<int> count_ = 0;
};

/// A barrier of the threads of a group, which also combines what they bring.
class ThreadBarrier {
 public:
  struct Result {
    bool all = true;
    Word word = 0;
  };
  /// By every thread of the group: thread 0's word, and whether all have said yes. Throws if another has come by
  /// another call, for on a GPU the two would be different kinds of barriers; and if others do not come, because all
  /// `block_threads` threads of the block are stuck.
  Result arrive_and_wait(GroupCall call, int threads, int thread, bool yes, Word word, const std::atomic<bool>& stopped,
                         Stuck& stuck, int block_threads) {
    const unsigned turn = turn_.load(std::memory_order_relaxed);  // it cannot change before this thread has come
    const bool first = thread == 0;
    GroupCall others = GroupCall::nothing;
    if (!call_.compare_exchange_strong(others, call, std::memory_order_relaxed) && others != call)
      throw Strayed("the threads of a group make different calls: thread " + std::to_string(thread) + " of " +
                    std::to_string(threads) + " is at `" + name_of(call) + "`, another at `" + name_of(others) +
                    "`; all threads of a group must take the same way");
    if (first) word_ = word;
    if (!yes) no_.store(true, std::memory_order_relaxed);
    if (come_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      result_ = {!no_.load(std::memory_order_relaxed), word_};
      no_.store(false, std::memory_order_relaxed);
      call_.store(GroupCall::nothing, std::memory_order_relaxed);
      come_.store(0, std::memory_order_relaxed);
      stuck.less(threads - 1);  // before they can count themselves again
      turn_.store(turn + 1, std::memory_order_release);
      return result_;
    }
    stuck.more();
    for (int polls = 0; turn_.load(std::memory_order_acquire) == turn; ++polls) {
      if (stopped.load(std::memory_order_relaxed)) throw Stopped();
      if (polls <= kSpins) continue;
      if (stuck.all(block_threads))
        throw Strayed("not all threads of a group came to `" + std::string(name_of(call)) + "`: thread " +
                      std::to_string(thread) + " of " + std::to_string(threads) +
                      " waits there, and the others of the block wait elsewhere or have left the kernel; all threads "
                      "of a group must take the same way");
      std::this_thread::yield();
    }
    return result_;
  }

 private:
  static constexpr int kSpins = 50;
  std::atomic<int> come_ = 0;
  std::atomic<unsigned> turn_ = 0;
  std::atomic<GroupCall> call_ = GroupCall::nothing;
  std::atomic<bool> no_ = false;
  Word word_ = 0;
  Result result_;
};

constexpr int kWarp = 2;          // threads of a warp on a processor
constexpr int kMostThreads = 32;  // of a block

/// What the threads of a block share.
struct CpuBlock {
  Stuck stuck;
  ThreadBarrier block;
  ThreadBarrier warps[kMostThreads / kWarp];
};

/// Who a thread of the host is in the kernel that it runs.
struct CpuThread {
  int thread = 0;
  int threads = 1;
  int block = 0;
  int blocks = 1;
  CpuBlock* shared = nullptr;  // null with one thread
  const std::atomic<bool>* stopped = nullptr;
};
inline thread_local CpuThread cpu_thread;

}  // namespace detail

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

}  // namespace tasuki::device
