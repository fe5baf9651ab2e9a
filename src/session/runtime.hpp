// Runtime: what a Context stands for. Owns the communicator, topology, shared memory, settings, and knows the
// operations that are active.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/channels.hpp"
#include "session/communicator.hpp"
#include "session/era.hpp"
#include "session/liveness.hpp"
#include "session/settings.hpp"
#include "session/topology.hpp"
#include "tasuki/context.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// Something that may need driving while this rank waits for something else. Ranks start and wait for operations in
/// different orders, so a wait drives all that are active, not just its own.
class Progressing {
 public:
  virtual void progress() = 0;

 protected:
  ~Progressing() = default;
};

class Gpus;
class KernelHome;
class Transports;

class Runtime {
 public:
  /// Collective. With `owns_mpi`, MPI ends with the last runtime of the process.
  Runtime(std::unique_ptr<Communicator> communicator, bool owns_mpi);
  /// Of a part of the ranks of `parent`, which `communicator` joins: `ranks` are their numbers there. It has the
  /// parent's settings, deadline, islands, GPU and prices, and is not bound to it afterwards. Collective.
  Runtime(std::unique_ptr<Communicator> communicator, const Runtime& parent, std::span<const int> ranks);
  /// Waits for the other ranks (as long as they are alive) and gives everything back. After `fail`, while an exception
  /// is unwinding, or when MPI has ended, it only lets go: the operating system cleans up.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Topology& topology() const { return topology_; }
  const Settings& settings() const { return settings_; }
  SharedMemory& memory() { return *memory_; }
  Liveness& liveness() { return *liveness_; }
  const Liveness& liveness() const { return *liveness_; }
  Communicator& communicator() { return *communicator_; }
  MPI_Comm comm() const { return communicator_->mpi(); }           ///< for the user
  MPI_Comm messages() const { return communicator_->messages(); }  ///< for the mpi path only
  int rank() const { return topology_.rank; }
  int size() const { return topology_.size(); }
  int thread_level() const { return thread_level_; }           ///< MPI_THREAD_...; -1 without MPI
  std::span<const int> everyone() const { return everyone_; }  ///< all ranks
  double deadline = 30.0;
  std::shared_ptr<Gpus> gpus;           ///< made collectively by the first use of a GPU (session/gpus.hpp)
  std::shared_ptr<KernelHome> kernels;  ///< made by the first kernel that communicates by itself (kernels/home.hpp)
  Machine machine;  ///< what planning sees of these ranks; prices are filled in when first asked for
  std::shared_ptr<Transports> transports;  ///< made with the context (transports/transport.hpp)
  std::string priced;                      ///< the paths that could be used when prices were last completed
  bool pricing = false;                    ///< prices are being completed

  /// How often a wait polls before it yields: few times if the ranks of this host outnumber its cores.
  int spins() const { return spins_; }

  /// Collective. Fails like a wait if a rank has died.
  void barrier();

  /// The number of the next grid or field. Called when all ranks have agreed that there will be one.
  int next_object() { return ++objects_; }
  /// The numbers by which messages of what two ranks share are kept apart.
  Channels& channels() { return *channels_; }
  /// The next number of what this rank shares with `peer`: see `Channels::take`.
  std::int64_t next_channel(int peer) { return channels_->take(peer); }

  /// Active operations. `reserve` room before `add` so that starting does not allocate.
  void reserve_active();
  void unreserve_active();
  void add_active(Progressing* op);
  void remove_active(Progressing* op);
  /// Calls `progress` of each active operation once; does nothing if called from one.
  void progress_all();

  /// A rank has failed, or this one has: tells the others why, and later frees will not wait for them. Only the first
  /// reason counts.
  void fail(const std::string& why);
  bool failed() const { return failed_; }
  /// The same for this context and its parts: this rank will not go on.
  void give_up(const std::string& why);
  /// Throws if this rank has failed: what it began with others is not at an end everywhere, and would be mixed up with
  /// what comes now. Throws in a forked child, and after MPI_Finalize. `doing` is for the message.
  void refuse_if_failed(const std::string& doing) const {
    if (failed_ || era_ != Era::now()) refuse(doing);
  }
  /// Only the latter two.
  void refuse_if_over(const std::string& doing) const {
    if (era_ != Era::now()) refuse_era(doing);
  }
  bool over() const { return era_ != Era::now() && (inherited() || !topology_.threads); }  ///< Either of them is so.
  bool inherited() const { return Era::forked_since(era_); }  ///< This process is a child of the one that made it.

  bool is_part() const { return is_part_; }
  /// How many parts of these ranks, in this order, this rank has made.
  int& parts_made(const std::vector<int>& ranks) { return parts_made_[ranks]; }
  /// Remembers a part, for `give_up`.
  void adopt(const std::shared_ptr<Runtime>& part);
  /// The rank's place among those of its host, by which it gets a GPU, and the GPU that it has already: -1 if none. A
  /// part's are those of its parent.
  int place() const { return place_; }
  int chosen_gpu() const { return chosen_gpu_; }

