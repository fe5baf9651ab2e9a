// Runtime: the state behind a Context. It owns the communicator, topology, shared memory and settings, and keeps the
// list of the context's active operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "machine/provenance.hpp"
#include "memory/shared_memory.hpp"
#include "session/channels.hpp"
#include "session/communicator.hpp"
#include "session/generation.hpp"
#include "session/liveness.hpp"
#include "session/progress.hpp"
#include "session/settings.hpp"
#include "session/topology.hpp"
#include "tasuki/context.hpp"
#include "tasuki/error.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

class Findings;
class Gpus;
class KernelRegistry;
class StartLog;
class Transports;

class Runtime {
 public:
  /// Collective. With `owns_mpi`, the process's last runtime finalises MPI.
  Runtime(std::unique_ptr<Communicator> communicator, bool owns_mpi);
  /// A part of `parent`, over `communicator`. `ranks` are the numbers of its ranks in the parent. It takes over the
  /// parent's settings, deadline, islands, GPU and prices, and may outlive it. Collective.
  Runtime(std::unique_ptr<Communicator> communicator, const Runtime& parent, std::span<const int> ranks);
  /// Frees everything. Where not all ranks have released the context (`left`), shared resources are left to the
  /// operating system. The last handle does not call it: see deferred_release.hpp.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Topology& topology() const { return topology_; }
  const Settings& settings() const { return settings_; }
  SharedMemory& memory() { return *memory_; }
  Liveness& liveness() { return *liveness_; }
  const Liveness& liveness() const { return *liveness_; }
  Communicator& communicator() { return *communicator_; }
  MPI_Comm comm() const { return communicator_->mpi(); }  ///< for the user's communication and Tasuki's collectives
  MPI_Comm messages() const { return communicator_->messages(); }  ///< for the messages of path `mpi` only
  int rank() const { return topology_.rank; }
  int size() const { return topology_.size(); }
  int thread_level() const { return thread_level_; }           ///< MPI_THREAD_...; -1 without MPI
  std::span<const int> everyone() const { return everyone_; }  ///< all ranks
  double deadline = 30.0;
  std::shared_ptr<Gpus> gpus;  ///< made collectively by the first use of a GPU (session/gpus.hpp)
  std::shared_ptr<KernelRegistry>
      kernels;                         ///< made by the first kernel that communicates by itself (kernels/registry.hpp)
  std::shared_ptr<StartLog> starts;    ///< with TASUKI_CHECK=1 (session/start_log.hpp)
  std::vector<Provenance> provenance;  ///< how the prices came about
  std::set<std::string> doubtful;      ///< paths that are measured again, though they have prices
  std::shared_ptr<Findings> findings;  ///< what operations have taken (operations/epoch_watch.hpp); null: nothing
  bool has_findings = false;           ///< this rank has some that the others have not heard of
  bool all_have_findings = false;      ///< so had all ranks when they last compared arguments
  /// The planner's view of these ranks: a value. Prices are measured or read when first needed. What holds for one
  /// operation only goes into a copy.
  const Machine& machine() const { return machine_; }
  /// What was learnt of the machine, by all ranks alike, holds for all that is planned from now on
  /// (machine/derived.hpp). References to the machine show the new one.
  void replace_machine(Machine next) { machine_ = std::move(next); }
  std::shared_ptr<Transports> transports;  ///< made with the context (transports/transport.hpp)
  std::string priced;                      ///< the usable paths for which prices were last completed
  bool pricing = false;                    ///< true while prices are being completed

  /// Number of polls of a wait before it yields. It is small if this host has more ranks than cores.
  int spins() const { return spins_; }

  /// Collective. Throws, as a wait does, if a rank has died or the deadline passes.
  void barrier();

  /// A number for an operation that these other ranks have made with this one; none given: all ranks of the context.
  /// The same on all of them, because ranks make what they share in the same order, and hardly that of another
  /// operation. 0: no other rank makes it. Called once for each, when all of them have made it.
  std::uint64_t number_of(const std::optional<std::vector<int>>& others);
  /// The number of the next grid or field. Called after all ranks have agreed to make it.
  int next_object() { return ++objects_; }
  /// Numbers that keep the messages of different operations apart.
  Channels& channels() { return *channels_; }

