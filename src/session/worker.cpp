// Worker: see worker.hpp.
#include "session/worker.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <fmt/format.h>

#include "session/generation.hpp"
#include "session/wait_until.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kSpins = 200;      // rounds without an active task before sleeping
constexpr int kYields = 20000;   // the same before moments of sleep, if requests may come without `wake`
constexpr int kBusyRounds = 64;  // rounds between yields while a task waits for its peers
constexpr std::chrono::microseconds kMoment{50};
constexpr std::chrono::milliseconds kLook{1000};  // in which the thread has made a round, if it makes any

}  // namespace

Worker& Worker::instance() {
  // Never destroyed: operations may exist until the process ends, and use it.
  static Worker& worker = *new Worker;
  static const struct End {
    ~End() { worker.end(); }
  } end;
  return worker;
}

void Worker::end() {
  if (!Generation::forked()) {
    ending_.store(true);
    calls_.fetch_add(1);
    calls_.notify_one();
    if (thread_.joinable()) thread_.join();
  }  // a forked child has no such thread
  ended_.store(true, std::memory_order_release);
}

std::unique_lock<std::mutex> Worker::locked() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  const Unlocked unlocked(nullptr);
  lock.lock();
  return lock;
}

void Worker::add(Task* task) {
  const auto lock = locked();
  if (!thread_.joinable()) begin();  // first: a task that is in the list has a thread to serve it
  tasks_.push_back(task);
  if (task->asked_silently()) {
    ++silent_;
    calls_.fetch_add(1);  // wakes the thread if it sleeps: from now on it may sleep for moments only
    calls_.notify_one();
  }
}

void Worker::begin() {
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error& error) {
    throw Error(
        fmt::format("the progress thread of this process cannot be started: {}; let the process have more threads "
                    "(ulimit -u, or the limit of its container), or make the operation with engine 'inline'",
                    error.what()));
  }
}

void Worker::remove(Task* task) {
  const auto lock = locked();
  if (std::erase(tasks_, task) > 0 && task->asked_silently()) --silent_;
}

void Worker::last_round() {
  const auto lock = locked();
  for (Task* task : tasks_) task->serve();
}

bool Worker::goes_on() const {
  const auto end = std::chrono::steady_clock::now() + kLook;
  const std::uint64_t before = rounds_.load(std::memory_order_relaxed);
  // The round that is under way may have served the first task already.
  while (rounds_.load(std::memory_order_relaxed) < before + 2) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void Worker::wake() {
  // Both this call and `sleep` read and write `asleep_` in one step, so one of them comes second and sees what the
  // other did before: either this call sees that the thread sleeps, or the thread sees the request.
  if (asleep_.fetch_add(0, std::memory_order_acq_rel) != 0) {
    calls_.fetch_add(1, std::memory_order_release);
    calls_.notify_one();
  }
}

Worker::Awake::Awake() {
  Worker& worker = instance();
  worker.awake_.fetch_add(1);
  worker.calls_.fetch_add(1);  // wakes the thread if it sleeps
  worker.calls_.notify_one();
}

Worker::Awake::~Awake() {
  instance().awake_.fetch_sub(1);
}

void Worker::loop() {
  int quiet = 0;
  int busy = 0;
  while (!ending_.load(std::memory_order_relaxed)) {
    const int calls = calls_.load(std::memory_order_acquire);
    bool active = false;
    {
      const std::lock_guard lock(mutex_);
      for (Task* task : tasks_) active = task->serve() || active;
    }
    rounds_.fetch_add(1, std::memory_order_relaxed);
    if (active) {
      quiet = 0;
      if (++busy % kBusyRounds == 0) std::this_thread::yield();
      continue;
    }
    if (awake_.load(std::memory_order_relaxed) > 0) {
      if (++busy % kBusyRounds == 0) std::this_thread::yield();
      cpu_pause();
      continue;
    }
    if (++quiet < kSpins) {
      cpu_pause();
      continue;
    }
    if (silent_.load(std::memory_order_relaxed) > 0) {
      if (quiet < kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kMoment);
        quiet = kYields;
      }
      continue;
    }
    sleep(calls);
    quiet = 0;
  }
}

void Worker::sleep(int calls) {
  asleep_.exchange(1, std::memory_order_acq_rel);
  bool asked = false;
  {
    const std::lock_guard lock(mutex_);
    asked = std::any_of(tasks_.begin(), tasks_.end(), [](const Task* task) { return task->asked(); });
  }
  if (!asked && !ending_.load()) calls_.wait(calls, std::memory_order_acquire);
  asleep_.store(0, std::memory_order_relaxed);
}

}  // namespace tasuki
