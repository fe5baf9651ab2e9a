// Operation: preparation from a description, and start / test / wait / free.
#include "tasuki/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "engines/bind.hpp"
#include "operations/check.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/mpi.hpp"
#include "tasuki/error.hpp"
#include "transports/transport.hpp"

namespace tasuki {

namespace {

std::string resolve(const std::string& option, const std::string& setting, const char* otherwise) {
  if (option != "auto") return option;
  return setting != "auto" ? setting : otherwise;
}

Memory memory_of_all(const std::vector<UserBuffer>& buffers) {
  const bool device =
      std::any_of(buffers.begin(), buffers.end(), [](const auto& buffer) { return buffer.where == Memory::device; });
  return device ? Memory::device : Memory::host;
}

// One blob for every peer, and theirs for this rank.
template <class Record>
std::string blob_of(const std::vector<Record>& records) {
  return {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record)};
}
template <class Record>
std::vector<Record> records_of(const std::string& blob) {
  std::vector<Record> records(blob.size() / sizeof(Record));
  if (!records.empty()) std::memcpy(records.data(), blob.data(), records.size() * sizeof(Record));
  return records;
}

// What the peers tell of their buffers.
Facts exchange_facts(Runtime& runtime, const std::vector<int>& peers, const std::vector<UserBuffer>& buffers) {
  std::vector<BufferFact> mine;
  for (const UserBuffer& buffer : buffers) mine.push_back(fact_of(runtime, buffer));
  const auto answers = exchange(runtime, peers, std::vector<std::string>(peers.size(), blob_of(mine)));
  Facts facts;
  for (std::size_t p = 0; p < peers.size(); ++p) facts.set(peers[p], records_of<BufferFact>(answers[p]));
  facts.set(runtime.rank(), std::move(mine));
  return facts;
}

// A rank that has decided nothing, because it has a complaint, sends one record without a path.
constexpr std::int32_t kComplaint = -1;

// What every rank has decided for its moves; throws `PeerFailed` if a peer could not.
std::vector<Choice> exchange_choices(Runtime& runtime, const std::vector<int>& peers, const Problem& problem,
                                     const std::vector<Decision>& mine, bool failed) {
  std::vector<std::string> blobs;
  for (const int peer : peers) {
    std::vector<Decision> to_peer;
    if (failed) to_peer.push_back({peer, kComplaint, 0, 0, 0});
    for (const Decision& decision : mine)
      if (decision.dst_rank == peer) to_peer.push_back(decision);
    blobs.push_back(blob_of(to_peer));
  }
  std::map<int, std::vector<Decision>> decisions;
  const auto answers = exchange(runtime, peers, blobs);
  for (std::size_t p = 0; p < peers.size(); ++p) {
    decisions[peers[p]] = records_of<Decision>(answers[p]);
    for (const Decision& decision : decisions[peers[p]])
      if (decision.path == kComplaint) throw PeerFailed();
  }
  decisions[problem.rank] = mine;
  return settle(problem, [&](int rank) { return std::span<const Decision>(decisions[rank]); });
}

void print_pass(const std::string& pass, const Plan& plan) {
  fmt::print(stderr, "tasuki: rank {}: plan after pass '{}':\n{}", plan.rank, pass, to_text(plan));
}

// Two ranks that plan by themselves connect what only they need. What cannot be used is told anew for every operation.
void machine_between(Runtime& runtime, const std::vector<int>& peers, const Facts& facts, const std::string& wanted) {
  runtime.machine.unusable = runtime.transports->unusable();
  if (peers.size() != 1 || !runtime.gpus) return;
  const auto on_gpu = [&](int rank) {
    return facts.of(rank, 0).memory == Memory::device || facts.of(rank, 1).memory == Memory::device;
  };
  if (on_gpu(runtime.rank()) && on_gpu(peers[0]))
    runtime.machine.unusable = runtime.transports->prepare_pair(runtime, peers[0], wanted);
}

}  // namespace

void Description::add(UserBuffer buffer) {
  problem.buffers.push_back({buffer.name, buffer.role});
  buffers.push_back(std::move(buffer));
}

