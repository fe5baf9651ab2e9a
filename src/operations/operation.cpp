// How an operation runs: start, test, wait and free. making.cpp makes it.
#include "tasuki/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "operations/check.hpp"
#include "operations/state.hpp"
#include "session/gpus.hpp"
#include "session/start_log.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

Operation::State::~State() {
  if (runtime_of(context_).inherited()) {  // threads and messages are the parent's
    (void)engine_.release();
    (void)executor_.release();
    return;
  }
  runtime_of(context_).use();
  if (kernel_runs_) {
    kernel_runs_->await();
    kernel_runs_->stop();
  }
  if (active_ && check_ && !runtime_of(context_).failed()) check_->abandoned(name_, epoch_);
  if (active_ && engine_) drop();
  if (executor_) runtime_of(context_).unreserve_active();
}

// The other ranks may wait for what this one has not done.
void Operation::State::drop() {
  Runtime& runtime = runtime_of(context_);
  const bool left_by_an_exception = std::uncaught_exceptions() > 0;
  bool complete = runtime.failed() || runtime.over();  // then they know
  try {
    if (!complete && !combine_ && !left_by_an_exception) complete = engine_->test();
  } catch (const std::exception&) {
    complete = false;
  }
  if (!complete) {
    runtime.liveness().drop(
        number_, left_by_an_exception
                     ? fmt::format("rank {} left with an exception in epoch {} of {}", context_.rank(), epoch_, name_)
                     : fmt::format("rank {} destroyed {} in epoch {}, for which it had not waited", context_.rank(),
                                   name_, epoch_));
  }
  engine_->abandon();
  if (!in_stream_) ended();
}

void Operation::State::check_alive(const char* call) const {
  runtime_of(context_).refuse_if_over(name_);
  runtime_of(context_).use();
  if (!executor_) {
    throw Error(fmt::format("rank {}: {}: {} after free; make the operation again", context_.rank(), name_, call));
  }
}

void Operation::State::check_host(const char* call) const {
  if (!active_ || !in_stream_) return;
  throw Error(
      fmt::format("rank {}: {}: {}() after start(stream); end it with wait(stream)", context_.rank(), name_, call));
}

std::string Operation::State::explanation() const {
  const auto* const gathered = std::get_if<Explanation>(&explanation_);
  return gathered != nullptr ? to_text(*gathered) : std::get<std::string>(explanation_);
}

const Plan& Operation::State::plan() const {
  check_alive("plan");
  return executor_->plan();
}

void Operation::State::check_inactive(const char* call) const {
  if (!active_) return;
  throw Error(fmt::format("rank {}: {}: {} while epoch {} is {}active; wait for it first", context_.rank(), name_, call,
                          epoch_, std::string_view(call) == "start" ? "still " : ""));
}

void Operation::State::count_kernels(const char* call) {
  if (!kernel_runs_) return;
  const std::uint64_t epochs = kernel_runs_->ended(call);
  epoch_ += epochs;
  executor_->skip(epochs);
}

void Operation::State::admit_kernels(const char* call) {
  check_alive(call);
  check_inactive(call);
  runtime_of(context_).refuse_if_failed(name_);
  count_kernels(call);
  settle_first();
}

void Operation::State::settle_first() {
  if (first_known_) return;
  first_known_ = true;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].alternating) first_copy_[i] = *buffers_[i].current;
  executor_->settle_first();
}

void Operation::State::check_alternation() {
  settle_first();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].alternating) continue;
    const int expected = static_cast<int>((static_cast<std::uint64_t>(first_copy_[i]) + epoch_) % 2);
    if (*buffers_[i].current == expected) continue;
    if (engine_->captured()) return;  // the GPU counts, also what graphs and kernels have run; the host does not know
    throw Error(
        fmt::format("rank {}: {}: field {} shows copy {} at start {}, but an alternating halo needs copy {}: call "
                    "swap exactly once between two starts, or make the halo without alternating",
                    context_.rank(), name_, buffers_[i].name, *buffers_[i].current, epoch_ + 1, expected));
  }
}

