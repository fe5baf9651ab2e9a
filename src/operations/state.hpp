// What an operation is underneath: a plan, an executor and an engine, and how one is prepared from a description.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engines/bind.hpp"
#include "engines/engine.hpp"
#include "grid/field_cells.hpp"
#include "operations/epoch_watch.hpp"
#include "planner/expected.hpp"
#include "planner/explain.hpp"
#include "planner/planner.hpp"
#include "session/attempt.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// One way among several to do what an operation does.
struct Alternative {
  std::string name;  ///< for people
  std::string path;  ///< that it is made with
  Problem problem;
  std::vector<UserBuffer> buffers;
  double predicted = -1;  ///< seconds; less than 0: by the prices of its moves
};

/// What an operation must say about itself to be prepared.
struct Description {
  Description(Runtime& runtime, const std::string& operation) : agreement(runtime, operation), attempt(runtime) {}
  /// Only this rank and `peers` (ascending) make it.
  Description(Runtime& runtime, const std::string& operation, const std::vector<int>& peers)
      : agreement(runtime, operation, peers), attempt(runtime, peers), among(peers) {}

  Problem problem;                  ///< what this rank wants; its buffers are those below, in their order
  std::vector<UserBuffer> buffers;  ///< their memory
  /// Arguments the ranks must agree on; a complaint of this rank may be in it already. Checked first.
  Agreement agreement;
  /// What has failed on this rank so far; also while ranks exchange what is described.
  Attempt attempt;
  std::vector<std::shared_ptr<void>> keep = {};  ///< user objects that live as long as the operation
  /// The ranks beside this one that make the operation; nobody else takes part. None: all ranks of the context do.
  std::optional<std::vector<int>> among = {};
  /// The user's own operator, which the plan names.
  std::shared_ptr<const Program::Combine> combine = nullptr;
  /// The fields that the buffers are, if all are fields.
  std::vector<FieldCells> cells = {};
  /// The kind of memory, where that of the buffers does not tell: a rank may have none. None given: the buffers' kind.
  std::optional<Memory> where = {};
  /// What an epoch was predicted to take when the operation was chosen; less than 0: by the prices of its moves. None
  /// given: it was not predicted.
  std::optional<double> predicted = -1;
  /// What option `tune` is to try, the predicted choice first. None: paths.
  std::vector<Alternative> alternatives = {};

  /// Adds a buffer and the role that planning knows it by.
  void add(UserBuffer buffer);
};

/// What planning must know of this rank's memory.
BufferFact fact_of(Runtime& runtime, const UserBuffer& buffer);
/// The paths that the option names, or else the user's settings.
std::string wanted_by(const Problem& problem, const OperationOptions& options, const Runtime& runtime);

/// The machine as planning shall see it: GPUs, transports and prices are filled in. `wanted` is the path that the
/// operation asks for. Collective: where prices are missing, paths are measured.
const Machine& machine_for(const Context& context, const std::string& wanted = "auto");

/// The engine that an option names: `auto` on host memory is TASUKI_ENGINE, else `inline`.
std::string engine_named(const Runtime& runtime, const std::string& option);
/// The context's machine shows which paths can be used now, without setting up what is missing. Local; the same on all
/// ranks.
void see_usable_paths(Runtime& runtime);

/// The machine as one operation sees it, which other operations do not: the context's own, or a copy once something
/// holds for this operation only.
class OperationMachine {
 public:
  explicit OperationMachine(Runtime& runtime) : runtime_(runtime) {}
  /// Leaves out the paths that this engine cannot drive here.
  void leave_to_engine(const std::string& engine);
  /// This rank and `peer`, whose memory is on GPUs, connect what only they need. Both call it, or neither.
  void connect(int peer, const std::string& wanted);
  const Machine& operator*() const;

 private:
  Runtime& runtime_;
  std::optional<Machine> own_;
};

/// Measures what the machine lacks prices for. Set at load time by the room that measures (calibrate/), which itself
/// makes operations.
struct CalibrationHook {
  using Calibrate = void (*)(const Context& context);
  explicit CalibrationHook(Calibrate calibrate);
};

class OperationCheck;

