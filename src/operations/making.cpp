// How an operation is made: from a description, by choosing a path for each move and planning, or from a plan that was
// loaded. operation.cpp runs it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engines/bind.hpp"
#include "operations/check.hpp"
#include "operations/state.hpp"
#include "session/attempt.hpp"
#include "session/gpus.hpp"
#include "session/mpi.hpp"
#include "session/start_log.hpp"
#include "session/trace.hpp"
#include "tasuki/error.hpp"
#include "tasuki/operation.hpp"
#include "transports/transport.hpp"

namespace tasuki {

namespace {

/// What an operation is called: the user's name for it, and what it is. A plan that was kept has the name already.
std::string named(const std::string& name, const std::string& operation) {
  if (name.empty() || operation.starts_with(name + ": ")) return operation;
  return fmt::format("{}: {}", name, operation);
}

Memory memory_of_all(const std::vector<UserBuffer>& buffers) {
  const bool device =
      std::any_of(buffers.begin(), buffers.end(), [](const auto& buffer) { return buffer.where == Memory::device; });
  return device ? Memory::device : Memory::host;
}

void print_pass(const std::string& pass, const Plan& plan) {
  fmt::print(stderr, "tasuki: rank {}: plan after pass '{}':\n{}", plan.rank, pass, to_text(plan));
}

// Candidates are tried only when all ranks have said that they want it.
void check_tune(Agreement& agreement, const OperationOptions& options, int directions) {
  if (options.tune < 0) agreement.complain(fmt::format("argument 'tune' is {}; it must be 0 or more", options.tune));
  agreement.same("tune", options.tune);
  agreement.complain(path_complaint(options.path, directions));
  agreement.check();
}

// Whether the rank's part of what two ranks make by themselves is on a GPU. Both know the facts.
bool on_gpu(const Facts& facts, int rank) {
  return facts.of(rank, 0).memory == Memory::device || facts.of(rank, 1).memory == Memory::device;
}

}  // namespace

// What TASUKI_PATH says of directions is for halos.
std::string wanted_by(const Problem& problem, const OperationOptions& options, const Runtime& runtime) {
  if (options.path != "auto") return options.path;
  const std::string& all = runtime.settings().path;
  return problem.directions > 0 ? all : without_directions(all);
}

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

Operation::State::State(const Context& context, Description description, const OperationOptions& wanted)
    : context_(context),
      name_(description.problem.operation),
      where_(description.where.value_or(memory_of_all(description.buffers))) {
  Runtime& runtime = runtime_of(context);
  Attempt& attempt = description.attempt;
  OperationOptions options = wanted;
  description.agreement.named(options.name);
  description.problem.operation = name_ = named(options.name, name_);
  if (options.tune != 0) {
    attempt.complain_to(description.agreement, name_);
    check_tune(description.agreement, options, description.problem.directions);
    if (options.tune > 1) choose_by_trial(description, options);
  }
  attempt.locally("adding the records of checks", [&] { check_ = OperationCheck::of(runtime, description); });
  buffers_ = std::move(description.buffers);
  cells_ = std::move(description.cells);
  keep_ = std::move(description.keep);
  combine_ = std::move(description.combine);
  Problem& problem = description.problem;
  problem.rank = runtime.rank();
  // A collective's choice among candidates may have named paths; what is asked for comes before it.
  const std::string forced = wanted_by(problem, options, runtime);
  if (forced != "auto") problem.wanted = forced;
  const std::string engine = engine_for(options);
  attempt.locally("listing peers", [&] { peers_ = peers_of(problem.moves, problem.rank); });
  Agreement& agreement = description.agreement;
  attempt.complain_to(agreement, name_);  // now: a rank that has failed so far may not know its peers
  if (!attempt.failing()) {               // else a rank has a complaint, which comes before what differs
    agreement.same("path", problem.wanted).same("tune", options.tune);
    agreement.complain(path_complaint(problem.wanted, problem.directions));
    check_options(agreement, engine, options);
  }
  agreement.check();
  int number = 0;
  if (!description.among) {
    machine_for(context, problem.wanted);
    if (!runtime.findings) runtime.findings = std::make_shared<Findings>();
    number = runtime.findings->next();
  }
  const Expected expected = plan_and_run(attempt, description, engine, options);
  settle(attempt, name_);
  // An array without elements may begin where a GPU's memory ends, so that nobody can tell that it is on a GPU.
  const bool on_nothing =
      !buffers_.empty() && std::all_of(buffers_.begin(), buffers_.end(), [](const auto& b) { return b.bytes == 0; });
  idle_ = problem.moves.empty() && (description.among || (on_nothing && where_ == Memory::host));
  number_ = runtime.number_of(description.among);
  expected_ = expected.seconds;
  if (const Recorder* recorder = executor_->recorder())
    recorder->expect(description.predicted.value_or(-1) >= 0 ? *description.predicted : expected_);
  if (options.correct && runtime.settings().correct && number > 0 && engine == "inline")
    watch_epochs(expected, description.predicted, number);
}

// From the moves to an engine. Ranks exchange what they know of their memory, what they choose, and addresses.
Expected Operation::State::plan_and_run(Attempt& attempt, const Description& description, const std::string& engine,
                                        const OperationOptions& options) {
  Runtime& runtime = runtime_of(context_);
  const Problem& problem = description.problem;
  std::vector<BufferFact> mine;
  attempt.locally("looking at this rank's memory", [&] {
    for (const UserBuffer& buffer : buffers_) mine.push_back(fact_of(runtime, buffer));
  });
  auto told =
      attempt.exchange(peers_, [&](std::size_t, Encoder& to) { to.records(std::span<const BufferFact>(mine)); });
  Facts facts;
  attempt.locally("reading what peers tell of their memory", [&] {
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      auto theirs = Decoder(told[p]).records<BufferFact>();
      if (theirs.size() != mine.size())
        throw Error(fmt::format("rank {} has {} buffers, and this rank {} (a defect in Tasuki)", peers_[p],
                                theirs.size(), mine.size()));
      facts.set(peers_[p], std::move(theirs));
    }
    facts.set(runtime.rank(), std::move(mine));
  });
  OperationMachine own(runtime);
  if (description.among) {
    see_usable_paths(runtime);
    if (peers_.size() == 1 && runtime.gpus) {
      (void)attempt.exchange(peers_, [](std::size_t, Encoder&) {});  // whether both go on
      if (!attempt.failing() && on_gpu(facts, runtime.rank()) && on_gpu(facts, peers_[0]))
        own.connect(peers_[0], problem.wanted);
    }
  }
  std::vector<Decision> decisions;
  attempt.locally("choosing paths", [&] {
    own.leave_to_engine(engine);
    decisions = choose(*own, problem, facts);
  });
  told = attempt.exchange(peers_, [&](std::size_t p, Encoder& to) {
    std::vector<Decision> to_peer;
    for (const Decision& decision : decisions)
      if (decision.dst_rank == peers_[p]) to_peer.push_back(decision);
    to.records(std::span<const Decision>(to_peer));
  });
  Plan plan;
  Expected expected;
  attempt.locally("planning", [&] {
    std::map<int, std::vector<Decision>> all;
    for (std::size_t p = 0; p < peers_.size(); ++p) all[peers_[p]] = Decoder(told[p]).records<Decision>();
    all[problem.rank] = std::move(decisions);
    const auto of_rank = [&](int rank) { return std::span<const Decision>(all[rank]); };
    const std::optional<Problem> cut = in_parts(problem, of_rank);
    const Problem& decided = cut ? *cut : problem;
    const auto choices = tasuki::settle(decided, of_rank);
    plan = emit(*own, decided, facts, choices, runtime.settings().passes ? print_pass : PassObserver());
    explanation_ = explained(*own, decided, facts, choices, plan);
    expected = expected_of(decided, facts, choices);
  });
  run_on(attempt, std::move(plan), engine, options);
  return expected;
}

