// What an operation is underneath: a plan, an executor and an engine, and how one is prepared from a description.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/bind.hpp"
#include "engines/engine.hpp"
#include "planner/planner.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// What an operation must say about itself to be prepared.
struct Description {
  Problem problem;                  ///< what this rank wants; its buffers are those below, in their order
  std::vector<UserBuffer> buffers;  ///< their memory
  /// Arguments the ranks must agree on; a complaint of this rank may be in it already. Checked first.
  Agreement agreement;
  std::vector<std::shared_ptr<void>> keep = {};  ///< user objects that live as long as the operation
  /// The ranks beside this one that make the operation; nobody else takes part. None given: all ranks of the context
  /// do.
  std::optional<std::vector<int>> among = {};
  /// The kind of memory, where that of the buffers does not tell: a rank may have none. None given: the buffers' kind.
  std::optional<Memory> where = {};

  /// Adds a buffer and the role that planning knows it by.
  void add(UserBuffer buffer);
};

/// What planning must know of this rank's memory.
BufferFact fact_of(Runtime& runtime, const UserBuffer& buffer);

/// The machine as planning shall see it: GPUs, transports and prices are filled in. `wanted` is the path that the
/// operation asks for. Collective: where prices are missing, paths are measured.
const Machine& machine_for(const Context& context, const std::string& wanted = "auto");

/// Measures what the machine lacks prices for. Set at load time by the room that measures (calibrate/), which itself
/// makes operations.
struct CalibrationHook {
  using Calibrate = void (*)(const Context& context);
  explicit CalibrationHook(Calibrate calibrate);
};

class OperationCheck;

class Operation::State final : public Progressing {
 public:
  /// Collective over the ranks that make it.
  State(const Context& context, Description description, const OperationOptions& options);
  /// Of a plan that was made before, which the caller has verified with those of all ranks. Collective.
  State(const Context& context, Plan plan, std::vector<UserBuffer> buffers, const OperationOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start();
  bool test();
  void wait();
  void enqueue(Stream stream, StreamWork work);
  void free();
  void progress() override;

  bool active() const { return active_; }
  const std::string& explanation() const { return explanation_; }
  std::string measured();  ///< in measured.cpp, as `Operation::explain(true)`
  const Plan& plan() const;
  std::int64_t memory() const { return memory_; }
  Memory where() const { return where_; }
  const Context& context() const { return context_; }
  void keep(std::shared_ptr<void> object) { keep_.push_back(std::move(object)); }  ///< as long as the operation lives

 private:
  std::string engine_for(const OperationOptions& options) const;
  void check_options(Agreement& agreement, const std::string& engine, const OperationOptions& options) const;
  void run_on(Plan plan, const std::string& engine, const OperationOptions& options);
  void check_alive(const char* call) const;
  void check_host(const char* call) const;
  void check_alternation();
  void ended();
  /// As `ended`, after an epoch that has done all of its work.
  void completed();
  /// Ends the engine's driving after a failure. What the epoch waited for, for the message.
  std::string stopped();

  Context context_;
  std::string name_;
  std::vector<UserBuffer> buffers_;
  std::vector<std::shared_ptr<void>> keep_;
  std::vector<int> peers_;
  std::vector<int> first_copy_;  ///< alternating buffers: the copy of epoch 1
  std::string explanation_;
  std::int64_t memory_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t epoch_ = 0;
  bool active_ = false;
  bool idle_ = false;       ///< others make the operation; this rank has no part in it, in streams either
  bool in_stream_ = false;  ///< the active epoch was started in a stream
  Memory where_ = Memory::host;
  bool driving_ = false;
  TestWatch watch_;
  std::unique_ptr<OperationCheck> check_;  ///< null unless TASUKI_CHECK=1
};

}  // namespace tasuki
