// tasuki-bench-kernel: what communication costs that kernels start by themselves. Ranks 0 and 1 play ping-pong inside
// one launch; barriers and halos are of all ranks. Microseconds one way, or of an epoch, of the slowest rank: median
// and 10th to 90th percentile of launches. Halos are timed by groups of several sizes and by each path, and as the host
// runs them, on GPUs in a graph. Compiled by nvcc it runs on GPUs, else on threads of the host.
//
//   tasuki-bench-kernel [--iterations N] [--launches N] [--threads N] [--blocks N] [--ranks N] [--only TEXT]
//
// --ranks: as so many threads of this process, each with a GPU of its own. --only: cases whose name has this.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace {

namespace device = tasuki::device;
using device::Byte;
using device::Word;

constexpr Word kMost = 1 << 20;  // bytes
constexpr Word kWarmUp = 20;     // ping-pongs before the clock is looked at
constexpr Word kFewest = 64;     // bytes of a block's share
constexpr int kMostBlocks = 1024;

#if defined(__CUDACC__)
constexpr int kMostThreads = 512;  // of a halo's block
#define AT_MOST(threads) __launch_bounds__(threads)
#define PARAMETER const __grid_constant__
#else
#define AT_MOST(threads)
#define PARAMETER
#endif

struct Run {
  Word bytes;
  Word iterations;
  Word first;    // number of the first ping-pong: signals only grow
  Byte* memory;  // not in the window
  Word* times;   // ns, by block
};

/// `ping` and `pong` tell whether they have come to their end; both ranks time all of it.
template <class Group, class Ping>
TASUKI_DEVICE void play(const device::Team& team, const Group& group, const Run& run, Ping&& ping) {
  if (team.rank > 1) return;
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    const Word number = run.first + i;
    if (team.rank == 0) {
      if (!ping(true, number) || !ping(false, number)) return;
    } else {
      if (!ping(false, number) || !ping(true, number)) return;
    }
  }
  if (group.thread() == 0) run.times[device::this_block().block()] = device::detail::now_ns() - begin;
}

TASUKI_KERNEL void words(device::Team team, Run run) {
  const auto group = device::this_block();
  const int other = 1 - team.rank;
  play(team, group, run, [&](bool sends, Word number) {
    Word word = 0;
    return sends ? device::put_word(team, group, other, 0, number, number)
                 : device::wait_word(team, group, other, 0, number, word);
  });
}

TASUKI_KERNEL void puts(device::Team team, Run run) {
  const auto group = device::this_block();
  const int other = 1 - team.rank;
  const Word share = run.bytes / static_cast<Word>(group.blocks());
  const Word at = share * static_cast<Word>(group.block());
  play(team, group, run, [&](bool sends, Word number) {
    return sends ? device::put_with_signal(team, group, other, at, run.memory + at, share, group.block(), number)
                 : device::wait_signal(team, group, other, group.block(), number);
  });
}

// `posted`: the receive is posted before its message is sent.
TASUKI_KERNEL void messages(device::Messages m, Run run, bool in_window, bool posted) {
  const auto group = device::this_block();
  const int other = 1 - m.team.rank;
  auto* const from = in_window ? static_cast<Byte*>(device::window(m.team, m.team.rank)) : run.memory;
  device::Request receive;
  if (m.team.rank < 2 && posted && !device::irecv(m, group, other, run.memory + kMost, run.bytes, 5, receive)) return;
  play(m.team, group, run, [&](bool sends, Word number) {
    device::Request send;
    if (sends) return device::isend(m, group, other, from, run.bytes, 5, send) && device::wait(m, group, send);
    if (!posted && !device::irecv(m, group, other, run.memory + kMost, run.bytes, 5, receive)) return false;
    if (!device::wait(m, group, receive)) return false;
    const bool last = number + 1 == run.first + run.iterations + kWarmUp;
    return !posted || last || device::irecv(m, group, other, run.memory + kMost, run.bytes, 5, receive);
  });
}

TASUKI_KERNEL void barriers(device::Team team, Run run, bool all_blocks) {
  const auto block = device::this_block();
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    if (!(all_blocks ? device::barrier(team, device::this_grid()) : device::barrier(team, block))) return;
  }
  if (block.thread() == 0) run.times[block.block()] = device::detail::now_ns() - begin;
}