// On a GPU, also failures that nobody has been told of yet: what they left may be read by what starts now.
void Operation::State::refuse_after_failure() const {
  const Runtime& runtime = runtime_of(context_);
  runtime.refuse_if_failed(name_);
  if (where_ == Memory::device && runtime.gpus) runtime.gpus->check_untold();
}

void Operation::State::start() {
  check_alive("start");
  check_inactive("start");
  refuse_after_failure();
  count_kernels("start");
  check_alternation();
  engine_->admit();
  ++epoch_;
  if (kernel_runs_) kernel_runs_->host_begins();
  if (check_) check_->start(epoch_, buffers_);
  const TracedCall traced(executor_->recorder(), Traced::start, epoch_);
  active_ = true;
  runtime_of(context_).add_active(this);
  if (first_epochs_) first_epochs_->begins();
  try {
    engine_->start();
  } catch (const std::exception& error) {
    failed(error);
    throw;
  }
  if (first_epochs_) first_epochs_->started();
}

void Operation::State::failed(const std::exception& error) {
  runtime_of(context_).fail(error.what());
  engine_->stop();
  ended();
}

// A graph may be launched in any order, so that nothing is known of operations that are part of one.
void Operation::State::log_start(Stream stream) {
  Runtime& runtime = runtime_of(context_);
  if (!runtime.starts || number_ == 0 || engine_->captured()) return;
  if (stream != nullptr && gpu()->capturing(stream)) return;
  runtime.starts->begin(number_, name_, epoch_ + 1, stream);
}

void Operation::State::enqueue(Stream stream, StreamWork work) {
  const bool starts = starts_epoch(work);
  check_alive(starts ? "start" : "wait");
  if (idle_) return;
  if (where_ != Memory::device) {
    throw Error(
        fmt::format("rank {}: {}: streams are for operations on GPU memory, and this one is on host memory; call "
                    "start() and wait() without one",
                    context_.rank(), name_));
  }
  if (starts) check_inactive("start");
  if (!starts && !(active_ && in_stream_)) {
    throw Error(fmt::format("rank {}: {}: wait(stream) without start(stream) before it", context_.rank(), name_));
  }
  if (starts) {
    refuse_after_failure();
    count_kernels("start");
    check_alternation();
    log_start(stream);
    ++epoch_;
  }
  const TracedCall traced(executor_->recorder(), starts ? Traced::start : Traced::wait, epoch_);
  engine_->enqueue(stream, work);
  active_ = in_stream_ = !ends_epoch(work);
}

void Operation::State::ended() {
  active_ = false;
  runtime_of(context_).remove_active(this);
}

void Operation::State::completed() {
  ended();
  if (!check_) return;
  const std::string wrong = check_->end(epoch_, buffers_);
  if (wrong.empty()) return;
  Runtime& runtime = runtime_of(context_);
  runtime.fail(fmt::format("of a mistake that TASUKI_CHECK found: {}: {}", name_, wrong));
  throw Error(fmt::format("rank {}: {}: {}", context_.rank(), name_, wrong));
}

std::string Operation::State::stopped() {
  engine_->stop();
  constexpr std::size_t kNamed = 4;    // an operation may have thousands of peers
  std::vector<std::string> elsewhere;  // the peers that this rank cannot watch
  const Topology& topology = runtime_of(context_).topology();
  for (const int peer : peers_)
    if (!topology.same_host(peer, topology.rank)) elsewhere.push_back(topology.called(peer));
  const std::size_t more = elsewhere.size() - std::min(elsewhere.size(), kNamed);
  elsewhere.resize(elsewhere.size() - more);
  const std::string others = elsewhere.empty()
                                 ? ""
                                 : fmt::format(" (its peers on other hosts: {}{})", fmt::join(elsewhere, ", "),
                                               more > 0 ? fmt::format(" and {} more", more) : "");
  const std::string at = executor_->blocked();
  return fmt::format("rank {}: {}: epoch {} did not end{}{}{}", context_.rank(), name_, epoch_, at.empty() ? "" : ": ",
                     at, others);
}

