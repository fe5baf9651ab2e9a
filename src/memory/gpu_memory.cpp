// GpuMemory: see gpu_memory.hpp.
#include "memory/gpu_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::atomic_ref<std::uint64_t> word(std::byte* p) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(p));
}

// What ranks tell each other when they try out whether they can map each other's memory.
struct Sample {
  GpuAddress address;
  char name[96] = {};
};

}  // namespace

GpuMemory::GpuMemory(Runtime& runtime) : runtime_(runtime), gpu_(*gpu()) {
  names_.resize(static_cast<std::size_t>(runtime.size()));
  why_not_.resize(static_cast<std::size_t>(runtime.size()));
  all_do(runtime_, "using the GPU", [&] {
    ordinal_ = gpu_.current();
    if (ordinal_ == 0) ordinal_ = runtime.topology().processes[runtime.rank()].local % gpu_.count();
    gpu_.select(ordinal_);
    abort_ = {reinterpret_cast<std::uint32_t*>(gpu_.allocate_mapped(64)),
              [&gpu = gpu_](std::uint32_t* p) { gpu.release_mapped(reinterpret_cast<std::byte*>(p)); }};
  });
  try_out();
}

GpuMemory::~GpuMemory() {
  std::atomic_ref<std::uint32_t>(*abort_).store(1);  // freeing waits for kernels: none may wait for other ranks
  open_.clear();
  retired_->clear();
}

bool GpuMemory::complete() const {
  return std::all_of(reach_.begin(), reach_.end(),
                     [](const std::string& row) { return row.find('0') == std::string::npos; });
}

int GpuMemory::processors() const {
  return gpu_.processors(ordinal_);
}

// Every rank of the island maps a sample of every other's memory and reads it. Only what worked both ways counts.
void GpuMemory::try_out() {
  const auto& topology = runtime_.topology();
  const int me = runtime_.rank();
  constexpr std::int64_t kBytes = 256;
  const auto sample = allocate(kBytes);
  const std::int64_t mark = me + 1;
  Sample mine;
  std::string name;
  all_do(runtime_, "using the GPU", [&] {
    gpu_.copy(sample.get(), &mark, sizeof mark);
    std::string why;
    mine.address = find(sample.get(), why);
    name = gpu_.name(ordinal_);
  });
  std::copy_n(name.begin(), std::min(name.size(), sizeof mine.name - 1), mine.name);
  const std::vector<std::string> blobs(static_cast<std::size_t>(runtime_.size()), as_text(mine));
  const auto samples = exchange(runtime_, runtime_.everyone(), blobs);
  for (std::size_t r = 0; r < samples.size(); ++r) names_[r] = from_text<Sample>(samples[r]).name;
  // Processes take turns on one, slowly. Threads would wait for each other's kernels, and CUDA for all before it frees.
  if (const std::string both = shared(); topology.threads && !both.empty()) {
    throw Error(
        fmt::format("rank {}: use_gpu: {}, and are threads of one process: a thread needs a GPU of its own (start "
                    "fewer, select another with cudaSetDevice before, or run a process a rank)",
                    me, both));
  }
  std::vector<std::string> verdicts;
  for (int rank = 0; rank < runtime_.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const auto theirs = from_text<Sample>(samples[r]);
    auto& problem = why_not_[r];
    if (rank != me && !topology.same_host(me, rank)) problem = "another host";
    if (rank != me && problem.empty() && !topology.same_island(me, rank)) problem = "another island";
    if (rank != me && problem.empty() && theirs.address.valid == 0) problem = "its GPU memory cannot be shared";
    if (rank != me && problem.empty()) {
      try {
        const auto seen = map(rank, theirs.address);
        std::int64_t value = 0;
        gpu_.copy(&value, seen.get(), sizeof value);
        if (value != rank + 1) problem = fmt::format("read {} where rank {} wrote {}", value, rank, rank + 1);
        if (problem.empty()) atomics_ = atomics_ && gpu_.adds_to(ordinal_, names_[r]);
      } catch (const Error& error) {
        problem = error.what();
      }
    }
    verdicts.push_back(problem);
  }
  const auto answers = exchange(runtime_, runtime_.everyone(), verdicts);
  for (std::size_t r = 0; r < answers.size(); ++r) {
    if (why_not_[r].empty() && !answers[r].empty()) why_not_[r] = fmt::format("rank {} says: {}", r, answers[r]);
  }
  std::string row;
  for (const auto& problem : why_not_) row += problem.empty() ? '1' : '0';
  reach_ = gather_texts(runtime_, row, "looking for GPUs");  // after this nobody reads another's sample any more
}