BufferFact fact_of(Runtime& runtime, const UserBuffer& buffer) {
  BufferFact fact;
  fact.copies = static_cast<std::int32_t>(buffer.memory.size());
  fact.ring = buffer.alternating ? 2 : 1;
  fact.bytes = buffer.bytes;
  fact.memory = buffer.where;
  if (buffer.role == Role::scratch) {
    fact.copies = 1;
    fact.shared = true;  // it will be placed where peers can map it
    fact.alignment = 16;
    return fact;
  }
  fact.shared = !buffer.memory.empty();
  fact.alignment = 16;
  // A pair of which only one copy is shared counts as private: paths must serve both alike.
  for (std::byte* at : buffer.memory) {
    std::string why;
    const bool shared = buffer.where == Memory::device ? buffer.bytes > 0 && runtime.gpus->find(at, why).valid != 0
                                                       : runtime.memory().find(at, buffer.bytes).valid();
    fact.shared = fact.shared && shared;
    while (reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(fact.alignment) != 0)
      fact.alignment = static_cast<std::int16_t>(fact.alignment / 2);
  }
  return fact;
}

std::string Operation::State::engine_for(const OperationOptions& options) const {
  if (where_ == Memory::device && options.engine == "auto") return "stream";
  return resolve(options.engine, runtime_of(context_).settings().engine, "inline");
}

void Operation::State::check_options(Agreement& agreement, const std::string& engine,
                                     const OperationOptions& options) const {
  agreement.same("engine", engine);
  agreement.complain(engine_complaint(engine));
  if (options.blocks < 0)
    agreement.complain(fmt::format("argument 'blocks' is {}; it must be 0 or more", options.blocks));
  if (engine_memory(engine) != where_) {
    agreement.complain(
        fmt::format("engine '{}' works on {} memory, but the operation is on {} memory; use engine 'auto'", engine,
                    to_string(engine_memory(engine)), to_string(where_)));
  }
}

Operation::State::State(const Context& context, Description description, const OperationOptions& options)
    : context_(context),
      name_(description.problem.operation),
      where_(description.where.value_or(memory_of_all(description.buffers))) {
  Runtime& runtime = runtime_of(context);
  check_ = OperationCheck::of(runtime, description);
  buffers_ = std::move(description.buffers);
  keep_ = std::move(description.keep);
  combine_ = std::move(description.combine);
  Problem& problem = description.problem;
  problem.rank = runtime.rank();
  // A collective's choice among candidates may have named paths; what is asked for comes before it.
  const std::string forced = resolve(options.path, runtime.settings().path, "auto");
  if (forced != "auto") problem.wanted = forced;
  const std::string engine = engine_for(options);
  Agreement& agreement = description.agreement;
  agreement.same("path", problem.wanted);
  agreement.complain(path_complaint(problem.wanted));
  check_options(agreement, engine, options);
  agreement.check();
  if (!description.among) machine_for(context, problem.wanted);
  peers_ = peers_of(problem.moves, problem.rank);
  Agreement outcome = description.among ? Agreement(runtime, name_, *description.among) : Agreement(runtime, name_);
  // A rank that fails goes on talking to its peers until all can throw together.
  bool told = false;
  bool peer_failed = false;
  try {
    const Facts facts = exchange_facts(runtime, peers_, buffers_);
    const Machine& machine = runtime.machine;
    if (description.among) machine_between(runtime, peers_, facts, problem.wanted);
    std::vector<Decision> decisions;
    try {
      decisions = choose(machine, problem, facts);
    } catch (const std::exception& error) {
      outcome.complain(error);
    }
    const auto choices = exchange_choices(runtime, peers_, problem, decisions, outcome.complains());
    if (!outcome.complains()) {
      Plan plan = emit(machine, problem, facts, choices, runtime.settings().passes ? print_pass : PassObserver());
      explanation_ = tasuki::explain(machine, problem, facts, choices, plan);
      told = true;
      run_on(std::move(plan), engine, options);
    }
  } catch (const PeerFailed&) {
    peer_failed = true;
  } catch (const Interruption&) {
    throw;
  } catch (const std::exception& error) {  // also of a rank that has no memory left: its peers must not wait for it
    if (runtime.failed()) throw;           // a wait has failed: nobody is there to agree with
    outcome.complain(error);
  }
  if (!told) exchange(runtime, peers_, std::vector<std::string>(peers_.size()));  // what `bind` of the peers waits for
  outcome.settle();
  if (peer_failed)
    throw Error(fmt::format("rank {}: {}: a peer could not make it, and did not say why", context.rank(), name_));
  idle_ = description.among && problem.moves.empty();
  first_copy_.resize(buffers_.size());
  runtime.reserve_active();
}

