// Engine `thread`: a progress thread of the process does everything while the caller computes.
//
//   start:  hand the executor to the thread, wake it if it sleeps        test, wait:  look whether it has handed it
//   back
//
// There is one thread a process, made with the first operation that wants it. It spins briefly between commands, yields
// while it waits for peers, and sleeps in the kernel when no operation is active.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engines/engine.hpp"
#include "topology/runtime.hpp"

namespace tasuki {
namespace {

constexpr int kSpins = 200;      // rounds without an active job before sleeping
constexpr int kBusyRounds = 64;  // rounds between yields while a job waits for its peers

enum class State : int { idle, asked, running, done, stopping };

struct Job {
  explicit Job(Executor& e) : executor(e) {}
  Executor& executor;
  std::atomic<State> state{State::idle};
  std::exception_ptr failure;  // written before `done`
};

class Worker {
 public:
  static Worker& instance() {
    static Worker worker;
    return worker;
  }

  void add(Job* job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  }

  void remove(Job* job) {
    const std::lock_guard lock(mutex_);
    std::erase(jobs_, job);
  }

  void wake() {
    // Pairs with the fence in `sleep`: either this sees that the thread sleeps, or the thread sees the job.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed)) {
      calls_.fetch_add(1, std::memory_order_release);
      calls_.notify_one();
    }
  }

  ~Worker() {
    ending_.store(true);
    calls_.fetch_add(1);
    calls_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // Runs one job a little; true if it is active.
  static bool serve(Job& job) {
    State state = job.state.load(std::memory_order_acquire);
    if (state == State::idle || state == State::done) return false;
    try {
      if (state == State::asked) {
        // Fails if the caller has asked to stop meanwhile.
        if (job.state.compare_exchange_strong(state, State::running, std::memory_order_acq_rel)) state = State::running;
      }
      if (state == State::stopping) {
        job.executor.cancel();
        job.state.store(State::done, std::memory_order_release);
        return true;
      }
      if (!job.executor.progress()) return true;
    } catch (...) {
      job.failure = std::current_exception();
    }
    job.state.store(State::done, std::memory_order_release);
    return true;
  }

  void loop() {
    int quiet = 0;
    int busy = 0;
    while (!ending_.load(std::memory_order_relaxed)) {
      const int calls = calls_.load(std::memory_order_acquire);
      bool active = false;
      {
        const std::lock_guard lock(mutex_);
        for (Job* job : jobs_) active = serve(*job) || active;
      }
      if (active) {
        quiet = 0;
        if (++busy % kBusyRounds == 0) std::this_thread::yield();
        continue;
      }
      if (++quiet < kSpins) {
        cpu_pause();
        continue;
      }
      sleep(calls);
      quiet = 0;
    }
  }

  void sleep(int calls) {
    asleep_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool asked = false;
    {
      const std::lock_guard lock(mutex_);
      asked = std::any_of(jobs_.begin(), jobs_.end(), [](const Job* job) { return job->state.load() == State::asked; });
    }
    if (!asked && !ending_.load()) calls_.wait(calls, std::memory_order_acquire);
    asleep_.store(false, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::vector<Job*> jobs_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> ending_{false};
  std::atomic<int> calls_{0};
  std::thread thread_;
};

class Thread final : public Engine {
 public:
  explicit Thread(Executor& executor) : job_(executor) { Worker::instance().add(&job_); }
  ~Thread() override { Worker::instance().remove(&job_); }

  void start() override {
    job_.executor.begin();
    job_.state.store(State::asked, std::memory_order_release);
    Worker::instance().wake();
  }

  bool test() override {
    const State state = job_.state.load(std::memory_order_acquire);
    if (state == State::idle) return true;
    if (state != State::done) return false;
    job_.state.store(State::idle, std::memory_order_relaxed);
    if (job_.failure) std::rethrow_exception(std::exchange(job_.failure, nullptr));
    return true;
  }

  void stop() override {
    State state = job_.state.load();
    while (state == State::asked || state == State::running) {
      if (job_.state.compare_exchange_weak(state, State::stopping)) break;
    }
    Worker::instance().wake();
    while (job_.state.load() == State::stopping) std::this_thread::yield();
    job_.state.store(State::idle);
    job_.failure = nullptr;
  }

 private:
  Job job_;
};

const EngineRegistration registration{"thread", true, [](Executor& executor, Runtime&) -> std::unique_ptr<Engine> {
                                        return std::make_unique<Thread>(executor);
                                      }};

}  // namespace
}  // namespace tasuki