  /// The list of active operations. An operation reserves its place when it is made, so that starting it does not
  /// allocate memory.
  void reserve_active();
  void unreserve_active();
  void add_active(Progressing* op);
  void remove_active(Progressing* op);
  /// Calls `progress` of each active operation once. For `Progress`, which knows the contexts of a thread.
  void progress_active();
  /// Called before anything of the context is used that waits of its last thread may be driving. From now on the waits
  /// of the calling thread drive the active operations.
  void use() {
    if (user_.load(std::memory_order_relaxed) != this_thread()) [[unlikely]]
      take_over();
  }
  /// The thread that used this context last has ended.
  void forget_user() { user_.store(0, std::memory_order_relaxed); }
  std::size_t active_operations() const { return active_.size(); }

  /// Called when this rank or another one has failed. Tells the others why. Later frees do not wait for them. Only the
  /// first reason counts.
  void fail(const std::string& why, ErrorKind kind = ErrorKind::system);
  bool failed() const { return failed_; }
  /// A failure that nobody was told: it is written on stderr, and the process will end with an error status. For
  /// destructors.
  void fail_untold(const std::string& failure);
  /// `fail` for this context and its parts, when this rank cannot go on.
  void give_up(const std::string& why);
  /// Throws if this rank has failed: other ranks may still be in calls that it left, and a new call would be matched
  /// with those. Also throws in a forked child and after MPI_Finalize. `doing` is for the message.
  void refuse_if_failed(const std::string& doing) const {
    if (failed_ || generation_ != Generation::now()) refuse(doing);
  }
  /// Throws in a forked child and after MPI_Finalize.
  void refuse_if_over(const std::string& doing) const {
    if (generation_ != Generation::now()) refuse_over(doing);
  }
  /// `refuse_if_over` throws.
  bool over() const { return generation_ != Generation::now() && (inherited() || !topology_.threads); }
  /// This process was forked after the context was made.
  bool inherited() const { return Generation::forked_since(generation_); }

  bool is_part() const { return is_part_; }
  /// Number of parts of these ranks, in this order, that this rank has made.
  int& parts_made(const std::vector<int>& ranks) { return parts_made_[ranks]; }
  /// Adds a part to those that `give_up` concerns.
  void adopt(const std::shared_ptr<Runtime>& part);
  /// `place`: the rank's index among the ranks of its host, which chooses its GPU. `chosen_gpu`: the GPU that it has
  /// already, or -1. A part has both from its parent.
  int place() const { return place_; }
  int chosen_gpu() const { return chosen_gpu_; }

  /// Announces that this rank releases the context. The result ends when all ranks have done so. Then the caller passes
  /// it to `left`, and the destructor frees what the ranks share. Null if this was announced before, and after `fail`,
  /// while an exception unwinds, and once MPI has been finalised: then there is nothing to wait for.
  std::unique_ptr<Pending> begin_leaving();
  void left(const Pending& others);
  /// The other ranks cannot be waited for. Says so on stderr.
  void left_alone(const std::string& why);
  /// Adds messages that this rank has sent over `messages()`, less those that it has received. Called when an operation
  /// is destroyed. Where the sum over all ranks is not zero at the end, because a rank never received what another one
  /// sent, MPI must not give the communicator's number to a new one: the message would arrive there.
  void count_messages(std::int64_t unreceived) { unreceived_ += unreceived; }

 private:
  void find_ranks();
  void complete();
  bool somebody_died() const;  ///< whether a rank of this host has died
  void refuse(const std::string& doing) const;
  void refuse_over(const std::string& doing) const;
  void take_over();
  void leave_to_the_parent();

  std::unique_ptr<Communicator> communicator_;
  mutable std::uint32_t generation_ = 0;
  int thread_level_ = -1;
  int spins_ = 0;
  int objects_ = 0;
  int exceptions_at_birth_ = 0;
  std::size_t reserved_ = 0;
  bool failed_ = false;
  bool leaving_ = false;
  bool left_ = false;
  std::int64_t unreceived_ = 0;
  bool is_part_ = false;
  int place_ = 0;
  int chosen_gpu_ = -1;
  std::string failure_;  // the reason given to `fail`
  ErrorKind failure_kind_ = ErrorKind::system;
  std::map<std::vector<int>, int> parts_made_;
  std::map<std::vector<int>, std::uint64_t> made_;  // operations, by ranks; none: all
  std::vector<std::weak_ptr<Runtime>> parts_;
  Settings settings_;
  Machine machine_;
  Topology topology_;
  std::vector<int> everyone_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<Channels> channels_;
  std::vector<Progressing*> active_;
  std::atomic<std::uintptr_t> user_{0};  // the thread that used this context last
  Progress::Place among_{this};          // among that thread's contexts; the last member, so the first to go
};