std::string GpuMemory::shared() const {
  for (int a = 0; a < runtime_.size(); ++a) {
    for (int b = a + 1; b < runtime_.size(); ++b) {
      if (!runtime_.topology().same_host(a, b) || name(a) != name(b)) continue;
      return fmt::format("ranks {} and {} use the same GPU {}", a, b, name(a));
    }
  }
  return {};
}

std::shared_ptr<std::byte> GpuMemory::allocate(std::int64_t bytes) {
  sweep();
  Retired entry;
  entry.flag = runtime_.memory().allocate(sizeof(std::uint64_t));
  const SharedAddress mine = runtime_.memory().find(entry.flag.get(), sizeof(std::uint64_t));
  const auto addresses = gather_texts(runtime_, as_text(mine), "allocating GPU memory");
  for (int rank = 0; rank < runtime_.size(); ++rank) {
    if (!runtime_.topology().same_host(rank, runtime_.rank())) continue;
    const auto address = from_text<SharedAddress>(addresses[static_cast<std::size_t>(rank)]);
    entry.flags.push_back(runtime_.memory().map(rank, address));
  }
  all_do(runtime_, "GPU memory", [&] {
    // Below a page neighbours share an allocation and so a handle, which only few drivers allow to be opened twice.
    entry.memory = {gpu_.allocate(std::max<std::int64_t>(bytes, 64)), [&gpu = gpu_](std::byte* p) { gpu.release(p); }};
  });
  return {entry.memory.get(), [entry, retired = retired_](std::byte*) {
            word(entry.flag.get()).store(1, std::memory_order_release);
            retired->push_back(entry);
          }};
}

void GpuMemory::abort() {
  std::atomic_ref<std::uint32_t>(*abort_).store(1);
  for (const auto& action : aborts_) action();
}

std::shared_ptr<void> GpuMemory::watch(std::function<void()> check) {
  const auto at = checks_.insert(checks_.end(), std::move(check));
  return {&*at, [this, at](void*) { checks_.erase(at); }};
}

void GpuMemory::check() const {
  for (const auto& check : checks_) check();
}

// Frees what all ranks of the host have given up.
void GpuMemory::sweep() {
  std::erase_if(*retired_, [](const Retired& entry) {
    return std::all_of(entry.flags.begin(), entry.flags.end(),
                       [](std::byte* flag) { return word(flag).load(std::memory_order_acquire) != 0; });
  });
}

GpuAddress GpuMemory::find(const void* p, std::string& why) const {
  GpuAddress address;
  why = gpu_.share(p, address.handle, address.offset);
  address.pointer = reinterpret_cast<std::uint64_t>(p);
  address.valid = why.empty() ? 1 : 0;
  return address;
}

std::shared_ptr<std::byte> GpuMemory::map(int rank, const GpuAddress& address) {
  if (address.valid == 0) throw Error(fmt::format("rank {} has not shared that GPU memory", rank));
  if (runtime_.topology().same_process(rank, runtime_.rank())) {
    auto* const p = reinterpret_cast<std::byte*>(address.pointer);  // NOLINT: of this process
    gpu_.reach(p);
    return {p, [](std::byte*) {}};
  }
  auto& known = open_[{rank, address.handle.bytes}];
  auto base = known.lock();
  if (!base) {
    base = {gpu_.open(address.handle), [](std::byte* p) { gpu()->close(p); }};
    known = base;
  }
  return {base, base.get() + address.offset};
}

GpuMemory& gpu_memory(Runtime& runtime) {
  if (!runtime.gpus) {
    Agreement agreement(runtime, "use_gpu");
    const std::string why = why_no_gpu();
    if (!why.empty()) agreement.complain("this rank cannot use a GPU: " + why);
    agreement.check();
    runtime.gpus = std::make_shared<GpuMemory>(runtime);
  }
  return *runtime.gpus;
}

int use_gpu(const Context& context) {
  return gpu_memory(runtime_of(context)).ordinal();
}

void synchronize(const Context& context, Stream stream) {
  Runtime& runtime = runtime_of(context);
  if (!runtime.gpus) return;
  GpuMemory& memory = *runtime.gpus;
  // CUDA would refuse to look, and that is no reason to end what others are exchanging.
  if (stream != nullptr && gpu()->capturing(stream)) {
    throw Error(
        fmt::format("rank {}: synchronize: the stream is being captured into a graph, where nothing can be "
                    "waited for; call it after the graph's launch",
                    runtime.rank()));
  }
  try {
    wait_until(
        runtime, runtime.everyone(), [stream] { return gpu()->done(stream); },
        [&] { return fmt::format("rank {}: synchronize: the work in the stream did not end", runtime.rank()); });
    memory.check();  // kernels that gave up have ended too
  } catch (const Interruption&) {
    throw;
  } catch (...) {
    memory.abort();  // nothing is left spinning
    throw;
  }
}

}  // namespace tasuki