Operation::State::State(const Context& context, Plan plan, std::vector<UserBuffer> buffers,
                        const OperationOptions& options)
    : context_(context), name_(plan.operation), buffers_(std::move(buffers)), where_(memory_of_all(buffers_)) {
  Runtime& runtime = runtime_of(context);
  if (runtime.settings().check) check_ = std::make_unique<OperationCheck>(runtime.rank());
  const std::string engine = engine_for(options);
  Agreement agreement(runtime, name_);
  check_options(agreement, engine, options);
  agreement.check();
  peers_ = tasuki::peers_of(plan);
  explanation_ = fmt::format("{} on rank {} of {}: a plan that was loaded, {} commands, {} bytes\n", name_,
                             context.rank(), context.size(), plan.commands.size(), plan.memory());
  all_do(runtime, name_, [&] { run_on(std::move(plan), engine, options); });
  first_copy_.resize(buffers_.size());
  runtime.reserve_active();
}

void Operation::State::run_on(Plan plan, const std::string& engine, const OperationOptions& options) {
  Program program = tasuki::bind(runtime_of(context_), std::move(plan), buffers_, engine_is_threaded(engine));
  program.blocks = options.blocks;
  program.combine = combine_;
  executor_ = std::make_unique<Executor>(std::move(program));
  memory_ = executor_->memory();
  engine_ = make_engine(engine, *executor_, runtime_of(context_));
}

Operation::State::~State() {
  if (runtime_of(context_).inherited()) {  // threads and messages are the parent's
    (void)engine_.release();
    (void)executor_.release();
    return;
  }
  if (kernel_runs_) {
    kernel_runs_->await();
    kernel_runs_->stop();
  }
  if (active_ && check_ && !runtime_of(context_).failed()) check_->abandoned(name_, epoch_);
  if (active_ && engine_) {
    engine_->abandon();
    if (!in_stream_) ended();
  }
  if (executor_) runtime_of(context_).unreserve_active();
}

void Operation::State::check_alive(const char* call) const {
  runtime_of(context_).refuse_if_over(name_);
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

void Operation::State::start() {
  check_alive("start");
  check_inactive("start");
  runtime_of(context_).refuse_if_failed(name_);
  count_kernels("start");
  check_alternation();
  ++epoch_;
  if (kernel_runs_) kernel_runs_->host_begins();
  if (check_) check_->start(epoch_, buffers_);
  const TracedCall traced(executor_->recorder(), Traced::start, epoch_);
  active_ = true;
  runtime_of(context_).add_active(this);
  engine_->start();
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
    runtime_of(context_).refuse_if_failed(name_);
    count_kernels("start");
    check_alternation();
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
  return fmt::format("rank {}: {}: epoch {} did not end: {}{}", context_.rank(), name_, epoch_, executor_->blocked(),
                     others);
}

bool Operation::State::test() {
  check_alive("test");
  check_host("test");
  if (!active_) return true;
  const TracedCall traced(executor_->recorder(), Traced::test, epoch_);
  Runtime& runtime = runtime_of(context_);
  try {
    if (!engine_->test()) {
      if (watch_.go_on(runtime, peers_, epoch_)) return false;
      if (!engine_->test()) watch_.fail(runtime, stopped());
    }
  } catch (const std::exception& error) {
    runtime.fail(error.what());
    engine_->stop();
    ended();
    throw;
  }
  completed();
  return true;
}

// Called while some operation waits; this one's end is noticed by its own test or wait.
void Operation::State::progress() {
  if (active_ && !driving_) engine_->test();
}

void Operation::State::wait() {
  check_alive("wait");
  check_host("wait");
  if (check_ && !check_->waited() && !active_)
    throw Error(fmt::format("rank {}: {}: wait without a start before it", context_.rank(), name_));
  if (!active_) return;
  const TracedCall traced(executor_->recorder(), Traced::wait, epoch_);
  driving_ = true;
  try {
    wait_until(
        runtime_of(context_), peers_, [this] { return engine_->test(); }, [this] { return stopped(); });
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
  completed();
}

void Operation::State::free() {
  if (!executor_) return;
  if (runtime_of(context_).inherited()) check_alive("free");
  check_inactive("free");
  if (kernel_runs_) kernel_runs_->await();
  if (!runtime_of(context_).failed()) count_kernels("free");
  if (kernel_runs_) kernel_runs_->stop();
  engine_.reset();
  executor_.reset();
  kernel_runs_.reset();
  keep_.clear();
  runtime_of(context_).unreserve_active();
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
  return measured ? state_->explanation() + state_->measured() : state_->explanation();
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