/// Kernels of the user that run epochs of an operation by themselves (kernels/plan.cpp).
class KernelRuns {
 public:
  virtual ~KernelRuns() = default;
  /// How many epochs they have run since this was asked last, as far as the host must know. Throws if one of them has
  /// failed, or is in an epoch; `call` is for the message.
  virtual std::uint64_t ended(const char* call) = 0;
  /// The host begins an epoch.
  virtual void host_begins() = 0;
  /// Returns when kernels on threads have ended that were launched with a handle of it.
  virtual void await() const = 0;
  /// The operation ends: nobody asks for messages any more.
  virtual void stop() = 0;
};

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
  std::string explanation() const;
  double expected() const { return expected_; }  ///< seconds of an epoch, by the prices of this rank's moves
  std::string measured();                        ///< in measured.cpp, as `Operation::explain(true)`
  const Plan& plan() const;
  std::int64_t memory() const { return memory_; }
  Memory where() const { return where_; }
  const Context& context() const { return context_; }
  const std::string& name() const { return name_; }
  Executor& executor() { return *executor_; }
  Engine& engine() { return *engine_; }
  const std::vector<UserBuffer>& buffers() const { return buffers_; }
  const std::vector<FieldCells>& cells() const { return cells_; }  ///< of the buffers; none if they are no fields
  /// Throws if kernels cannot run epochs now. Settles which copies the first epoch uses.
  void admit_kernels(const char* call);
  /// What runs epochs in kernels (kernels/plan.cpp). Null until a handle is made, and given then.
  const std::shared_ptr<KernelRuns>& kernel_runs() const { return kernel_runs_; }
  void give_kernel_runs(std::shared_ptr<KernelRuns> runs) { kernel_runs_ = std::move(runs); }
  /// Number of the copy that an alternating buffer shows in the first epoch.
  int first_copy(std::size_t buffer) const { return first_copy_[buffer]; }
  void keep(std::shared_ptr<void> object) { keep_.push_back(std::move(object)); }  ///< as long as the operation lives

 private:
  std::string engine_for(const OperationOptions& options) const;
  void check_options(Agreement& agreement, const std::string& engine, const OperationOptions& options) const;
  /// What the epochs are expected to take.
  Expected plan_and_run(Attempt& attempt, const Description& description, const std::string& engine,
                        const OperationOptions& options);
  void run_on(Attempt& attempt, Plan plan, const std::string& engine, const OperationOptions& options);
  void settle(Attempt& attempt, const std::string& operation);
  /// Replaces the description, and the path of the options, by those of the fastest alternative (tune_operation.cpp).
  void choose_by_trial(Description& description, OperationOptions& options);
  /// Has the first epochs timed, where that tells something (epoch_watch.hpp).
  void watch_epochs(const Expected& expected, std::optional<double> predicted, int number);
  void check_alive(const char* call) const;
  void check_host(const char* call) const;
  void check_inactive(const char* call) const;
  void refuse_after_failure() const;
  void log_start(Stream stream);
  /// Counts the epochs that kernels have run.
  void count_kernels(const char* call);
  void settle_first();
  void check_alternation();
  void ended();
  void drop();                               ///< Of an epoch in which the operation is destroyed.
  void failed(const std::exception& error);  ///< The epoch has ended by it; the other ranks are told.
  bool run_engine();                         ///< Its `test`, which also throws what `progress` met.
  /// As `ended`, after an epoch that has done all of its work.
  void completed();
  /// Ends the engine's driving after a failure. What the epoch waited for, for the message.
  std::string stopped();

  Context context_;
  std::string name_;
  std::vector<UserBuffer> buffers_;
  std::vector<FieldCells> cells_;
  std::vector<std::shared_ptr<void>> keep_;
  std::vector<int> peers_;
  std::vector<int> first_copy_;                         ///< alternating buffers: the copy of epoch 1
  bool first_known_ = false;                            ///< once it has begun, or a handle was made
  std::variant<std::string, Explanation> explanation_;  ///< a text: of a plan that was loaded
  std::int64_t memory_ = 0;
  std::shared_ptr<KernelRuns> kernel_runs_;  ///< null until the first handle; goes after the engine
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t number_ = 0;  ///< `Runtime::number_of`
  std::uint64_t epoch_ = 0;
  bool active_ = false;
  bool idle_ = false;  ///< this rank has no part in it, or nobody has any data: nor is there anything to do in streams
  bool in_stream_ = false;  ///< the active epoch was started in a stream
  Memory where_ = Memory::host;
  bool driving_ = false;
  std::exception_ptr failure_;  ///< of the active epoch, while another operation waited
  TestWatch watch_;
  std::shared_ptr<const Program::Combine> combine_;
  std::unique_ptr<OperationCheck> check_;  ///< null unless TASUKI_CHECK=1
  double expected_ = 0;
  std::unique_ptr<EpochWatch> first_epochs_;  ///< null when they are over, and where they are not timed
};

}  // namespace tasuki