// A pair of copies takes turns where `alternates` says so.
TASUKI_KERNEL void AT_MOST(kMostThreads) epochs(PARAMETER device::Handle halo, Run run, bool alternates) {
  const auto block = device::this_block();
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    const Word swaps = alternates ? i : 0;
    const bool good =
        block.blocks() == 1 ? device::run(halo, block, swaps) : device::run(halo, device::this_grid(), swaps);
    if (!good) return;
  }
  if (block.thread() == 0) run.times[block.block()] = device::detail::now_ns() - begin;
}

struct Options {
  int iterations = 1000;
  int launches = 15;
  int threads = 256;
  int blocks = 16;
  int ranks = 0;  // threads of this process; 0: processes of MPI
  std::string only;
};

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    int* const value = name == "--iterations" ? &options.iterations
                       : name == "--launches" ? &options.launches
                       : name == "--threads"  ? &options.threads
                       : name == "--blocks"   ? &options.blocks
                       : name == "--ranks"    ? &options.ranks
                                              : nullptr;
    if (name == "--only" && i + 1 < argc) {
      options.only = argv[i + 1];
      continue;
    }
    if (value != nullptr && i + 1 < argc) *value = std::atoi(argv[i + 1]);
    if (value != nullptr && *value > 0) continue;
    std::fprintf(stderr,
                 "usage: %s [--iterations N] [--launches N] [--threads N] [--blocks N] [--ranks N] [--only TEXT], "
                 "numbers above 0\n",
                 argv[0]);
    std::exit(EXIT_FAILURE);
  }
  return options;
}

/// Memory that kernels reach.
std::shared_ptr<std::byte> allocate(std::size_t bytes) {
#if defined(__CUDACC__)
  void* p = nullptr;
  TASUKI_CUDA(cudaMalloc, &p, bytes);
  TASUKI_CUDA(cudaMemset, p, 0, bytes);
  return {static_cast<std::byte*>(p), [](std::byte* q) { cudaFree(q); }};
#else
  return {static_cast<std::byte*>(std::calloc(bytes, 1)), [](std::byte* q) { std::free(q); }};
#endif
}
void fetch(void* to, const void* from, std::size_t bytes) {
#if defined(__CUDACC__)
  TASUKI_CUDA(cudaMemcpy, to, from, bytes, cudaMemcpyDefault);
#else
  std::memcpy(to, from, bytes);
#endif
}

class Bench {
 public:
  Bench(const tasuki::Context& context, const Options& options)
      : context_(context),
        options_(options),
        memory_(allocate(2 * kMost)),
        times_(allocate(sizeof(Word) * kMostBlocks)) {
#if defined(__CUDACC__)
    TASUKI_CUDA(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking);
#endif
  }
#if defined(__CUDACC__)
  ~Bench() {
    cudaStreamDestroy(stream_);
  }
#endif
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool wants(const std::string& name) const {
    return name.find(options_.only) != std::string::npos;
  }

  /// `ways` of an iteration; `launch` gets the launch's options and the run, and waits.
  template <class Launch>
  void measure(const std::string& name, Word bytes, int blocks, double ways, Launch&& launch) {
    measure(name, bytes, blocks, options_.threads, ways, launch);
  }
  template <class Launch>
  void measure(const std::string& name, Word bytes, int blocks, int threads, double ways, Launch&& launch) {
    if (!wants(name)) return;
    std::vector<double> all;
    for (int n = 0; n < options_.launches; ++n) {
      tasuki::ResidentOptions how;
      how.blocks = blocks;
      how.threads = threads;
      how.stream = stream_;
      const Run run{bytes, static_cast<Word>(options_.iterations), first_, reinterpret_cast<Byte*>(memory_.get()),
                    reinterpret_cast<Word*>(times_.get())};
      first_ += run.iterations + kWarmUp;
      context_.barrier();
      launch(how, run);
      std::vector<Word> times(static_cast<std::size_t>(blocks));
      fetch(times.data(), times_.get(), times.size() * sizeof(Word));
      add(all, static_cast<double>(*std::max_element(times.begin(), times.end())) / ways);
    }
    print(name, bytes, std::to_string(blocks) + " x " + std::to_string(threads), all);
  }

