// Measuring the machine: every path runs the same three transfers, and their times give its constants.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "engines/trace.hpp"
#include "paths/path.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/transfer.hpp"
#include "topology/collective.hpp"
#include "topology/runtime.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kLarge = 32 << 10;      // about a face
constexpr std::int64_t kLargeOnGpu = 1 << 20;  // the same
constexpr std::int64_t kRuns = 2048;
constexpr std::int64_t kRunsOnGpu = 64 << 10;
constexpr std::int64_t kStride = 512;  // bytes between the runs of 8 bytes
constexpr int kBatches = 7;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds that one transfer takes, from `a` to `b`. What arrives goes back from the same memory, so that the bytes
// really change caches, as a program's do; a rank alone copies between two places.
double time_transfer(const Context& context, const std::string& path, int a, int b, std::byte* from, std::byte* to,
                     const Layout& layout, bool stream = false) {
  OperationOptions options;
  options.path = a == b ? "auto" : path;  // what stays on a rank cannot be forced
  const bool on_gpu = memory_of(from) == Memory::device;
  if (!on_gpu) options.engine = "inline";
  std::byte* at = a == b ? to : from;
  Transfer there(context, {a, from, layout}, {b, at, layout}, options);
  Transfer back(context, {b, at, layout}, {a, from, layout}, options);
  if (context.rank() != a && context.rank() != b) return 0;
  const auto once = [&] {
    if (on_gpu) {
      there.run(nullptr);
      if (!stream) back.run(nullptr);
      return;
    }
    there.start();
    there.wait();
    if (stream) return;
    back.start();
    back.wait();
  };
  for (int i = 0; i < 3; ++i) once();
  // Both ends must do equally many rounds, so the number is fixed; the best batch has met the fewest disturbances.
  const int rounds = layout.size() < 1024 ? 200 : 20;
  double best = 1e9;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = now();
    for (int i = 0; i < rounds; ++i) once();
    if (on_gpu) synchronize(context, nullptr);
    best = std::min(best, (now() - begin) / (stream ? rounds : 2 * rounds));
  }
  return best;
}

// The rank that shows what the path is for: the farthest that it joins with rank 0 (another host rather than another
// island rather than a neighbour); -1 if there is none.
int partner_for(const Context& context, const Path& path) {
  const Topology& topology = context.runtime().topology();
  int best = -1;
  int farthest = -1;
  for (int rank = 0; rank < context.size(); ++rank) {
    if (!path.joins(topology, 0, rank)) continue;
    const int far = topology.same_host(0, rank) ? (topology.same_island(0, rank) ? 0 : 1) : 2;
    if (far > farthest) best = rank;
    farthest = std::max(far, farthest);
  }
  return best;
}

Profile::Section measure(const Context& context, const Path& path, std::byte* from, std::byte* to) {
  const bool on_gpu = path.memory() == Memory::device;
  const std::int64_t large = on_gpu ? kLargeOnGpu : kLarge;
  const std::int64_t runs = on_gpu ? kRunsOnGpu : kRuns;
  const int partner = partner_for(context, path);
  if (partner < 0) return {};
  const auto time = [&](const Layout& layout) {
    return time_transfer(context, path.name(), 0, partner, from, to, layout);
  };
  std::array<double, 4> seconds{};
  try {
    seconds[0] = time(Layout::bytes(8));
    seconds[1] = time(Layout::bytes(large));
    seconds[2] = time(Layout::hvector(runs, 1, kStride, Layout::bytes(8)));
    seconds[3] = time_transfer(context, path.name(), 0, partner, from, to, Layout::bytes(8), true);
  } catch (const Error&) {
    return {};  // all ranks throw alike when a path cannot be used here; its offers will say why
  }
  using Seconds = std::array<double, 4>;
  seconds = from_text<Seconds>(text_of_root(context.runtime(), as_text(seconds), "measuring the machine"));
  // A plan's link may find itself in either position. On GPUs links to and from a rank are served at once, and wait for
  // nothing but each other: the better time is nearer.
  const double between = on_gpu ? std::min(seconds[0], seconds[3]) : (seconds[0] + seconds[3]) / 2;
  const double latency = std::max(between, 1e-9);
  const double bandwidth = static_cast<double>(large) / std::max(seconds[1] - seconds[0], 1e-9);
  const double per_run = std::max(
      (seconds[2] - seconds[0] - static_cast<double>(runs * 8) / bandwidth) / static_cast<double>(runs), 1e-11);
  return {{"latency", latency}, {"bandwidth", bandwidth}, {"per_run", per_run}};
}

}  // namespace

void complete_profile(const Context& context, PathSet& paths) {
  Runtime& runtime = context.runtime();
  paths.profile = load_profile(runtime);
  Profile measured = paths.profile;
  bool any = false;
  const TracePause pause;
  for (const Memory memory : {Memory::host, Memory::device}) {
    std::vector<const Path*> missing;
    for (const auto& path : paths.all()) {
      if (path->memory() == memory && !paths.profile.has(path->name()) && partner_for(context, *path) >= 0) {
        missing.push_back(path.get());
      }
    }
    if (missing.empty()) continue;
    any = true;
    const std::int64_t room =
        memory == Memory::device ? std::max(kLargeOnGpu, kRunsOnGpu * kStride) : std::max(kLarge, kRuns * kStride);
    const auto from = memory == Memory::device ? runtime.gpus->allocate(room) : shared_alloc(context, room);
    const auto to = memory == Memory::device ? runtime.gpus->allocate(room) : shared_alloc(context, room);
    if (memory == Memory::host) {
      std::fill_n(from.get(), room, std::byte{1});
      std::fill_n(to.get(), room, std::byte{2});
    }
    for (const Path* path : missing) {
      auto section = measure(context, *path, from.get(), to.get());
      if (!section.empty()) measured.set(path->name(), std::move(section));
    }
  }
  if (!any) return;
  paths.profile = measured;
  // With more ranks than cores the numbers say more about the scheduler than about the machine: good for today only.
  int local = 0;
  for (const auto& process : runtime.topology().processes)
    local += process.host == runtime.topology().processes[0].host;
  if (local <= static_cast<int>(std::thread::hardware_concurrency())) save_profile(runtime, paths.profile);
}

PathSet& paths_of(const Context& context, const std::string& wanted) {
  Runtime& runtime = context.runtime();
  if (!runtime.paths) runtime.paths = std::make_shared<PathSet>(runtime);
  PathSet& paths = *runtime.paths;
  std::string usable;
  for (const auto& path : paths.all()) {
    if (runtime.gpus) path->prepare(runtime, wanted);
    if (partner_for(context, *path) >= 0) usable += path->name() + ' ';
  }
  // The transfers that measure come here too, and have it seen to by whoever called them.
  if (usable != paths.measured && !paths.measuring) {
    paths.measuring = true;
    try {
      complete_profile(context, paths);
    } catch (...) {
      paths.measuring = false;
      throw;
    }
    paths.measuring = false;
    paths.measured = usable;
    for (const auto& path : paths.all()) {
      if (runtime.gpus) path->prepare(runtime, wanted);  // again: each transfer wanted its own
    }
  }
  return paths;
}

}  // namespace tasuki
