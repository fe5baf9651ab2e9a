// Measuring the machine: every path runs the same few transfers, and their times give its constants.
#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <thread>

#include "calibrate/exchange.hpp"
#include "calibrate/profile_file.hpp"
#include "layout/encoding.hpp"
#include "operations/state.hpp"
#include "paths/path.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/runtime.hpp"
#include "session/trace.hpp"
#include "tasuki/error.hpp"
#include "tasuki/graph.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki {

namespace {

constexpr int kPasses = 3;  // over all paths
// Further sizes on hosts: what begins to be seen beside the latency, what fits into caches, what hardly does. Larger
// ones would take seconds.
constexpr std::array<std::int64_t, 6> kSizes{512, 4 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20};
constexpr std::int64_t kLarge = 32 << 10;  // about the size of a face
constexpr std::int64_t kLargeOnGpu = 1 << 20;
constexpr std::int64_t kBulk = 512 << 10;  // enough to show a path's full speed, and what it does to caches
constexpr std::int64_t kBulkOnGpu = 64 << 20;
constexpr std::int64_t kRuns = 2048;
constexpr std::int64_t kRunsOnGpu = 64 << 10;
// Bytes between the runs of 8 bytes. Rows of 64 numbers and their shadows, as programs have them. 512 would put all
// runs into an eighth of a core's cache, which costs four times as much.
constexpr std::int64_t kStride = 528;
constexpr std::int64_t kStrideOnGpu = 512;
constexpr int kReplayed = 8;  // transfers, or pairs of them, in a graph

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One path between two ranks while it is measured.
class Ways {
 public:
  Ways(const Context& context, const Path& path, int a, int b, std::byte* from, std::byte* to)
      : context_(context), on_gpu_(path.memory == Memory::device), a_(a), b_(b), from_(from), to_(to) {
    options_.path = a == b ? "auto" : path.name;  // what stays on a rank cannot be forced
    if (!on_gpu_) options_.engine = "inline";
  }

  /// Seconds of one transfer. What has arrived is sent back from the memory that it arrived in, so that the bytes
  /// really change caches, as they do in programs. A rank alone copies between two blocks of memory.
  double there_and_back(const Layout& layout) const {
    std::byte* at = a_ == b_ ? to_ : from_;
    Transfer there(context_, {a_, from_, layout}, {b_, at, layout}, options_);
    Transfer back(context_, {b_, at, layout}, {a_, from_, layout}, options_);
    return time(layout, {&there, &back}) / 2;
  }
  /// Seconds of one transfer, of transfers in one direction that follow each other.
  double one_after_another(const Layout& layout) const {
    std::byte* at = a_ == b_ ? to_ : from_;
    Transfer there(context_, {a_, from_, layout}, {b_, at, layout}, options_);
    return time(layout, {&there});
  }
  /// Seconds of one transfer from the same memory again and again, each after a word has come back; less that word's.
  double again(const Layout& layout) const {
    std::byte* at = a_ == b_ ? to_ : from_;
    const Layout word = Layout::bytes(8);
    Transfer there(context_, {a_, from_, layout}, {b_, at, layout}, options_);
    if (a_ == b_) return time(layout, {&there});
    Transfer back(context_, {b_, to_, word}, {a_, to_, word}, options_);
    return time(layout, {&there, &back}) - there_and_back(word);
  }
  /// The same both ways at once.
  double both_again(const Layout& layout) const {
    Exchange there(context_, a_, b_, from_, to_, layout, options_);
    return time(layout, {&there});
  }
  /// Seconds in which both ranks get the other's bytes. These are then sent back in the same way.
  double both(const Layout& layout) const {
    Exchange there(context_, a_, b_, from_, to_, layout, options_);
    Exchange back(context_, a_, b_, to_, from_, layout, options_);
    return time(layout, {&there, &back}) / 2;
  }

