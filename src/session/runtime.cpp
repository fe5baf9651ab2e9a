// Runtime: makes the members of a context in order, and releases them together with the other ranks.
#include "session/runtime.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "memory/gpu_driver.hpp"
#include "session/collective.hpp"
#include "session/deferred_release.hpp"
#include "session/gpus.hpp"
#include "session/mixed.hpp"
#include "session/mpi.hpp"
#include "session/process.hpp"
#include "session/trace.hpp"
#include "session/variables.hpp"
#include "support/own_code.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kSpins = 300;
constexpr int kSpinsCrowded = 10;

/// Decides about MPI_Finalize. If Tasuki has started MPI, the last context finalises it, but only if none has failed.
/// Never destroyed: contexts may exist until the program ends.
struct Session {
  std::mutex mutex;
  std::vector<Runtime*> contexts;  ///< over MPI, also those that are released and wait for other ranks
  std::atomic<bool> ours{false};
  std::atomic<bool> broken{false};
  /// A rank died after this one had released a context, or an operation has failed, and the program was not told.
  std::atomic<bool> left_alone{false};

  std::vector<Runtime*> all() {
    const std::lock_guard lock(mutex);
    return contexts;
  }
  void add(Runtime* context) {
    const std::lock_guard lock(mutex);
    contexts.push_back(context);
  }
  void remove(Runtime* context) {
    const std::lock_guard lock(mutex);
    std::erase(contexts, context);
  }
};
Session& session = *new Session;

/// Ends the process with an error status if something has failed and the program was not told.
void end_with_an_error() {
  if (!session.left_alone) return;
  std::fflush(nullptr);
  _exit(EXIT_FAILURE);
}

#ifdef __GLIBC__
void end_as_it_must(int status, void*) {
  if (status == EXIT_SUCCESS) end_with_an_error();
}
#endif

/// Exit handlers run in reverse order. This one is registered early, so that it runs after those of the program.
void watch_the_end() {
#ifdef __GLIBC__
  static const int registered = on_exit(end_as_it_must, nullptr);
#else
  static const int registered = std::atexit(end_with_an_error);
#endif
  (void)registered;
}

std::vector<RuntimePart::Make>& parts() {
  static std::vector<RuntimePart::Make> list;
  return list;
}

int largest_tag(MPI_Comm comm) {
  constexpr int kSmallest = 32767;  // the smallest upper bound of tags that MPI allows
  if (comm == MPI_COMM_NULL) return kSmallest;
  int found = 0;
  int* upper = nullptr;
  mpi::Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&upper), &found);
  return found != 0 ? *upper : kSmallest;
}

}  // namespace

RuntimePart::RuntimePart(Make make) {
  parts().push_back(make);
}

Runtime::Runtime(std::unique_ptr<Communicator> communicator, bool owns_mpi)
    : communicator_(std::move(communicator)), exceptions_at_birth_(std::uncaught_exceptions()) {
  if (!communicator_->threads() && owns_mpi) session.ours = true;
  map_own_code();
  look_for_driver();  // else the first operation would: 20 us where the process has many libraries
  find_ranks();
  Agreement agreement(*this, "Context");
  try {
    settings_ = settings_from_environment();
    if (!settings_.trace.empty() && topology_.threads)
      throw Error(
          "TASUKI_TRACE: a process keeps one record, and the ranks are its threads; run a process a rank to trace");
    if (!settings_.trace.empty()) prepare_trace(settings_.trace);
  } catch (const Error& error) {
    agreement.complain(error.what());
  }
  agreement.same("TASUKI_ISLAND", settings_.island)
      .same("TASUKI_PATH", settings_.path)
      .same("TASUKI_ENGINE", settings_.engine)
      .same("TASUKI_ALGORITHM", settings_.algorithm)
      .same("TASUKI_DEADLINE", fmt::format("{:g}", settings_.deadline))
      .same("TASUKI_PROFILE", settings_.profile)
      .same("TASUKI_TRACE", settings_.trace)
      .same("TASUKI_AGREE", settings_.agree ? 1 : 0)
      .same("TASUKI_CHECK", settings_.check ? 1 : 0)
      .same("TASUKI_CORRECT", settings_.correct ? 1 : 0)
      .same("TASUKI_PMPI", settings_.pmpi ? 1 : 0)
      .settle();
  if (rank() == 0 && !topology_.threads) complain_about_variables_once();
  deadline = settings_.deadline;
  cut_islands(topology_, settings_.island);
  place_ = topology_.processes[static_cast<std::size_t>(rank())].local;
  if (!settings_.trace.empty()) begin_trace(settings_.trace, topology_, comm());
  machine_.source = "measured";
  complete();
}

