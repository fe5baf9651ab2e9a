// The slow part of every wait: yields, looks at other ranks, and gives up at the deadline.
#include "session/wait_until.hpp"

#include <sched.h>

#include <algorithm>

#include <fmt/format.h>

#include "tasuki/error.hpp"
#include "tasuki/wait_hooks.hpp"

namespace tasuki {
namespace {

constexpr double kLookInterval = 2e-3;     // seconds between looks at the other ranks
constexpr double kLookShare = 20;          // looks take at most 1/20 of the time; with many ranks one look takes longer
constexpr double kGrace = 0.3;             // seconds in which data that a failed rank has sent may still arrive
constexpr double kFewestTests = 10;        // unsuccessful tests before the deadline can pass
constexpr unsigned kTurnsPerDrive = 4;     // yields between two calls that drive the other operations
constexpr double kNothingBetween = 20e-6;  // seconds between two tests in which a caller does nothing else

WaitHooks hooks;

// Throws. `why` names a rank that has failed; empty: the deadline has passed.
[[noreturn]] void give_up(Runtime& runtime, const std::string& why, const std::string& what) {
  if (!why.empty()) {
    runtime.fail(why, ErrorKind::rank_died);
    throw Error(ErrorKind::rank_died, fmt::format("{}: {}", what, why));
  }
  const std::string gave_up = fmt::format("the deadline of {:g} s has passed", runtime.deadline);
  runtime.fail(fmt::format("on rank {} {}: {}", runtime.rank(), gave_up, what), ErrorKind::deadline);
  throw Error(ErrorKind::deadline,
              fmt::format("{}: {}; TASUKI_DEADLINE or Context::set_deadline allow more", what, gave_up));
}

}  // namespace

void fail_by_gpu(Runtime& runtime, std::span<const int> needs, const std::string& what, const GpuFailure& failure) {
  const std::string dead = runtime.liveness().failure_soon(needs);
  const ErrorKind kind = dead.empty() ? failure.kind() : ErrorKind::rank_died;
  runtime.fail(dead.empty() ? failure.what() : dead, kind);
  throw Error(kind, fmt::format("{}: {}{}{}", what, failure.what(), dead.empty() ? "" : "; ", dead));
}

ErrorKind kind_of_ended_wait(Runtime& runtime) {
  return runtime.liveness().failure(runtime.everyone()).empty() ? ErrorKind::deadline : ErrorKind::rank_died;
}

void set_wait_hooks(const WaitHooks& wanted) {
  hooks = wanted;
}

Unlocked::Unlocked(Runtime* runtime) : runtime_(runtime) {
  if (hooks.begin != nullptr) token_ = hooks.begin(runtime_);
}

Unlocked::~Unlocked() {
  if (hooks.end != nullptr) hooks.end(runtime_, token_);
}

void Unlocked::look() const {
  if (hooks.look != nullptr) hooks.look(token_);
}

SlowWait::SlowWait(Runtime& runtime, std::span<const int> needs, double deadline, std::uint64_t operation)
    : runtime_(runtime),
      needs_(needs),
      operation_(operation),
      next_look_(kLookInterval),
      end_(deadline),
      unlocked_(&runtime) {
  runtime.use();
}

bool SlowWait::go_on() {
  if (++turns_ % kTurnsPerDrive == 0) Progress::drive();
  sched_yield();
  const double time = clock_.read();
  if (time >= next_look_ && why_.empty()) {
    unlocked_.look();
    const double begin = WaitClock::now();
    why_ = runtime_.liveness().failure(needs_, operation_);
    next_look_ = time + std::max(kLookInterval, kLookShare * (WaitClock::now() - begin));
    if (!why_.empty()) end_ = std::min(end_, time + kGrace);
  }
  return time < end_;
}

void SlowWait::fail(const std::string& what) {
  give_up(runtime_, why_, what);
}

bool TestWatch::go_on(Runtime& runtime, std::span<const int> needs, std::uint64_t epoch, std::uint64_t operation) {
  const double time = WaitClock::now();
  if (epoch != epoch_) {
    epoch_ = epoch;
    waited_ = 0;
    last_ = time;
    left_ = 0;
    next_look_ = time + kLookInterval;
    why_.clear();
  }
  if (time - left_ < kNothingBetween) sched_yield();
  waited_ += std::min(time - last_, runtime.deadline / kFewestTests);
  last_ = time;
  Progress::drive();
  if (time >= next_look_ && why_.empty()) {
    why_ = runtime.liveness().failure(needs, operation);
    next_look_ = time + std::max(kLookInterval, kLookShare * (WaitClock::now() - time));
    end_ = time + kGrace;
  }
  left_ = WaitClock::now();
  return waited_ < runtime.deadline && (why_.empty() || time < end_);
}

void TestWatch::fail(Runtime& runtime, const std::string& what) const {
  give_up(runtime, why_, what);
}

}  // namespace tasuki
