// Threads of the host that run a kernel: who each of them is, and how those of a group wait for each other. Part of
// tasuki/kernel.cuh.
#pragma once

#include <stdexcept>
#include <string>

#include "tasuki/kernel/impl/words.cuh"

namespace tasuki::device {

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

}  // namespace tasuki::device
