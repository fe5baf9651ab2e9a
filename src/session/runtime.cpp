// Runtime: how the parts of a context come to life together, and how they let go of each other.
#include "session/runtime.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/mpi.hpp"
#include "session/trace.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kSpins = 300;
constexpr int kSpinsCrowded = 10;

/// MPI's end, if it is ours to bring about: with the last runtime, and only if all of them parted in peace.
struct Session {
  int runtimes = 0;
  bool ours = false;
  bool broken = false;
};
Session session;

std::vector<RuntimePart::Make>& parts() {
  static std::vector<RuntimePart::Make> list;
  return list;
}

int largest_tag(MPI_Comm comm) {
  constexpr int kSmallest = 32767;  // what every MPI allows
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
  if (!communicator_->threads()) {
    session.ours = session.ours || owns_mpi;
    mpi::Query_thread(&thread_level_);
  }
  std::string problem;
  try {
    memory_ = std::make_unique<SharedMemory>(communicator_->rank(), communicator_->size());
  } catch (const Error& error) {
    problem = error.what();
  }
  topology_ = discover(*communicator_, memory_.get(), problem);
  everyone_.resize(topology_.size());
  std::iota(everyone_.begin(), everyone_.end(), 0);
  const auto neighbours = std::count_if(everyone_.begin(), everyone_.end(),
                                        [this](int other) { return topology_.same_host(other, rank()); });
  spins_ = neighbours > sysconf(_SC_NPROCESSORS_ONLN) ? kSpinsCrowded : kSpins;

  liveness_ = std::make_unique<Liveness>(topology_, *memory_, *communicator_);
  channels_ = std::make_unique<Channels>(rank(), largest_tag(messages()));

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
      .same("TASUKI_PMPI", settings_.pmpi ? 1 : 0)
      .settle();
  deadline = settings_.deadline;
  cut_islands(topology_, settings_.island);
  if (!settings_.trace.empty()) begin_trace(settings_.trace, topology_, comm());
  machine.name = topology_.processes[0].name;
  machine.source = "measured";
  machine.threads = topology_.threads;
  for (const Process& process : topology_.processes) machine.ranks.push_back({process.host, process.island, -1});
  for (const auto make : parts()) make(*this);
  if (!topology_.threads) ++session.runtimes;
}

Runtime::~Runtime() {
  const bool peaceful = leave_together();
  if (!peaceful) {
    communicator_->abandon(fmt::format("rank {} left without the others", rank()));
  }
  const bool threads = topology_.threads;
  transports.reset();
  gpus.reset();
  liveness_.reset();
  memory_.reset();
  communicator_.reset();
  if (threads) return;
  session.broken = session.broken || !peaceful;
  if (--session.runtimes == 0) save_trace();
  if (session.runtimes == 0 && session.ours && !session.broken && mpi_running()) MPI_Finalize();
}

/// True once all ranks are here, so that what follows may be collective.
bool Runtime::leave_together() {
  if (!communicator_->running()) return false;
  try {
    if (std::uncaught_exceptions() > exceptions_at_birth_) fail(fmt::format("rank {} left with an exception", rank()));
    if (failed_) return false;
    deadline = std::numeric_limits<double>::infinity();  // the others may be at work for as long as they like
    barrier();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tasuki: leaving a context without the other ranks: %s\n", error.what());
    return false;
  }
}

void Runtime::barrier() {
  and_over_ranks(*this, {0}, "barrier");
}

void Runtime::reserve_active() {
  active_.reserve(++reserved_);
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

void Runtime::progress_all() {
  if (progressing_) return;
  progressing_ = true;
  try {
    // Backwards: an operation that ends removes itself, and the last one, already served, takes its place.
    for (std::size_t i = active_.size(); i-- > 0;)
      if (i < active_.size()) active_[i]->progress();
  } catch (...) {
    progressing_ = false;
    throw;
  }
  progressing_ = false;
}

void Runtime::refuse_if_failed(const std::string& doing) const {
  if (!failed_) return;
  throw Error(
      fmt::format("rank {}: {}: the context has failed before and cannot be used again ({}); end the program, or make "
                  "another context",
                  rank(), doing, failure_));
}

void Runtime::fail(const std::string& why) {
  if (failed_) return;
  failed_ = true;
  failure_ = why;
  liveness_->give_up(why);
  communicator_->abandon(why);
}

}  // namespace tasuki