/// What a later folder of src/ adds to every context. `make` is called at the end of the context's making on all ranks
/// (collective); the order of several is not defined. Registered at load time.
struct RuntimePart {
  using Make = void (*)(Runtime&);
  explicit RuntimePart(Make make);
};
/// Gives the library access to the runtime of a public context.
struct ContextAccess {
  static Context make(std::shared_ptr<Runtime> runtime) { return Context(std::move(runtime)); }
  static Runtime& runtime(const Context& context) { return context.runtime(); }
  static const std::shared_ptr<Runtime>& shared(const Context& context) { return context.runtime_; }
};
inline Runtime& runtime_of(const Context& context) {
  return ContextAccess::runtime(context);
}

/// Checks that arguments are the same on every rank. `same` collects names and values; `check` compares them over all
/// ranks (collective). If they differ, every rank throws the same message, such as
/// `Halo: argument 'corners' differs between ranks: rank 0 has true, rank 2 has false`. If they agree, the check takes
/// one small allreduce. Ranks that make different operations are reported too.
///
/// With TASUKI_AGREE=0 nothing is sent or compared. A complaint is then thrown only on the rank that has it. Ranks with
/// different arguments wait for each other until the deadline, or move wrong data.
class Agreement {
 public:
  Agreement(Runtime& runtime, std::string operation);
  /// Only this rank and `peers` (ascending) take part, and each names all the others. If they name different ranks, all
  /// of them throw, and the context has failed, because ranks may wait for some that do not take part.
  Agreement(Runtime& runtime, std::string operation, std::vector<int> peers);
  Agreement& same(const std::string& argument, const std::string& value);
  Agreement& same(const std::string& argument, std::int64_t value);
  /// The name that the user has given to what is made, which messages have too. The same on all ranks.
  Agreement& named(const std::string& name);
  /// Adds what is wrong on this rank (empty: nothing). If any rank has a complaint, `check` throws it on all ranks and
  /// names the rank. So no rank goes on alone. Called before `check`.
  Agreement& complain(const std::string& text, ErrorKind kind = ErrorKind::argument);
  /// The same with an exception's text. If the exceptions of all ranks that complain are `PathUnusable`, `check` throws
  /// `PathUnusable`.
  Agreement& complain(const std::exception& error);
  bool complains() const { return !complaint_.empty(); }  ///< whether this rank has a complaint
  void check();
  /// `check` that does not depend on TASUKI_AGREE: for complaints that are not about arguments.
  void settle();

 private:
  std::vector<std::string> show_to_peers(const std::vector<int>& ranks, const std::string& shown);
  void check_members(const std::string& shown, int other, const std::string& text) const;
  void compare(const std::vector<int>& ranks, const std::vector<std::string>& shown) const;

  Runtime& runtime_;
  std::string operation_;
  bool everyone_ = true;
  std::vector<int> peers_;
  std::vector<std::pair<std::string, std::string>> values_;
  std::string complaint_;
  ErrorKind kind_ = ErrorKind::argument;
  bool unusable_ = false;  // the complaint is a `PathUnusable`
};

/// Exchanges a blob of less than 2 GiB with each of `peers`, which must name this rank too. Results are in the order of
/// `peers`. Collective over the ranks involved. Throws, as a wait does, if one of them has died.
std::vector<std::string> exchange(Runtime& runtime, std::span<const int> peers, std::span<const std::string> blobs);

/// The loop of every wait. Calls `poll` until it returns true, for at most `deadline` seconds. It spins first, and then
/// yields, drives the active operations, and checks now and then whether the ranks in `needs` are alive. `poll` is
/// never called from inside itself. On failure this rank is marked as having given up, and an `Error` is thrown whose
/// text begins with `what()`; an exception of `poll` is rethrown.
template <class Poll, class What>
void wait_until(Runtime& runtime, std::span<const int> needs, Poll&& poll, What&& what);
/// The same for what may take any time: without the deadline.
template <class Poll, class What>
void wait_without_deadline(Runtime& runtime, std::span<const int> needs, Poll&& poll, What&& what);

}  // namespace tasuki

#include "session/wait_until.hpp"
