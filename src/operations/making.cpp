// How an operation is made: from a description, by choosing a path for each move and planning, or from a plan that was
// loaded. operation.cpp runs it.
#include <fmt/format.h>

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
#include "session/start_log.hpp"
#include "tasuki/error.hpp"
#include "tasuki/operation.hpp"
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
  return engine_named(runtime_of(context_), options.engine);
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
  cells_ = std::move(description.cells);
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
    leave_to_engine(runtime, engine);
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
  if (runtime.starts)
    number_ = description.among ? runtime.starts->number_among(*description.among) : runtime.starts->number_of_all();
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
  if (runtime.starts) number_ = runtime.starts->number_of_all();
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

}  // namespace tasuki