bool Operation::State::test() {
  check_alive("test");
  check_host("test");
  if (!active_) return true;
  if (first_epochs_) first_epochs_->not_alone();
  const TracedCall traced(executor_->recorder(), Traced::test, epoch_);
  Runtime& runtime = runtime_of(context_);
  try {
    if (!run_engine()) {
      if (watch_.go_on(runtime, peers_, epoch_, number_)) return false;
      if (!engine_->test()) watch_.fail(runtime, stopped());
    }
  } catch (const GpuFailure& failure) {
    const std::string what = stopped();
    ended();
    fail_by_gpu(runtime, peers_, what, failure);
  } catch (const std::exception& error) {
    failed(error);
    throw;
  }
  completed();
  return true;
}

bool Operation::State::run_engine() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return engine_->test();
}

// Called while some operation waits; this one's end, and its failure, are noticed by its own test or wait. The other
// ranks hear of the failure at once: they may not come to what is waited for here.
void Operation::State::progress() {
  if (!active_ || driving_ || failure_) return;
  try {
    engine_->test();
  } catch (const std::exception& error) {
    failure_ = std::current_exception();
    runtime_of(context_).fail(error.what());
  }
}

void Operation::State::wait() {
  check_alive("wait");
  check_host("wait");
  if (check_ && !check_->waited() && !active_)
    throw Error(fmt::format("rank {}: {}: wait without a start before it", context_.rank(), name_));
  if (!active_) return;
  const TracedCall traced(executor_->recorder(), Traced::wait, epoch_);
  driving_ = true;
  if (first_epochs_) {
    first_epochs_->waits();
    if (runtime_of(context_).active_operations() > 1) first_epochs_->not_alone();
  }
  try {
    Runtime& runtime = runtime_of(context_);
    wait_for(
        runtime, peers_, runtime.deadline, number_, [this] { return run_engine(); }, [this] { return stopped(); });
  } catch (const Interruption&) {
    driving_ = false;  // still active: the user may wait again
    throw;
  } catch (...) {
    driving_ = false;
    engine_->stop();
    ended();
    throw;
  }
  driving_ = false;
  if (first_epochs_ && !first_epochs_->ended(runtime_of(context_))) first_epochs_.reset();
  completed();
}

void Operation::State::free() {
  if (!executor_) return;
  if (runtime_of(context_).inherited()) check_alive("free");
  check_inactive("free");
  if (kernel_runs_) kernel_runs_->await();
  if (!runtime_of(context_).failed()) count_kernels("free");
  if (kernel_runs_) kernel_runs_->stop();
  std::exception_ptr failure;
  try {
    engine_->finish();
  } catch (...) {
    failure = std::current_exception();
  }
  engine_.reset();
  executor_.reset();
  kernel_runs_.reset();
  keep_.clear();
  runtime_of(context_).unreserve_active();
  if (failure) std::rethrow_exception(failure);
}

void Operation::start() {
  state_->start();
}
bool Operation::test() {
  return state_->test();
}
void Operation::wait() {
  state_->wait();
}
void Operation::start(Stream stream) {
  state_->enqueue(stream, StreamWork::start);
}
void Operation::wait(Stream stream) {
  state_->enqueue(stream, StreamWork::wait);
}
void Operation::run(Stream stream) {
  state_->enqueue(stream, StreamWork::run);
}
void Operation::free() {
  state_->free();
}
bool Operation::active() const {
  return state_->active();
}
std::string Operation::explain(bool measured) const {
  const std::string text = state_->explanation();
  return measured ? text + state_->measured() : text;
}
const Plan& Operation::plan() const {
  return state_->plan();
}
std::int64_t Operation::memory() const {
  return state_->memory();
}
Memory Operation::where() const {
  return state_->where();
}
const Context& Operation::context() const {
  return state_->context();
}

}  // namespace tasuki
