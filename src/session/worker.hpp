// Worker: the process's progress thread. It drives operations while the user's threads compute.
//
// A process has one, which starts with its first task. It serves all tasks in turn and yields while they wait for
// peers. When no task has anything to do, it sleeps in the kernel until it is woken. A GPU cannot wake it, so if a task
// may be asked by a GPU it sleeps for moments only. While `Awake` objects exist it does not sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tasuki {

class Worker {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    /// Does what can be done now, without blocking. True if the task is active: it has something to do, or waits for
    /// peers. Called by one thread at a time: the worker's, and in `last_round` the caller's.
    virtual bool serve() = 0;
    /// Whether there is a request that `serve` has not seen yet. Then the worker does not go to sleep.
    virtual bool asked() const = 0;
    /// Whether requests may come without a call of `wake`, as those of a GPU do.
    virtual bool asked_silently() const { return false; }
  };

  static Worker& instance();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add(Task* task);     ///< Throws `Error` if the thread cannot be started.
  void remove(Task* task);  ///< After it returns the worker does not use the task any more.
  /// True once the thread has ended because the process is exiting; tasks are no longer served.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// Whether the thread has served all tasks once more within a moment. If not, a call of MPI does not return to it, or
  /// it sleeps because no task has anything to do. For messages about what did not end.
  bool goes_on() const;
  /// Called after a request to a task. Neither blocks nor allocates memory.
  void wake();
  /// Waits until the worker has ended its round, and then serves every task once. Tasks whose ranks are over withdraw
  /// their messages in it, so that the worker's next rounds call nothing of MPI.
  void last_round();

  /// While one exists, the worker does not sleep. For kernels that run on a GPU and make requests by themselves.
  class Awake {
   public:
    Awake();
    ~Awake();
    Awake(const Awake&) = delete;
    Awake& operator=(const Awake&) = delete;
  };

 private:
  Worker() = default;
  ~Worker() = default;
  void begin();
  void end();
  /// The thread holds the lock while it serves: whoever waits for it meanwhile gives up an interpreter's.
  std::unique_lock<std::mutex> locked();
  void loop();
  void sleep(int calls);

  std::mutex mutex_;
  std::vector<Task*> tasks_;
  std::atomic<int> silent_{0};  // number of tasks with `asked_silently`
  std::atomic<int> awake_{0};   // number of `Awake` objects
  std::atomic<int> asleep_{0};  // 1 while it sleeps or is about to
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> calls_{0};
  std::atomic<std::uint64_t> rounds_{0};
  std::thread thread_;
};

}  // namespace tasuki
