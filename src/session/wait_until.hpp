// The loop of every wait: a small hot spin here, and the slow part (clock, liveness, deadline) out of line.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What a wait does between polls once it has spun for a little.
class PatientWait {
 public:
  PatientWait(Runtime& runtime, std::span<const int> needs);
  ~PatientWait();
  PatientWait(const PatientWait&) = delete;
  PatientWait& operator=(const PatientWait&) = delete;

  /// Lets others run; now and then drives the active operations and looks at the clock and at the ranks needed. False
  /// at the deadline, or some time after a rank was found to have failed: what it did before may still be on its way.
  bool go_on();
  /// Marks this rank as having given up and throws.
  [[noreturn]] void fail(const std::string& what);

 private:
  Runtime& runtime_;
  std::span<const int> needs_;
  double next_look_;
  double end_;
  unsigned turns_ = 0;
  std::string why_;
  void* token_ = nullptr;  // the hooks' own
};

/// What calls of `test` keep between them, so that a loop of them ends as a wait does. Time that the caller spends
/// elsewhere counts little, so that computing for long between two tests is no failure.
class TestWatch {
 public:
  /// After a test of this epoch that found no end: drives the active operations and looks at the clock and now and then
  /// at the ranks needed. False once a wait would have given up: test once more, then `fail`.
  bool go_on(Runtime& runtime, std::span<const int> needs, std::uint64_t epoch);
  /// Marks this rank as having given up and throws.
  [[noreturn]] void fail(Runtime& runtime, const std::string& what) const;

 private:
  std::uint64_t epoch_ = 0;
  double last_ = 0;    // when `go_on` was called
  double waited_ = 0;  // seconds
  double next_look_ = 0;
  double end_ = 0;  // once a rank was found to have failed
  std::string why_;
};

template <class Poll, class What>
void wait_until(Runtime& runtime, std::span<const int> needs, Poll&& poll, What&& what) {
  try {
    for (int spin = runtime.spins(); spin > 0; --spin) {
      if (poll()) return;
      cpu_pause();
    }
    PatientWait wait(runtime, needs);
    for (bool more = true;; more = wait.go_on()) {
      if (poll()) return;  // also after the last look at the clock: this process may have been stopped for long
      if (!more) wait.fail(what());
    }
  } catch (const Interruption&) {
    throw;  // what that means for the ranks, the caller knows
  } catch (const std::exception& error) {
    runtime.fail(error.what());
    throw;
  }
}

}  // namespace tasuki
