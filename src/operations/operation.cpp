// Operation: preparation from a description, and start / test / wait / free.
#include "tasuki/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engines/bind.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"
#include "session/mpi.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::string resolve(const std::string& option, const std::string& setting, const char* otherwise) {
  if (option != "auto") return option;
  return setting != "auto" ? setting : otherwise;
}

// Whether any rank has a buffer on a GPU. Collective where GPUs are used.
Memory memory_of_all(Runtime& runtime, const std::vector<UserBuffer>& buffers) {
  if (!runtime.gpus) return Memory::host;
  const bool mine =
      std::any_of(buffers.begin(), buffers.end(), [](const auto& buffer) { return buffer.where == Memory::device; });
  const auto none = and_over_ranks(runtime, {mine ? std::uint64_t{0} : std::uint64_t{1}}, "making an operation");
  return none[0] == 0 ? Memory::device : Memory::host;
}

}  // namespace

Operation::State::State(const Context& context, Description description, const OperationOptions& options)
    : context_(context), name_(description.name), keep_(std::move(description.keep)) {
  Runtime& runtime = context.runtime();
  const std::string path = resolve(options.path, runtime.settings().path, "auto");
  buffers_ = std::move(description.buffers);
  const Memory memory = where_ = memory_of_all(runtime, buffers_);
  const std::string engine = memory == Memory::device && options.engine == "auto"
                                 ? "stream"
                                 : resolve(options.engine, runtime.settings().engine, "inline");
  Agreement& agreement = description.agreement;
  agreement.same("path", path).same("engine", engine);
  agreement.complain(engine_complaint(engine));
  if (options.blocks < 0)
    agreement.complain(fmt::format("argument 'blocks' is {}; it must be 0 or more", options.blocks));
  if (engine_memory(engine) != memory) {
    agreement.complain(
        fmt::format("engine '{}' works on {} memory, but the operation is on {} memory; use engine 'auto'", engine,
                    to_string(engine_memory(engine)), to_string(memory)));
  }
  agreement.check();
  PathSet& paths = paths_of(context, path);
  const int number = runtime.next_operation();
  mark_mutual(description.moves);
  Planning planning{runtime, paths, name_, path, buffers_, description.moves, {}, {}, {}};
  planning.peers = peers_of(description.moves, runtime.rank());
  peers_ = planning.peers;
  std::string complaint = paths.complaint(path);
  if (complaint.empty()) {
    exchange_places(planning);
    complaint = choose(planning);
  }
  Draft draft;
  all_do(runtime, name_, [&] {
    if (!complaint.empty()) throw Error(complaint);
    draft = make_plan(planning, description.compose);
  });
  Program program = bind(planning, std::move(draft), number, engine_is_threaded(engine));
  program.blocks = options.blocks;
  explanation_ = tasuki::explain(planning, program.plan);
  executor_ = std::make_unique<Executor>(std::move(program));
  memory_ = executor_->memory();
  all_do(runtime, name_, [&] { engine_ = make_engine(engine, *executor_, runtime); });
  first_copy_.resize(buffers_.size());
  runtime.reserve_active();
}

Operation::State::~State() {
  if (active_ && engine_) {
    engine_->abandon();
    if (!in_stream_) ended();
  }
  if (executor_) context_.runtime().unreserve_active();
}

void Operation::State::check_alive(const char* call) const {
  if (!executor_) {
    throw Error(fmt::format("rank {}: {}: {} after free; make the operation again", context_.rank(), name_, call));
  }
}

void Operation::State::check_host(const char* call) const {
  if (!active_ || !in_stream_) return;
  throw Error(
      fmt::format("rank {}: {}: {}() after start(stream); end it with wait(stream)", context_.rank(), name_, call));
}

const Plan& Operation::State::plan() const {
  check_alive("plan");
  return executor_->plan();
}