 private:
  // Both ranks must do equally many rounds, so their number is fixed. The fastest batch was disturbed least. On hosts
  // there are many short batches, so that some of them fall between disturbances; on GPUs a batch is long compared with
  // the time in which the host notices its end.
  double time(const Layout& layout, std::initializer_list<Operation*> operations) const {
    try {
      return time_until_it_fails(layout, operations);
    } catch (const std::exception& error) {
      runtime_of(context_).fail(error.what());  // the other end would wait
      throw;
    }
  }

  double time_until_it_fails(const Layout& layout, std::initializer_list<Operation*> operations) const {
    const bool word = layout.size() < 1024;
    if (on_gpu_) return time_on_gpu(word ? 20 : layout.size() <= kLargeOnGpu ? 4 : 1, operations);
    const auto once = [&] {
      for (Operation* operation : operations) {
        operation->start();
        operation->wait();
      }
    };
    for (int i = 0; i < (layout.size() >= 32 << 20 ? 1 : 3); ++i) once();
    if (layout.size() >= 32 << 20) return least(2, 1, once, [] {});
    if (layout.size() >= 1 << 20) return least(4, 1, once, [] {});
    return least(word ? 10 : 24, word ? 50 : 2, once, [] {});
  }

  // Replayed as a graph, as a solver's iterations are. Launched one by one, short transfers would take as long as the
  // launches.
  double time_on_gpu(int launches, std::initializer_list<Operation*> operations) const {
    Fork fork;
    const Stream stream = fork.branch(nullptr);
    const auto several = [&] {
      for (int i = 0; i < kReplayed; ++i) {
        for (Operation* operation : operations) operation->run(stream);
      }
    };
    const auto finish = [&] { synchronize(context_, stream); };
    several();  // CUDA does some things lazily at first use, and these may not be captured
    finish();
    std::optional<Graph> graph;
    try {
      graph.emplace(stream, several);
    } catch (const Error&) {  // what CUDA cannot capture is launched one by one in programs too
    }
    return least(
               4, launches, [&] { graph ? graph->launch(stream) : several(); }, finish) /
           kReplayed;
  }

  // Seconds of one of `rounds`, in the fastest batch.
  template <class Once, class Finish>
  static double least(int batches, int rounds, const Once& once, const Finish& finish) {
    double best = 1e9;
    for (int batch = 0; batch < batches; ++batch) {
      const double begin = now();
      for (int i = 0; i < rounds; ++i) once();
      finish();
      best = std::min(best, (now() - begin) / rounds);
    }
    return best;
  }

