// Gpus: see gpus.hpp. Also the public functions that need a context's GPUs.
#include "session/gpus.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "layout/encoding.hpp"
#include "machine/derived.hpp"
#include "session/collective.hpp"
#include "session/deferred_release.hpp"
#include "session/runtime.hpp"
#include "session/start_log.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

// Of all contexts of this process. Those of one GPU belong to one rank, and so to one thread at a time.
struct Registry {
  std::mutex mutex;
  std::vector<Gpus*> all;
};

// Never destroyed: contexts may exist until the program ends.
Registry& registry() {
  static auto* one = new Registry;
  return *one;
}

}  // namespace

Gpus::Gpus(Runtime& runtime)
    : GpuMemory(runtime.memory(), runtime.chosen_gpu(), runtime.place(),
                [&topology = runtime.topology()](int rank) { return topology.same_process(topology.rank, rank); }),
      runtime_(runtime) {
  const std::lock_guard lock(registry().mutex);
  registry().all.push_back(this);
}

Gpus::~Gpus() {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().all, this);
}

std::vector<Gpus*> Gpus::on(int ordinal) {
  const std::lock_guard lock(registry().mutex);
  std::vector<Gpus*> all;
  for (Gpus* one : registry().all)
    if (one->ordinal() == ordinal) all.push_back(one);
  return all;
}

bool Gpus::any() {
  const std::lock_guard lock(registry().mutex);
  return !registry().all.empty();
}

void Gpus::check_untold() const {
  const std::lock_guard lock(registry().mutex);
  for (const Gpus* one : registry().all)
    if (one->ordinal() == ordinal() && !one->runtime_.failed()) one->check();  // who is told marks the context
}

void Gpus::end_waits_for_the_dead() {
  if (watches() == 0 || runtime_.failed()) return;
  const std::string why = runtime_.liveness().failure(runtime_.everyone());
  if (why.empty()) return;
  runtime_.fail(why, ErrorKind::rank_died);
  abort();
}

std::shared_ptr<Gpus> Gpus::find_out(Runtime& runtime) {
  std::shared_ptr<Gpus> gpus;
  all_do(runtime, "using the GPU", [&] { gpus = std::make_shared<Gpus>(runtime); });
  gpus->try_out();
  return gpus;
}

// Every rank of the island maps a sample of every other rank's memory and reads it. A pair counts if both could.
void Gpus::try_out() {
  const Topology& topology = runtime_.topology();
  const int me = runtime_.rank();
  std::vector<int> others;  // other ranks of this host
  for (int rank = 0; rank < topology.size(); ++rank)
    if (rank != me && topology.same_host(rank, me)) others.push_back(rank);

  constexpr std::int64_t kBytes = 256;
  const std::int64_t mark = me + 1;
  std::shared_ptr<std::byte> sample;
  GpuAddress mine;
  std::string name;
  all_do(runtime_, "using the GPU", [&] {
    sample = allocate(kBytes);
    gpu_.copy(sample.get(), &mark, sizeof mark);
    std::string why;
    mine = find(sample.get(), why);
    name = gpu_.name(ordinal());
  });
  names_ = gather_texts(runtime_, name, "looking for GPUs");
  find_shared();
  // Processes that share a GPU take turns, slowly. Threads that share one would deadlock: their kernels wait for each
  // other, and cudaFree waits for all of them.
  if (topology.threads && !shared_gpu_.empty()) {
    throw Error(
        ErrorKind::not_possible,
        fmt::format("rank {}: use_gpu: {}, and are threads of one process: a thread needs a GPU of its own (start "
                    "fewer, select another with cudaSetDevice before, or run a process a rank)",
                    me, shared_gpu_));
  }
  const std::vector<std::string> blobs(others.size(), encoded(mine));
  const auto samples = exchange(runtime_, others, blobs);
  std::vector<std::string> verdicts;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const int rank = others[i];
    const auto theirs = decoded<GpuAddress>(samples[i]);
    std::string problem;
    if (!topology.same_island(me, rank)) problem = "another island";
    if (problem.empty() && theirs.valid == 0) problem = "its GPU memory cannot be shared";
    if (problem.empty()) {
      try {
        const auto seen = map(rank, theirs);
        std::int64_t value = 0;
        gpu_.copy(&value, seen.get(), sizeof value);
        if (value != rank + 1) problem = fmt::format("read {} where rank {} wrote {}", value, rank, rank + 1);
        if (problem.empty()) atomics_ = atomics_ && gpu_.adds_to(ordinal(), this->name(rank));
      } catch (const Error& error) {
        problem = error.what();
      }
    }
    verdicts.push_back(problem);
  }
  const auto answers = exchange(runtime_, others, verdicts);
  why_not_.resize(others.size() + 1);
  for (std::size_t i = 0; i < others.size(); ++i) {
    auto& problem = why_not_[static_cast<std::size_t>(topology.processes[static_cast<std::size_t>(others[i])].local)];
    problem = verdicts[i];
    if (problem.empty() && !answers[i].empty()) problem = fmt::format("rank {} says: {}", others[i], answers[i]);
  }
  std::string row;
  for (const auto& problem : why_not_) row += problem.empty() ? '1' : '0';
  reach_ = gather_texts(runtime_, row, "looking for GPUs");
  complete_ = topology.hosts == 1 && std::ranges::all_of(reach_, [](const std::string& reached) {
                return reached.find('0') == std::string::npos;
              });
}

