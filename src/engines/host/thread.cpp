// Engine `thread`: the process's progress thread (worker.hpp) does everything while the caller computes.
//
//   start:  hand the executor to the thread, wake it if it sleeps
//   test, wait:  look whether it has handed it back
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "engines/engine.hpp"
#include "session/wait_until.hpp"
#include "session/worker.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

enum class State : int { idle, asked, running, done, stopping };

struct Job final : Worker::Task {
  Job(Executor& e, Runtime& r) : executor(e), runtime(r) {}

  bool serve() override {
    State current = state.load(std::memory_order_acquire);
    if (current == State::idle || current == State::done) return false;
    try {
      if (current == State::asked) {
        // Fails if the caller has asked to stop in the meantime.
        if (state.compare_exchange_strong(current, State::running, std::memory_order_acq_rel)) current = State::running;
      }
      if (current == State::stopping) {
        executor.cancel();
        state.store(State::done, std::memory_order_release);
        return true;
      }
      if (runtime.over()) throw Error(ErrorKind::rank_died, "its ranks cannot be reached any more");
      if (!executor.progress()) return true;
    } catch (...) {
      failure = std::current_exception();
      executor.cancel();  // nothing of the epoch may come later
    }
    state.store(State::done, std::memory_order_release);
    return true;
  }

  bool asked() const override { return state.load() == State::asked; }

  Executor& executor;
  Runtime& runtime;
  std::atomic<State> state{State::idle};
  std::exception_ptr failure;  // written before `done`
};

class Thread final : public Engine {
 public:
  Thread(Executor& executor, Runtime& runtime) : job_(executor, runtime) {
    const Unlocked unlocked(&runtime);
    Worker::instance().add(&job_);
  }
  ~Thread() override {
    const Unlocked unlocked(&job_.runtime);
    Worker::instance().remove(&job_);
  }

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
    const Unlocked unlocked(&job_.runtime);
    State state = job_.state.load();
    while (state == State::asked || state == State::running) {
      if (job_.state.compare_exchange_weak(state, State::stopping)) break;
    }
    Worker::instance().wake();
    while (job_.state.load() == State::stopping) {
      if (Worker::instance().ended()) job_.serve();
      std::this_thread::yield();
    }
    job_.state.store(State::idle);
    job_.failure = nullptr;
  }

 private:
  Job job_;
};

const EngineRegistration registration{"thread", true,
                                      [](Executor& executor, Runtime& runtime) -> std::unique_ptr<Engine> {
                                        return std::make_unique<Thread>(executor, runtime);
                                      }};

}  // namespace
}  // namespace tasuki
