// The loop of every wait. The short spin is inline; the slow part (clock, liveness, deadline) is in wait_until.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <string>

#include "memory/gpu.hpp"
#include "session/runtime.hpp"
#include "session/wait_clock.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Seconds after which a wait in a kernel gives up. The host waits for the kernel until the context's deadline, and
/// hears before it what the kernel has waited for.
inline double seconds_in_kernel(const Runtime& runtime) {
  constexpr double kShareOfDeadline = 0.9;
  constexpr double kLongest = 1e6;
  return std::min(runtime.deadline, kLongest) * kShareOfDeadline;
}

/// While one exists, this thread does without what wait hooks give up: an interpreter's lock. For waits, and wherever
/// this thread waits for the progress thread, which may be in a function of the interpreter's.
class Unlocked {
 public:
  explicit Unlocked(Runtime* runtime);
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  void look() const;  ///< May throw `Interruption`.

 private:
  Runtime* runtime_;
  void* token_ = nullptr;  // belongs to the wait hooks
};

/// The slow part of a wait: what it does between polls after it has spun for a while.
class SlowWait {
 public:
  /// For at most `deadline` seconds. `operation`: see `Liveness::failure`.
  SlowWait(Runtime& runtime, std::span<const int> needs, double deadline, std::uint64_t operation);

  /// Yields the core. Now and then drives the active operations, and checks the clock and the ranks in `needs`. False
  /// once the deadline has passed. Also false a while after a rank was found to have failed: data that it sent before
  /// may still arrive.
  bool go_on();
  /// Marks this rank as having given up and throws.
  [[noreturn]] void fail(const std::string& what);

 private:
  Runtime& runtime_;
  std::span<const int> needs_;
  std::uint64_t operation_;
  WaitClock clock_;
  double next_look_;  // by `clock_`
  double end_;
  unsigned turns_ = 0;
  std::string why_;
  Unlocked unlocked_;
};

/// State that an operation keeps between calls of `test`, so that a loop of tests fails as a wait does. Time between
/// two tests counts only in part, so a long computation between them is no failure.
class TestWatch {
 public:
  /// Called after a test of this epoch that found it incomplete. Drives the active operations, checks the clock, and
  /// now and then the ranks in `needs`. Yields the core if nothing came between two tests: what they wait for may be
  /// done by a thread of this process that has none. False once a wait would have given up: then test once more, and
  /// call `fail`.
  bool go_on(Runtime& runtime, std::span<const int> needs, std::uint64_t epoch, std::uint64_t operation);
  /// Marks this rank as having given up and throws.
  [[noreturn]] void fail(Runtime& runtime, const std::string& what) const;

 private:
  std::uint64_t epoch_ = 0;
  double last_ = 0;    // time of the last call of `go_on`
  double left_ = 0;    // time of its end
  double waited_ = 0;  // seconds that count towards the deadline
  double next_look_ = 0;
  double end_ = 0;  // time to give up, set when a rank was found to have failed
  std::string why_;
};

/// Marks this rank as having given up and throws: the GPU has failed while `what`. Names the rank whose death that may
/// follow from.
[[noreturn]] void fail_by_gpu(Runtime& runtime, std::span<const int> needs, const std::string& what,
                              const GpuFailure& failure);
/// Why a kernel has left a wait: a rank has died or given up, or the deadline has passed.
ErrorKind kind_of_ended_wait(Runtime& runtime);

/// The loop. `operation`: what `needs` are needed for, or 0 (`Liveness::failure`).
template <class Poll, class What>
void wait_for(Runtime& runtime, std::span<const int> needs, double deadline, std::uint64_t operation, Poll&& poll,
              What&& what) {
  try {
    for (int spin = runtime.spins(); spin > 0; --spin) {
      if (poll()) return;
      cpu_pause();
    }
    SlowWait wait(runtime, needs, deadline, operation);
    for (bool more = true;; more = wait.go_on()) {
      if (poll()) return;  // once more after the deadline
      if (!more) wait.fail(what());
    }
  } catch (const Interruption&) {
    throw;  // not a failure by itself: the caller decides what it means
  } catch (const GpuFailure& failure) {
    fail_by_gpu(runtime, needs, what(), failure);
  } catch (const std::exception& error) {
    runtime.fail(error.what());
    throw;
  }
}

template <class Poll, class What>
void wait_until(Runtime& runtime, std::span<const int> needs, Poll&& poll, What&& what) {
  wait_for(runtime, needs, runtime.deadline, 0, poll, what);
}

template <class Poll, class What>
void wait_without_deadline(Runtime& runtime, std::span<const int> needs, Poll&& poll, What&& what) {
  wait_for(runtime, needs, std::numeric_limits<double>::infinity(), 0, poll, what);
}

}  // namespace tasuki