Runtime::Runtime(std::unique_ptr<Communicator> communicator, const Runtime& parent, std::span<const int> ranks)
    : communicator_(std::move(communicator)), exceptions_at_birth_(std::uncaught_exceptions()) {
  deadline = parent.deadline;
  settings_ = parent.settings_;
  is_part_ = true;
  place_ = parent.place_;
  chosen_gpu_ = parent.gpus ? parent.gpus->ordinal() : parent.chosen_gpu_;
  find_ranks();
  inherit_islands(topology_, parent.topology_, ranks);
  machine_.source = parent.machine_.source;
  machine_.costs = parent.machine_.costs;
  machine_.constants = parent.machine_.constants;
  machine_.corrections = parent.machine_.corrections;
  provenance = parent.provenance;
  complete();
}

// Makes shared memory, topology and liveness. Collective.
void Runtime::find_ranks() {
  if (!communicator_->threads()) mpi::Query_thread(&thread_level_);
  generation_ = Generation::enter(!communicator_->threads());
  watch_the_end();
  std::string problem;
  try {
    memory_ = std::make_unique<SharedMemory>(communicator_->rank(), communicator_->size());
  } catch (const Error& error) {
    problem = error.what();
  }
  topology_ = discover(*communicator_, memory_.get(), problem);
  everyone_.resize(topology_.size());
  std::iota(everyone_.begin(), everyone_.end(), 0);
  spins_ = topology_.crowded(rank()) ? kSpinsCrowded : kSpins;
  liveness_ = std::make_unique<Liveness>(topology_, *memory_, *communicator_);
  channels_ = std::make_unique<Channels>(rank(), largest_tag(messages()));
}

// Makes the machine and what later folders add to a context, after settings and islands are known. Collective.
void Runtime::complete() {
  machine_.name = topology_.processes[0].name;
  machine_.threads = topology_.threads;
  for (const Process& process : topology_.processes) machine_.ranks.push_back({process.host, process.island, -1});
  for (const auto make : parts()) make(*this);
  if (!topology_.threads) session.add(this);
}

Runtime::~Runtime() {
  if (inherited()) {
    leave_to_the_parent();
    return;
  }
  among_.leave();
  if (!left_) communicator_->abandon(fmt::format("rank {} left without the others", rank()));
  const bool threads = topology_.threads;
  transports.reset();
  gpus.reset();
  starts.reset();
  liveness_.reset();
  memory_.reset();
  communicator_.reset();
  if (threads) return;
  if (!left_) session.broken = true;
  session.remove(this);
}

void end_session() noexcept {
  const auto in_use = [] { return static_cast<int>(session.all().size()) > deferred_releases(); };
  if (in_use()) return;
  save_trace();
  if (!session.ours) return;  // whoever has started MPI finalises it
  await_releases();
  if (!in_use() && !session.broken && mpi_running()) MPI_Finalize();
}

void end_with_mpi() noexcept {
  session.ours = false;  // MPI_Finalize has been called
  std::vector<std::pair<Runtime*, std::unique_ptr<Pending>>> held;
  try {
    for (Runtime* context : session.all())
      if (auto others = context->begin_leaving()) held.emplace_back(context, std::move(others));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tasuki: releasing a context: %s\n", error.what());
  }
  await_releases();
  for (const auto& [context, others] : held) have_left(*context, *others);
}

std::unique_ptr<Pending> Runtime::begin_leaving() {
  if (leaving_ || !communicator_->running()) return nullptr;
  if (std::uncaught_exceptions() > exceptions_at_birth_) fail(fmt::format("rank {} left with an exception", rank()));
  if (failed_) return nullptr;
  leaving_ = true;
  return communicator_->leave(unreceived_);
}

void Runtime::left_alone(const std::string& why) {
  fail(why);
  std::fprintf(stderr, "tasuki: leaving a context without the other ranks: %s\n", why.c_str());
  // A rank that gave up has reported it itself; a dead rank could not. Ranks that are threads leave `session` alone.
  if (somebody_died()) session.left_alone = true;
}