std::string Gpus::why_not(int rank) const {
  const Topology& topology = runtime_.topology();
  if (!topology.same_host(rank, topology.rank)) return "another host";
  return why_not_[static_cast<std::size_t>(topology.processes[static_cast<std::size_t>(rank)].local)];
}

bool Gpus::reach(int a, int b) const {
  const Topology& topology = runtime_.topology();
  if (!topology.same_host(a, b)) return false;
  const auto place = static_cast<std::size_t>(topology.processes[static_cast<std::size_t>(b)].local);
  return reach_[static_cast<std::size_t>(a)][place] == '1';
}

void Gpus::find_shared() {
  std::map<std::pair<int, std::string>, int> users;  // (host, GPU) -> the first rank that uses it
  for (int rank = 0; rank < runtime_.size(); ++rank) {
    const auto [first, fresh] =
        users.try_emplace({runtime_.topology().processes[static_cast<std::size_t>(rank)].host, name(rank)}, rank);
    if (fresh) continue;
    shared_gpu_ = fmt::format("ranks {} and {} use the same GPU {}", first->second, rank, name(rank));
    return;
  }
}

namespace {

// The machine with groups of ranks that can all access each other's GPU memory. Each rank joins the first group of
// which it can access every member.
Machine with_groups(const Runtime& runtime) {
  std::vector<int> numbers;
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < runtime.size(); ++rank) {
    std::size_t g = 0;
    const auto reaches = [&](int other) { return runtime.gpus->reach(rank, other); };
    while (g < groups.size() && !std::all_of(groups[g].begin(), groups[g].end(), reaches)) ++g;
    if (g == groups.size()) groups.emplace_back();
    groups[g].push_back(rank);
    numbers.push_back(static_cast<int>(g));
  }
  std::string reason;
  for (int rank = 0; rank < runtime.size() && reason.empty(); ++rank) reason = runtime.gpus->why_not(rank);
  return with_gpus(runtime.machine(), numbers, reason);
}

}  // namespace

Gpus& gpu_memory(Runtime& runtime) {
  if (!runtime.gpus) {
    collect_released_with_gpus();
    Agreement agreement(runtime, "use_gpu");
    const std::string why = why_no_gpu();
    if (!why.empty()) agreement.complain("this rank cannot use a GPU: " + why, ErrorKind::not_possible);
    agreement.settle();
    runtime.gpus = Gpus::find_out(runtime);
    runtime.replace_machine(with_groups(runtime));
  }
  return *runtime.gpus;
}

int use_gpu(const Context& context) {
  return gpu_memory(runtime_of(context)).ordinal();
}

// That is the caller's mistake, and other ranks go on.
void refuse_captured(const Runtime& runtime, const char* call, Stream stream) {
  if (stream == nullptr || !gpu()->capturing(stream)) return;
  throw Error(
      fmt::format("rank {}: {}: the stream is being captured into a graph, where nothing can be waited for; call it "
                  "after the graph's launch",
                  runtime.rank(), call));
}

