// Worker: the process's progress thread, for what must go on while the user's threads compute.
//
// There is one a process, started with its first task. It serves all tasks in turn, yields while they wait for peers,
// and sleeps in the kernel when none has anything to do: until it is woken, or, if a GPU asks, which cannot wake it,
// for moments. While kernels run on a GPU that ask it by themselves, it does not sleep.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace tasuki {

class Worker {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    /// Does what can be done now, without blocking. True if there was something to do. Called by the worker only.
    virtual bool serve() = 0;
    /// Whether somebody has asked for something that `serve` has not seen; then the worker does not go to sleep.
    virtual bool asked() const = 0;
    /// Whether it is asked without a call of `wake`.
    virtual bool asked_silently() const { return false; }
  };

  static Worker& instance();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add(Task* task);
  void remove(Task* task);  ///< Afterwards the worker does not touch it any more.
  /// The process is ending, and the thread has ended: nobody serves tasks any more.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// To be called after a task has been asked for something. Neither blocks nor allocates.
  void wake();

  /// As long as one of these lives, the worker does not go to sleep: kernels run on a GPU that ask it by themselves.
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
  void end();
  void loop();
  void sleep(int calls);

  std::mutex mutex_;
  std::vector<Task*> tasks_;
  std::atomic<int> silent_{0};  // tasks that are asked silently
  std::atomic<int> awake_{0};   // who wants it awake
  std::atomic<bool> asleep_{false};
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> calls_{0};
  std::thread thread_;
};

}  // namespace tasuki