  const Context& context_;
  bool on_gpu_;
  int a_;
  int b_;
  std::byte* from_;
  std::byte* to_;
  OperationOptions options_;
};

// The rank with which rank 0 measures the path: the farthest rank that the path joins with rank 0 (another host is
// farther than another island, that is farther than the same island). -1 if there is none.
int partner_for(const Context& context, const Path& path) {
  const Machine& machine = runtime_of(context).machine;
  if (machine.unusable.contains(path.name)) return -1;
  int best = -1;
  int farthest = -1;
  for (int rank = 0; rank < context.size(); ++rank) {
    if (!path.joins(machine, 0, rank)) continue;
    const int far = machine.same_host(0, rank) ? (machine.same_island(0, rank) ? 0 : 1) : 2;
    if (far > farthest) best = rank;
    farthest = std::max(far, farthest);
  }
  return best;
}

// Seconds of each measured transfer, in one direction or in both at once.
struct Seconds {
  double word = 0, large = 0, scattered = 0, bulk = 0;
  std::array<double, kSizes.size()> sizes{};
  void keep_least(const Seconds& other) {
    word = std::min(word, other.word);
    large = std::min(large, other.large);
    scattered = std::min(scattered, other.scattered);
    bulk = std::min(bulk, other.bulk);
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::min(sizes[i], other.sizes[i]);
  }
};

struct Times {
  Seconds one_way, both_ways;
  Seconds own, own_both;  // in memory that ranks do not share
  bool with_own = false;
  double after = 0;  // of words that follow each other in one direction
  void keep_least(const Times& other) {
    one_way.keep_least(other.one_way);
    both_ways.keep_least(other.both_ways);
    own.keep_least(other.own);
    own_both.keep_least(other.own_both);
    after = std::min(after, other.after);
  }
};

// `again` times transfers from the same memory.
template <class Time, class Again>
Seconds seconds_for(const Time& time, const Again& again, bool on_gpu) {
  const Layout word = Layout::bytes(8);
  Seconds seconds;
  seconds.word = time(word);
  seconds.large = time(Layout::bytes(on_gpu ? kLargeOnGpu : kLarge));
  seconds.scattered = time(Layout::hvector(on_gpu ? kRunsOnGpu : kRuns, 1, on_gpu ? kStrideOnGpu : kStride, word));
  seconds.bulk = time(Layout::bytes(on_gpu ? kBulkOnGpu : kBulk));
  for (std::size_t i = 0; i < kSizes.size() && !on_gpu; ++i) seconds.sizes[i] = again(Layout::bytes(kSizes[i]));
  return seconds;
}

void set_constants(CostSection& section, const std::string& prefix, const Seconds& t, bool on_gpu) {
  constexpr double kLeast = 1e-9;
  const auto large = static_cast<double>(on_gpu ? kLargeOnGpu : kLarge);
  const auto bulk = static_cast<double>(on_gpu ? kBulkOnGpu : kBulk);
  const auto runs = static_cast<double>(on_gpu ? kRunsOnGpu : kRuns);
  const double bandwidth = large / std::max(t.large - t.word, kLeast);
  section[prefix + "latency"] = std::max(t.word, kLeast);
  section[prefix + "bandwidth"] = bandwidth;
  section[prefix + "per_run"] = std::max((t.scattered - t.word - runs * 8 / bandwidth) / runs, 1e-11);
  section["bulk_from"] = large;
  section[prefix + "bulk_bandwidth"] = (bulk - large) / std::max(t.bulk - t.large, kLeast);
  if (on_gpu) return;
  const auto sized = [&](std::int64_t bytes, double seconds) {
    section[sized_bandwidth(prefix, bytes)] = static_cast<double>(bytes) / std::max(seconds - t.word, kLeast);
  };
  for (std::size_t i = 0; i < kSizes.size(); ++i) sized(kSizes[i], t.sizes[i]);
}

// Memory in which a path is measured.
struct Rooms {
  std::byte *from, *to;          // where peers can map it
  std::byte *own_from, *own_to;  // where they cannot
};

// Between rank 0 and `partner`, which call it both.
Times measure_between(const Context& context, const Path& path, int partner, const Rooms& rooms) {
  const bool on_gpu = path.memory == Memory::device;
  const Ways ways(context, path, 0, partner, rooms.from, rooms.to);
  const auto there = [](const Ways& w) { return [&w](const Layout& layout) { return w.there_and_back(layout); }; };
  const auto both = [](const Ways& w) { return [&w](const Layout& layout) { return w.both(layout); }; };
  const auto again = [](const Ways& w) { return [&w](const Layout& layout) { return w.again(layout); }; };
  const auto both_again = [](const Ways& w) { return [&w](const Layout& layout) { return w.both_again(layout); }; };
  Times t;
  t.one_way = seconds_for(there(ways), again(ways), on_gpu);
  t.after = ways.one_after_another(Layout::bytes(8));
  if (partner != 0) t.both_ways = seconds_for(both(ways), both_again(ways), on_gpu);
  if (on_gpu) return t;
  const Ways own(context, path, 0, partner, rooms.own_from, rooms.own_to);
  try {
    t.own = seconds_for(there(own), again(own), on_gpu);
    if (partner != 0) t.own_both = seconds_for(both(own), both_again(own), on_gpu);
    t.with_own = true;
  } catch (const PathUnusable&) {  // on both ranks: this path needs shared memory
  }
  return t;
}

// A copy within rank 0's memory, by itself and while `beside`, another rank of the host, copies as well. Both call it.
Times measure_alone(const Context& context, const Path& path, int beside, const Rooms& rooms) {
  const bool on_gpu = path.memory == Memory::device;
  const int me = context.rank();
  Times t;
  const auto time = [&](std::byte* from, std::byte* to, Seconds& alone, Seconds& together) {
    const Ways ways(context, path, me, me, from, to);
    const auto copy = [&](const Layout& layout) { return ways.again(layout); };
    if (me == 0) alone = seconds_for(copy, copy, on_gpu);
    if (me == 0) t.after = ways.one_after_another(Layout::bytes(8));
    if (beside < 0) return;
    const auto beside_it = [&](const Layout& layout) {
      const std::array<int, 1> other{me == 0 ? beside : 0};
      exchange(runtime_of(context), other, std::array<std::string, 1>{"now"});
      return copy(layout);
    };
    together = seconds_for(beside_it, beside_it, on_gpu);
  };
  time(rooms.from, rooms.to, t.one_way, t.both_ways);
  if (on_gpu) return t;
  time(rooms.own_from, rooms.own_to, t.own, t.own_both);
  t.with_own = true;
  return t;
}

// For a path within a rank: another rank of rank 0's host. -1: there is none.
int beside_for(const Context& context, const Path& path) {
  const Machine& machine = runtime_of(context).machine;
  for (int rank = 1; rank < context.size() && path.memory == Memory::host; ++rank)
    if (machine.same_host(0, rank)) return rank;
  return -1;
}

// Nothing if the path cannot be used here: its offers will say why. What fails otherwise is thrown by all ranks.
// Collective.
std::optional<Times> measure(const Context& context, const Path& path, const Rooms& rooms) {
  Runtime& runtime = runtime_of(context);
  const int partner = partner_for(context, path);
  const int beside = partner == 0 ? beside_for(context, path) : -1;
  struct {
    bool usable = false;
    Times times;
  } found;
  Agreement outcome(runtime, fmt::format("measuring path {}", path.name));
  if (runtime.rank() == 0 || runtime.rank() == partner || runtime.rank() == beside) {
    try {
      found.times =
          partner == 0 ? measure_alone(context, path, beside, rooms) : measure_between(context, path, partner, rooms);
      found.usable = true;
    } catch (const PathUnusable&) {  // on both ranks
      found.usable = false;
    } catch (const Interruption&) {
      throw;
    } catch (const std::exception& error) {
      if (runtime.failed()) throw;  // the other ranks know
      outcome.complain(error.what());
    }
  }
  outcome.settle();
  found = decoded<decltype(found)>(text_of_root(runtime, encoded(found), "measuring the machine"));
  if (!found.usable) return {};
  return found.times;
}

CostSection constants(const Path& path, const Times& t) {
  const bool on_gpu = path.memory == Memory::device;
  CostSection section;
  set_constants(section, "", t.one_way, on_gpu);
  if (t.both_ways.word > 0) set_constants(section, "mutual_", t.both_ways, on_gpu);
  if (t.with_own) set_constants(section, "own_", t.own, on_gpu);
  if (t.with_own && t.own_both.word > 0) set_constants(section, "own_mutual_", t.own_both, on_gpu);
  // Links occur in both situations, so the latency is the mean of the two.
  const double latency = (t.one_way.word + t.after) / 2;
  section["latency"] = std::max(latency, section["latency"] * 1e-3);
  if (t.with_own) section["own_latency"] = section["latency"];
  return section;
}

// Reads the profile that an earlier run has left, if there is one. A part has its parent's prices. Collective.
void read_profile(Runtime& runtime) {
  if (runtime.is_part()) return;
  const Profile kept = load_profile(runtime);
  for (const auto& [path, section] : kept.sections()) runtime.machine.costs[path] = cost_of(section);
  runtime.machine.corrections = kept.corrections();
}

// Memory for measuring.
std::shared_ptr<std::byte> room_for(const Context& context, Memory memory) {
  Runtime& runtime = runtime_of(context);
  return memory == Memory::device ? runtime.gpus->allocate(std::max(kBulkOnGpu, kRunsOnGpu * kStrideOnGpu))
                                  : shared_alloc(context, kSizes.back());
}

// The same as programs have it: NumPy asks for large pages for arrays of this size, too.
std::shared_ptr<std::byte> own_room() {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  const auto bytes = static_cast<std::size_t>(kSizes.back());
  std::shared_ptr<std::byte> room(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)), std::free);
  if (!room) throw Error(fmt::format("there is no memory for {} bytes in which paths are measured", bytes));
  madvise(room.get(), bytes, MADV_HUGEPAGE);
  std::fill_n(room.get(), bytes, std::byte{3});
  return room;
}