void refuse_foreign(const Runtime& runtime, const std::string& who, Stream stream) {
  if (stream != nullptr && gpu()->capturing(stream)) return;
  const int ordinal = gpu()->device_of(stream);
  const int own = runtime.gpus->ordinal();
  if (ordinal == own) return;
  throw Error(
      stream == nullptr
          ? fmt::format("{}argument 'stream' is the default stream of GPU {}, which is current, but this rank uses GPU "
                        "{}; make that one current (cudaSetDevice) before the call",
                        who, ordinal, own)
          : fmt::format("{}argument 'stream' belongs to GPU {}, but this rank uses GPU {}; make streams after "
                        "use_gpu, or while GPU {} is current (cudaSetDevice)",
                        who, ordinal, own, own));
}

bool Gpus::failed() const {
  return runtime_.failed();
}

void Gpus::compare_starts() {
  if (runtime_.starts && !runtime_.failed()) runtime_.starts->look();
}

namespace {

// The contexts whose operations may be in the stream: those that use its GPU, and this one.
std::vector<Gpus*> users_of(const Runtime& runtime, Stream stream) {
  std::vector<Gpus*> users = Gpus::on(gpu()->device_of(stream));
  Gpus* const own = runtime.gpus.get();
  if (own != nullptr && std::ranges::find(users, own) == users.end()) users.push_back(own);
  return users;
}

constexpr const char* kNoKernel = "; no kernel of Tasuki says that it has waited";

// What kernels have waited for in vain, after a wait for the stream that failed; empty if none says so. A kernel that
// still waits has been told to end, and says so within moments.
std::string awaited_by_kernels(Stream stream, const std::vector<Gpus*>& users) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLast = std::chrono::milliseconds(300);
  std::string text;
  try {
    for (const auto end = Clock::now() + kLast; Clock::now() < end && !gpu()->done(stream);) sched_yield();
  } catch (const Error&) {  // the GPU has failed, and its kernels say nothing
    return text;
  }
  for (const Gpus* one : users) {
    try {
      one->check();
    } catch (const Error& error) {
      text += fmt::format("; {}", error.what());
    }
  }
  return text;
}

// Waits until the stream is done. Kernels of other contexts may wait in it for ranks that only those contexts have.
void await_stream(Runtime& runtime, Stream stream, const std::vector<Gpus*>& users) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLook = std::chrono::milliseconds(300);  // also the time in which what a dead rank sent may arrive
  constexpr unsigned kPollsPerClock = 64;
  auto next = Clock::now() + kLook;
  unsigned polls = 0;
  const auto done = [&] {
    if (gpu()->done(stream)) return true;
    if (++polls % kPollsPerClock != 0 || Clock::now() < next) return false;
    for (Gpus* one : users) {
      one->compare_starts();
      if (one != runtime.gpus.get()) one->end_waits_for_the_dead();
    }
    next = Clock::now() + kLook;
    return false;
  };
  const auto end_kernels = [&] {
    for (Gpus* one : users)
      if (one == runtime.gpus.get() || one->failed()) one->abort();
  };
  try {
    wait_until(runtime, runtime.everyone(), done,
               [&] { return fmt::format("rank {}: synchronize: the work in the stream did not end", runtime.rank()); });
  } catch (const Interruption&) {
    throw;
  } catch (const Error& error) {
    end_kernels();
    const bool late = error.kind() == ErrorKind::deadline;
    if (!late && error.kind() != ErrorKind::rank_died) throw;
    const std::string awaited = awaited_by_kernels(stream, users);
    throw Error(error.kind(), error.what() + (awaited.empty() && late ? std::string(kNoKernel) : awaited));
  } catch (...) {
    end_kernels();
    throw;
  }
}

}  // namespace

void synchronize(const Context& context, Stream stream) {
  Runtime& runtime = runtime_of(context);
  if (!Gpus::any() && used_gpu() == nullptr) return;
  refuse_captured(runtime, "synchronize", stream);
  const std::vector<Gpus*> users = users_of(runtime, stream);
  await_stream(runtime, stream, users);
  std::exception_ptr failure;
  for (Gpus* one : users) {
    try {
      one->check();  // throws if a kernel has given up, for then it has ended too
    } catch (...) {
      one->abort();  // ends the context's kernels that still wait
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tasuki