  /// `run` carries out so many epochs.
  template <class Epochs>
  void measure_host(const std::string& name, Word bytes, Epochs&& run) {
    if (!wants(name)) return;
    std::vector<double> all;
    run(static_cast<int>(kWarmUp));
    for (int n = 0; n < options_.launches; ++n) {
      context_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      run(options_.iterations);
      add(all, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
    }
    print(name, bytes, "host", all);
  }

 private:
  // The slowest rank's.
  void add(std::vector<double>& all, double mine) {
    double slowest = 0;
    for (const double one : context_.allgather(mine)) slowest = std::max(slowest, one);
    all.push_back(slowest * 1e-3 / options_.iterations);
  }
  void print(const std::string& name, Word bytes, const std::string& by, std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    const auto part = [&](double share) {
      return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
    };
    if (context_.is_root())
      std::printf("%-46s %8llu B %11s %10.2f us (%.2f-%.2f)\n", name.c_str(), bytes, by.c_str(), part(0.5), part(0.1),
                  part(0.9));
    std::fflush(stdout);
  }

  const tasuki::Context& context_;
  const Options& options_;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<std::byte> times_;
  tasuki::Stream stream_ = nullptr;
  Word first_ = 1;
};

#if defined(__CUDACC__)
constexpr tasuki::Memory kWhere = tasuki::Memory::device;
#else
constexpr tasuki::Memory kWhere = tasuki::Memory::host;
#endif

// Epochs by the host: two at a time, after which the same copy is shown again.
void run_by_host(tasuki::Field<float>& field, tasuki::Halo& halo, Bench& bench, const std::string& name, Word bytes) {
#if defined(__CUDACC__)
  constexpr int kInGraph = 20;
  cudaStream_t stream = nullptr;
  TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  {
    const tasuki::Graph graph(stream, [&] {
      for (int n = 0; n < kInGraph; ++n) {
        halo.run(stream);
        if (field.copies() == 2) field.swap();
      }
    });
    bench.measure_host(name, bytes, [&](int epochs) {
      for (int n = 0; n < epochs; n += kInGraph) graph.launch(stream);
      tasuki::synchronize(halo.context(), stream);
    });
  }
  TASUKI_CUDA(cudaStreamDestroy, stream);
#else
  bench.measure_host(name, bytes, [&](int epochs) {
    for (int n = 0; n < epochs; ++n) {
      halo.start();
      halo.wait();
      if (field.copies() == 2) field.swap();
    }
  });
#endif
}

// Cells of each rank, which lie beside each other in the first dimension.
struct HaloCase {
  const char* name;
  std::vector<std::int64_t> cells;
  std::vector<bool> periodic;
  tasuki::Width shadow;
};

#if defined(__CUDACC__)
const std::vector<std::string> kPaths = {"auto", "peer:stamped", "peer:eager", "peer:put"};
const std::vector<tasuki::KernelGroup> kGroups = {
    {.blocks = 1, .threads = 256},  {.blocks = 1, .threads = 512},  {.blocks = 2, .threads = 256},
    {.blocks = 2, .threads = 512},  {.blocks = 4, .threads = 256},  {.blocks = 4, .threads = 512},
    {.blocks = 8, .threads = 256},  {.blocks = 8, .threads = 512},  {.blocks = 16, .threads = 256},
    {.blocks = 32, .threads = 256}, {.blocks = 64, .threads = 256}, {.blocks = 128, .threads = 256}};
#else
const std::vector<std::string> kPaths = {"auto", "shared:put", "shared:eager"};
const std::vector<tasuki::KernelGroup> kGroups = {{.blocks = 1}, {.blocks = 4}};
#endif

void halos(const tasuki::Context& context, Bench& bench) {
  const HaloCase cases[] = {{"one face", {64, 64, 64}, {false, false, false}, {{1, 0, 0}, {1, 0, 0}}},
                            {"64^3 periodic with corners", {64, 64, 64}, {true, true, true}, 1}};
  for (const HaloCase& one : cases) {
    std::vector<std::int64_t> extents = one.cells;
    extents[0] *= context.size();
    tasuki::GridOptions in_slabs;
    in_slabs.split = {context.size(), 1, 1};
    in_slabs.periodic = one.periodic;
    const tasuki::Grid grid(context, extents, in_slabs);
    const Word bytes = static_cast<Word>(one.cells[1] * one.cells[2]) * sizeof(float);
    for (const std::string& path : kPaths) {
      if (context.size() == 1 && path != "auto") continue;
      for (const bool alternates : {true, false}) {
        if (!alternates && path != "auto") continue;
        const std::string name =
            std::string("halo: ") + one.name + (alternates ? "" : ", one copy") + (path == "auto" ? "" : ", " + path);
        if (!bench.wants(name)) continue;
        tasuki::Field<float> field(grid, {.shadow = one.shadow, .copies = alternates ? 2 : 1, .memory = kWhere});
        tasuki::HaloOptions how;
        how.alternating = alternates;
        how.path = path;
        tasuki::Halo by_kernel(field, how);
        for (const tasuki::KernelGroup& group : kGroups) {
          (void)by_kernel.device(group);  // allocates, which may wait for kernels that run
          bench.measure(
              name, bytes, group.blocks, group.threads, 1, [&](const tasuki::ResidentOptions& launch, const Run& run) {
                tasuki::launch_resident(context, launch, epochs, by_kernel.device(group), run, alternates).wait();
                if (alternates && (run.iterations + kWarmUp) % 2 != 0) field.swap();
              });
        }
        tasuki::Field<float> other(grid, {.shadow = one.shadow, .copies = alternates ? 2 : 1, .memory = kWhere});
        tasuki::Halo by_host(other, how);
        run_by_host(other, by_host, bench, name, bytes);
      }
    }
  }
}

void run(const tasuki::Context& context, const Options& options) {
#if defined(__CUDACC__)
  tasuki::use_gpu(context);
#endif
  tasuki::KernelTeamOptions team_options;
  team_options.window = kMost;
  team_options.signals = options.blocks;
  tasuki::MessagesOptions message_options;
  message_options.team.window = kMost;
  message_options.largest = kMost;
  message_options.depth = 4;
  message_options.eager = 4096;
  const tasuki::KernelTeam team(context, team_options);
  const tasuki::Messages shared(context, message_options);
  message_options.concurrent = false;
  const tasuki::Messages alone(context, message_options);

  Bench bench(context, options);
  halos(context, bench);
  const auto launch = [&](void (*kernel)(device::Team, Run)) {
    return [&context, &team, kernel](const tasuki::ResidentOptions& how, const Run& one) {
      tasuki::launch_resident(context, how, kernel, team.device(), one).wait();
    };
  };
  if (context.size() > 1) {
    bench.measure("put_word", 8, 1, 2, launch(words));
    for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
      bench.measure("put_with_signal", bytes, 1, 2, launch(puts));
      if (options.blocks > 1 && bytes >= static_cast<Word>(options.blocks) * kFewest)
        bench.measure("put_with_signal", bytes, options.blocks, 2, launch(puts));
    }
    struct Case {
      const char* name;
      const tasuki::Messages* messages;
      bool in_window;
      bool posted;
    };
    for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
      for (const Case& one :
           {Case{"isend/irecv posted", &shared, true, true}, Case{"isend/irecv unexpected", &shared, true, false},
            Case{"isend/irecv one group, posted", &alone, true, true},
            Case{"isend/irecv one group, unexpected", &alone, true, false},
            Case{"isend/irecv copied, posted", &shared, false, true}})
        bench.measure(one.name, bytes, 1, 2, [&](const tasuki::ResidentOptions& how, const Run& what) {
          tasuki::launch_resident(context, how, messages, one.messages->device(), what, one.in_window, one.posted)
              .wait();
        });
    }
  }
  for (const int blocks : {1, options.blocks})
    bench.measure(blocks == 1 ? "barrier" : "barrier of all blocks", 0, blocks, 1,
                  [&](const tasuki::ResidentOptions& how, const Run& what) {
                    tasuki::launch_resident(context, how, barriers, team.device(), what, blocks > 1).wait();
                  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = options_of(argc, argv);
    if (options.ranks > 0) {
      tasuki::run_threads(options.ranks, [&](const tasuki::Context& context) { run(context, options); });
      return EXIT_SUCCESS;
    }
    tasuki::Context context(argc, argv);
    run(context, options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tasuki-bench-kernel: %s\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