// Measures the paths for this kind of memory that have no price yet. Collective.
bool measure_missing(const Context& context, Memory memory, Profile& found) {
  Machine& machine = runtime_of(context).machine;
  std::vector<const Path*> missing;
  for (const Path& path : all_paths()) {
    if (path.memory == memory && !machine.cost(path.name).measured && partner_for(context, path) >= 0)
      missing.push_back(&path);
  }
  if (missing.empty()) return false;
  std::shared_ptr<std::byte> from;
  std::shared_ptr<std::byte> to;
  std::shared_ptr<std::byte> own_from;
  std::shared_ptr<std::byte> own_to;
  // A rank that gets none must not leave another waiting for it.
  all_do(runtime_of(context), "measuring the machine", [&] {
    const auto meets_us = [&](const Path* path) {
      const int partner = partner_for(context, *path);
      return partner == context.rank() || (partner == 0 && beside_for(context, *path) == context.rank());
    };
    if (context.rank() != 0 && std::ranges::none_of(missing, meets_us)) return;
    from = room_for(context, memory);
    to = room_for(context, memory);
    if (memory == Memory::device) return;
    std::fill_n(from.get(), kSizes.back(), std::byte{1});
    std::fill_n(to.get(), kSizes.back(), std::byte{2});
    own_from = own_room();
    own_to = own_room();
  });
  // Several passes over all paths: a disturbance of some milliseconds is over when a path's turn comes again.
  std::map<const Path*, std::optional<Times>> times;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const Path* path : missing) {
      if (pass > 0 && !times[path]) continue;
      const std::optional<Times> now = measure(context, *path, {from.get(), to.get(), own_from.get(), own_to.get()});
      if (pass == 0 || !now) {
        times[path] = now;
      } else {
        times[path]->keep_least(*now);
      }
    }
  }
  for (const Path* path : missing)
    if (times[path]) found.set(path->name, constants(*path, *times[path]));
  return true;
}

void calibrate(const Context& context) {
  Runtime& runtime = runtime_of(context);
  const TracePause pause;
  Profile found;
  bool any = false;
  for (const Memory memory : {Memory::host, Memory::device}) {
    if (!measure_missing(context, memory, found)) continue;
    any = true;
    // They hold for the prices that were there.
    std::erase_if(runtime.machine.corrections, [&](const Correction& one) { return one.memory == memory; });
  }
  if (!any) return;
  // All new prices take effect together. Until then every measuring transfer is planned with the same ones.
  for (const auto& [path, section] : found.sections()) runtime.machine.costs[path] = cost_of(section);
  keep_profile(runtime);
}

const RuntimePart profile{read_profile};
const CalibrationHook hook{calibrate};

}  // namespace
}  // namespace tasuki