void Runtime::left(const Pending& others) {
  left_ = true;
  if (others.words[0] != 0) communicator_->keep_messages();
}

void Runtime::adopt(const std::shared_ptr<Runtime>& part) {
  std::erase_if(parts_, [](const std::weak_ptr<Runtime>& one) { return one.expired(); });
  parts_.push_back(part);
}

void Runtime::give_up(const std::string& why) {
  fail(why);
  for (const auto& one : parts_)
    if (const auto part = one.lock()) part->give_up(why);
}

bool Runtime::somebody_died() const {
  return !topology_.threads && topology_.visible && std::any_of(everyone_.begin(), everyone_.end(), [this](int other) {
    const Process& process = topology_.processes[static_cast<std::size_t>(other)];
    return topology_.same_host(other, rank()) && life_of(process.pid, process.born) == Life::ended;
  });
}

void Runtime::barrier() {
  (void)memory_->allocate(0);  // allocating takes back what others had mapped and have let go
  and_over_ranks(*this, {0}, "barrier");
}

void Runtime::reserve_active() {
  use();
  active_.reserve(reserved_ + 1);
  ++reserved_;
}

void Runtime::unreserve_active() {
  --reserved_;
}

void Runtime::add_active(Progressing* op) {
  active_.push_back(op);
}

void Runtime::remove_active(Progressing* op) {
  const auto found = std::find(active_.begin(), active_.end(), op);
  if (found == active_.end()) return;
  *found = active_.back();
  active_.pop_back();
}

std::uint64_t Runtime::number_of(const std::optional<std::vector<int>>& others) {
  if (others && others->empty()) return 0;
  std::vector<int> ranks;
  if (others) {
    ranks = *others;
    ranks.push_back(rank());
    std::ranges::sort(ranks);
  }
  std::uint64_t number = ++made_[ranks];
  for (const int one : ranks) number = mixed(number, static_cast<std::uint64_t>(one) + 1);
  return mixed(number, ranks.size()) | 1;
}

void Runtime::progress_active() {
  // Backwards: an operation that ends removes itself, and the last one, which has been served already, takes its place.
  for (std::size_t i = active_.size(); i-- > 0;)
    if (i < active_.size()) active_[i]->progress();
}

void Runtime::take_over() {
  among_.take();
  user_.store(this_thread(), std::memory_order_relaxed);
}

/// In a forked child: leaks all members, so that nothing shared is freed and no other rank is told anything.
void Runtime::leave_to_the_parent() {
  among_.forget();
  (void)new auto(std::move(transports));
  (void)new auto(std::move(gpus));
  (void)new auto(std::move(starts));
  (void)liveness_.release();
  (void)memory_.release();
  (void)communicator_.release();
}

void Runtime::refuse_over(const std::string& doing) const {
  if (inherited())
    throw Error(fmt::format(
        "rank {}: {}: this process (pid {}) was forked from the rank (pid {}), and only the rank itself can "
        "use what it has made; start processes that use Tasuki by other means than fork",
        rank(), doing, getpid(), topology_.processes[static_cast<std::size_t>(rank())].pid));
  if (!topology_.threads)
    throw Error(fmt::format("rank {}: {}: MPI has been finalised; do this before MPI_Finalize", rank(), doing));
  generation_ = Generation::now();  // this context does not use MPI, so it goes on
}

void Runtime::refuse(const std::string& doing) const {
  refuse_if_over(doing);
  if (!failed_) return;
  throw Error(
      failure_kind_,
      fmt::format("rank {}: {}: the context has failed before and cannot be used again ({}); end the program, or make "
                  "another context",
                  rank(), doing, failure_));
}

void Runtime::fail_untold(const std::string& failure) {
  fail(failure);
  std::fprintf(stderr, "tasuki: %s; nothing has asked for this failure before the operation was destroyed\n",
               failure.c_str());
  if (!topology_.threads) session.left_alone = true;  // threads share it, and leave it alone
}

void Runtime::fail(const std::string& why, ErrorKind kind) {
  use();
  if (failed_) return;
  failed_ = true;
  failure_ = why;
  failure_kind_ = kind;
  liveness_->give_up(why);
  communicator_->abandon(why);
}

}  // namespace tasuki