  /// Says that this rank lets go of the context. What is returned ends when all ranks have; then `left` is called
  /// before the runtime is destroyed, which waits for nobody any more. Null if there is nothing to wait for: a rank has
  /// failed.
  std::unique_ptr<Pending> begin_leaving();
  void left() { left_ = true; }

 private:
  void meet();
  void complete();
  bool can_leave_together();
  bool leave_together();
  bool somebody_died() const;  ///< of this host
  void refuse(const std::string& doing) const;
  void refuse_era(const std::string& doing) const;
  void leave_to_the_parent();

  std::unique_ptr<Communicator> communicator_;
  mutable std::uint32_t era_ = 0;
  int thread_level_ = -1;
  int spins_ = 0;
  int objects_ = 0;
  int exceptions_at_birth_ = 0;
  std::size_t reserved_ = 0;
  bool progressing_ = false;
  bool failed_ = false;
  bool left_ = false;
  bool is_part_ = false;
  int place_ = 0;
  int chosen_gpu_ = -1;
  std::string failure_;  // why
  std::map<std::vector<int>, int> parts_made_;
  std::vector<std::weak_ptr<Runtime>> parts_;
  Settings settings_;
  Topology topology_;
  std::vector<int> everyone_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<Channels> channels_;
  std::vector<Progressing*> active_;
};

/// A later room's part of every context: called at the end of its making, on all ranks (collective), in no order.
/// Registered at load time.
struct RuntimePart {
  using Make = void (*)(Runtime&);
  explicit RuntimePart(Make make);
};
/// What a public context keeps to itself.
struct ContextAccess {
  static Context make(std::shared_ptr<Runtime> runtime) { return Context(std::move(runtime)); }
  static Runtime& runtime(const Context& context) { return context.runtime(); }
  static const std::shared_ptr<Runtime>& shared(const Context& context) { return context.runtime_; }
};
inline Runtime& runtime_of(const Context& context) {
  return ContextAccess::runtime(context);
}

/// Arguments that must be the same on every rank. Collective: collects name and value pairs, then `check` compares them
/// over all ranks and throws on every rank, naming the first argument that differs, the ranks and their values:
/// `Halo: argument 'corners' differs between ranks: rank 0 has true, rank 2 has false`. One small allreduce when all
/// agree. A difference in the operation itself is reported too: the ranks do different things.
///
/// With TASUKI_AGREE=0 nothing is compared and nothing is sent: a complaint is thrown on the rank that has it, and what
/// happens to ranks with different arguments is undefined until a wait's deadline.
class Agreement {
 public:
  Agreement(Runtime& runtime, std::string operation);
  /// Among this rank and `peers`, ascending, who name each other, only: nobody else takes part. If they name different
  /// ranks, all of them throw, and the context has failed: nobody can tell any more who waits for whom.
  Agreement(Runtime& runtime, std::string operation, std::vector<int> peers);
  Agreement& same(const std::string& argument, const std::string& value);
  Agreement& same(const std::string& argument, std::int64_t value);
  /// A local complaint (empty: none). If any rank has one, all ranks throw it, naming the rank that complained; so that
  /// no rank goes on alone. Called before `check`.
  Agreement& complain(const std::string& text);
  /// The same with an exception's text. If it is `PathUnusable` and no rank has another complaint, so is what is
  /// thrown.
  Agreement& complain(const std::exception& error);
  bool complains() const { return !complaint_.empty(); }  ///< this rank does
  void check();
  /// As `check`, whatever TASUKI_AGREE says: for what ranks find out by themselves, and not from arguments.
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
  bool unusable_ = false;  // the complaint is a `PathUnusable`
};

/// Exchanges one blob of bytes, below 2 GiB, with each of `peers` (the relation must be symmetric). Result in the order
/// of `peers`. Collective over the ranks involved; fails like a wait if one of them has died.
std::vector<std::string> exchange(Runtime& runtime, std::span<const int> peers, std::span<const std::string> blobs);

/// Waits like every wait of Tasuki must: `poll` until it returns true, spinning briefly, then yielding, looking now and
/// then whether the ranks in `needs` are alive, and for at most `deadline` seconds. Meanwhile the active operations
/// make progress, so `poll` may be called more often than it asks for, but never from within itself. On failure: marks
/// this rank as having given up and throws `Error` beginning with `what()` (made only then), or what `poll` threw.
template <class Poll, class What>
void wait_until(Runtime& runtime, std::span<const int> needs, Poll&& poll, What&& what);

}  // namespace tasuki

#include "session/wait_until.hpp"