void Operation::State::check_alternation() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].alternating) continue;
    if (epoch_ == 0) first_copy_[i] = *buffers_[i].current;
    const int expected = static_cast<int>((static_cast<std::uint64_t>(first_copy_[i]) + epoch_) % 2);
    if (*buffers_[i].current == expected) continue;
    throw Error(
        fmt::format("rank {}: {}: field {} shows copy {} at start {}, but an alternating halo needs copy {}: call "
                    "swap exactly once between two starts, or make the halo without alternating",
                    context_.rank(), name_, buffers_[i].name, *buffers_[i].current, epoch_ + 1, expected));
  }
}

void Operation::State::start() {
  check_alive("start");
  if (active_) {
    throw Error(fmt::format("rank {}: {}: start while epoch {} is still active; wait for it first", context_.rank(),
                            name_, epoch_));
  }
  context_.runtime().refuse_if_failed(name_);
  check_alternation();
  ++epoch_;
  const TracedCall traced(executor_->recorder(), Traced::start, epoch_);
  active_ = true;
  context_.runtime().add_active(this);
  engine_->start();
}

void Operation::State::enqueue(Stream stream, int parts) {
  const bool starts = (parts & 1) != 0;
  check_alive(starts ? "start" : "wait");
  if (where_ != Memory::device) {
    throw Error(
        fmt::format("rank {}: {}: streams are for operations on GPU memory, and this one is on host memory; call "
                    "start() and wait() without one",
                    context_.rank(), name_));
  }
  if (starts && active_) {
    throw Error(fmt::format("rank {}: {}: start while epoch {} is still active; wait for it first", context_.rank(),
                            name_, epoch_));
  }
  if (!starts && !(active_ && in_stream_)) {
    throw Error(fmt::format("rank {}: {}: wait(stream) without start(stream) before it", context_.rank(), name_));
  }
  if (starts) {
    context_.runtime().refuse_if_failed(name_);
    if (!engine_->captured()) check_alternation();  // how often a graph is replayed nobody here knows
    ++epoch_;
  }
  const TracedCall traced(executor_->recorder(), starts ? Traced::start : Traced::wait, epoch_);
  engine_->enqueue(stream, parts);
  active_ = in_stream_ = (parts & 2) == 0;
}

void Operation::State::ended() {
  active_ = false;
  context_.runtime().remove_active(this);
}

bool Operation::State::test() {
  check_alive("test");
  check_host("test");
  if (!active_) return true;
  const TracedCall traced(executor_->recorder(), Traced::test, epoch_);
  if (!engine_->test()) return false;
  ended();
  return true;
}

// Called while some operation waits; this one's end is noticed by its own test or wait.
void Operation::State::progress() {
  if (active_ && !driving_) engine_->test();
}

void Operation::State::wait() {
  check_alive("wait");
  check_host("wait");
  if (!active_) return;
  const TracedCall traced(executor_->recorder(), Traced::wait, epoch_);
  driving_ = true;
  try {
    wait_until(
        context_.runtime(), peers_, [this] { return engine_->test(); },
        [this] {
          engine_->stop();
          return fmt::format("rank {}: {}: epoch {} did not end: {}", context_.rank(), name_, epoch_,
                             executor_->blocked());
        });
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
  ended();
}

void Operation::State::free() {
  if (!executor_) return;
  if (active_) {
    throw Error(
        fmt::format("rank {}: {}: free while epoch {} is active; wait for it first", context_.rank(), name_, epoch_));
  }
  engine_.reset();
  executor_.reset();
  keep_.clear();
  context_.runtime().unreserve_active();
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
  state_->enqueue(stream, 1);
}
void Operation::wait(Stream stream) {
  state_->enqueue(stream, 2);
}
void Operation::run(Stream stream) {
  state_->enqueue(stream, 3);
}
void Operation::free() {
  state_->free();
}
bool Operation::active() const {
  return state_->active();
}
std::string Operation::explain() const {
  return state_->explanation();
}
const Plan& Operation::plan() const {
  return state_->plan();
}
std::int64_t Operation::memory() const {
  return state_->memory();
}
const Context& Operation::context() const {
  return state_->context();
}

}  // namespace tasuki