// Where ranks share cores, times tell of the scheduler.
void Operation::State::watch_epochs(const Expected& expected, std::optional<double> predicted, int number) {
  Runtime& runtime = runtime_of(context_);
  if (check_ || !predicted || runtime.topology().crowded(runtime.rank())) return;
  Finding finding{name_, *predicted >= 0 ? *predicted : expected.seconds, 0, {}, expected.move, expected.price};
  if (expected.path != nullptr) finding.path = expected.path->name;
  if (expected.seconds == 0) {
    runtime.findings->add(runtime, number, std::move(finding));  // what the others find is not for this rank to doubt
  } else if (finding.expected > 0) {
    first_epochs_ = std::make_unique<EpochWatch>(number, std::move(finding));
  }
}

Operation::State::State(const Context& context, Plan plan, std::vector<UserBuffer> buffers,
                        const OperationOptions& options)
    : context_(context),
      name_(named(options.name, plan.operation)),
      buffers_(std::move(buffers)),
      where_(memory_of_all(buffers_)) {
  Runtime& runtime = runtime_of(context);
  plan.operation = name_;
  if (runtime.settings().check) check_ = std::make_unique<OperationCheck>(runtime.rank());
  const std::string engine = engine_for(options);
  Agreement agreement(runtime, name_);
  agreement.same("name", options.name);
  check_options(agreement, engine, options);
  agreement.check();
  peers_ = tasuki::peers_of(plan);
  explanation_ = fmt::format("{} on rank {} of {}: a plan that was loaded, {} commands, {} bytes\n", name_,
                             context.rank(), context.size(), plan.commands.size(), plan.memory());
  Attempt attempt(runtime);
  run_on(attempt, std::move(plan), engine, options);
  settle(attempt, name_);
  number_ = runtime.number_of({});
}

void Operation::State::run_on(Attempt& attempt, Plan plan, const std::string& engine, const OperationOptions& options) {
  Runtime& runtime = runtime_of(context_);
  Program program = tasuki::bind(runtime, attempt, std::move(plan), peers_, buffers_, engine_is_threaded(engine));
  attempt.locally("making the executor", [&] {
    program.blocks = options.blocks;
    program.combine = combine_;
    executor_ = std::make_unique<Executor>(std::move(program));
    memory_ = executor_->memory();
    first_copy_.resize(buffers_.size());
  });
  attempt.locally("making the engine", [&] { engine_ = make_engine(engine, *executor_, runtime); });
}

void Operation::State::settle(Attempt& attempt, const std::string& operation) {
  Runtime& runtime = runtime_of(context_);
  bool reserved = false;
  attempt.locally("reserving a place among the active operations", [&] {
    runtime.reserve_active();
    reserved = true;
  });
  try {
    attempt.settle(operation);
  } catch (...) {
    if (reserved) runtime.unreserve_active();
    throw;
  }
}

}  // namespace tasuki
