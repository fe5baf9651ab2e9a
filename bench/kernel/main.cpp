// tasuki-bench-kernel: what communication costs that kernels start by themselves. Ranks 0 and 1 play ping-pong inside
// one launch; barriers, exchanges and halos are of all ranks. Cases called floor are raw loads and stores. Microseconds
// one way, or of an epoch, of the slowest rank: median and 10th to 90th percentile of launches. Halos are timed by
// groups of several sizes and by each path, and as the host runs them, on GPUs in a graph. Compiled by nvcc it runs on
// GPUs, else on threads of the host.
//
// At last what goes through the host: a request to the process's thread and back, messages and halos by MPI.
//
//   tasuki-bench-kernel [--iterations N] [--launches N] [--threads N] [--blocks N] [--ranks N] [--only TEXT]
//                       [--direct 0|1] [--by-host 0|1]
//
// --ranks: as so many threads of this process, each with a GPU of its own. --only: cases whose name has this. --direct,
// --by-host: whether to time what does not go through the host, and what does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cases.hpp"
#include "floors.hpp"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace {

constexpr int kMostBlocks = 1024;

#if defined(__CUDACC__)
constexpr int kMostThreads = 512;  // of a halo's block
#define AT_MOST(threads) __launch_bounds__(threads)
#else
#define AT_MOST(threads)
#endif

TASUKI_KERNEL void echoes(TASUKI_PARAMETER device::Messages m, Run run) {
  const auto block = device::this_block();
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    Word back = 0;
    if (!device::echo(m, block, i, back)) return;
  }
  if (block.thread() == 0) run.times[device::this_block().block()] = device::detail::now_ns() - begin;
}

// A pair of copies takes turns where `alternates` says so.
TASUKI_KERNEL void AT_MOST(kMostThreads) epochs(TASUKI_PARAMETER device::Handle halo, Run run, bool alternates) {
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
  int direct = 1;   // what does not go through the host
  int by_host = 1;  // what does
};

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--only" && i + 1 < argc) {
      options.only = argv[i + 1];
      continue;
    }
    int* const value = name == "--iterations" ? &options.iterations
                       : name == "--launches" ? &options.launches
                       : name == "--threads"  ? &options.threads
                       : name == "--blocks"   ? &options.blocks
                       : name == "--ranks"    ? &options.ranks
                       : name == "--direct"   ? &options.direct
                       : name == "--by-host"  ? &options.by_host
                                              : nullptr;
    if (name == "--only" && i + 1 < argc) {
      options.only = argv[i + 1];
      continue;
    }
    const bool flag = value == &options.direct || value == &options.by_host;
    if (value != nullptr && i + 1 < argc) *value = std::atoi(argv[i + 1]);
    if (value != nullptr && *value >= (flag ? 0 : 1)) continue;
    std::fprintf(stderr,
                 "usage: %s [--iterations N] [--launches N] [--threads N] [--blocks N] [--ranks N], all above 0, "
                 "[--only TEXT] [--direct 0|1] [--by-host 0|1]\n",
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

// What the hardware takes at least for the cases that follow, on the same wire.
void floors_of(const tasuki::Context& context, const Options& options, const tasuki::KernelTeam& team, Bench& bench) {
  const auto launch = [&](void (*kernel)(floors::Wires)) {
    return [&context, &team, kernel](const tasuki::ResidentOptions& how, const Run& one) {
      const device::Team plain = team.device();
      floors::Wires wires{};
      wires.mine = plain.base[plain.rank] + plain.window_at;
      wires.theirs = plain.base[1 - plain.rank] + plain.window_at;
      wires.times = one.times;
      wires.first = plain.rank == 0;
      wires.bytes = one.bytes;
      wires.rounds = one.iterations;
      wires.number = one.first;
      if (plain.rank < 2) tasuki::launch_resident(context, how, kernel, wires).wait();
    };
  };
  bench.measure("floor: a line", 8, 1, 2, launch(floors::line));
  bench.measure("floor: meeting by flags", 0, 1, 1, launch(floors::meeting));
  for (const Word bytes : {Word{4096}, kMostPacket})
    for (const int blocks : {1, options.blocks}) {
      bench.measure("floor: lines", bytes, blocks, 2, launch(floors::lines));
      bench.measure("floor: data and flag", bytes, blocks, 2, launch(floors::flagged));
    }
}

// One face of these cells each way between neighbours, by MPI, whoever starts it.
void halos_by_mpi(const tasuki::Context& context, const Options& options, Bench& bench) {
  for (const std::int64_t side : {64, 128, 256, 512}) {
    const tasuki::Grid grid(context, {4 * context.size(), side, side}, {.split = {context.size(), 1, 1}});
    const Word bytes = static_cast<Word>(side * side) * sizeof(float);
    const std::string name = "halo by MPI: one face";
    tasuki::HaloOptions how;
    how.path = "mpi";
    tasuki::Field<float> field(grid, {.shadow = {{1, 0, 0}, {1, 0, 0}}, .memory = kWhere});
    tasuki::Halo by_kernel(field, how);
#if defined(__CUDACC__)
    const int widths[] = {1, std::max(2, options.blocks / 4), options.blocks};
#else
    const int widths[] = {1, 3};
#endif
    for (const int blocks : widths) {
      const tasuki::KernelGroup group{.blocks = blocks, .threads = options.threads};
      bench.measure(name, bytes, blocks, 1, [&](const tasuki::ResidentOptions& launch, const Run& run) {
        tasuki::launch_resident(context, launch, epochs, by_kernel.device(group), run, false).wait();
      });
    }
    tasuki::Field<float> other(grid, {.shadow = {{1, 0, 0}, {1, 0, 0}}, .memory = kWhere});
    tasuki::Halo by_host(other, how);
    run_by_host(other, by_host, bench, name, bytes);
  }
}

// Ranks 0 and 1 play ping-pong with host memory, which is what messages through the host can come near to.
void ping_pong_by_mpi(const tasuki::Context& context, Bench& bench, Word bytes) {
  std::vector<std::byte> memory(bytes);
  const int other = 1 - context.rank();
  bench.measure_host("MPI in host memory", bytes, [&](int times) {
    for (int n = 0; n < times && context.rank() < 2; n += 2) {  // twice one way
      for (const bool sends : {context.rank() == 0, context.rank() != 0}) {
        if (sends) MPI_Send(memory.data(), static_cast<int>(bytes), MPI_BYTE, other, 7, context.comm());
        if (!sends)
          MPI_Recv(memory.data(), static_cast<int>(bytes), MPI_BYTE, other, 7, context.comm(), MPI_STATUS_IGNORE);
      }
    }
  });
}

void through_the_host(const tasuki::Context& context, const Options& options, Bench& bench) {
  if (context.size() == 1) return;
  tasuki::MessagesOptions how;
  how.path = "mpi";
  how.largest = kMost;
  how.by_host = 8;
  const tasuki::Messages by_host(context, how);
  bench.measure("request to the host and back", 8, 1, 1, [&](const tasuki::ResidentOptions& launch, const Run& run) {
    tasuki::launch_resident(context, launch, echoes, by_host.device(), run).wait();
  });
  for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
    bench.measure(
        "isend/irecv through the host", bytes, 1, 2, [&](const tasuki::ResidentOptions& launch, const Run& run) {
          tasuki::launch_resident(context, launch, messages, by_host.device(), run, false, Posted::before).wait();
        });
    ping_pong_by_mpi(context, bench, bytes);
  }
  halos_by_mpi(context, options, bench);
}

void directly(const tasuki::Context& context, const Options& options, Bench& bench) {
  tasuki::KernelTeamOptions team_options;
  team_options.window = kMost;
  team_options.signals = options.blocks;
  team_options.packets = options.blocks;
  team_options.packet = kMostPacket;
  tasuki::MessagesOptions message_options;
  message_options.team.window = kMost;
  message_options.largest = kMost;
  message_options.depth = 4;
  message_options.eager = 4096;
  const tasuki::KernelTeam team(context, team_options);
  const tasuki::Messages shared(context, message_options);
  message_options.concurrent = false;
  const tasuki::Messages alone(context, message_options);

  halos(context, bench);
  const auto launch = [&](void (*kernel)(device::Team, Run)) {
    return [&context, &team, kernel](const tasuki::ResidentOptions& how, const Run& one) {
      tasuki::launch_resident(context, how, kernel, team.device(), one).wait();
    };
  };
  if (context.size() > 1) {
    floors_of(context, options, team, bench);
    bench.measure("put_word", 8, 1, 2, launch(words));
    for (Word bytes = 8; bytes <= kMostPacket; bytes *= bytes < 64 ? 8 : 4) {
      bench.measure("put_packet", bytes, 1, 2, launch(packets));
      if (options.blocks > 1 && bytes >= static_cast<Word>(options.blocks) * kFewest)
        bench.measure("put_packet", bytes, options.blocks, 2, launch(packets));
    }
    for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
      bench.measure("put_with_signal", bytes, 1, 2, launch(puts));
      if (options.blocks > 1 && bytes >= static_cast<Word>(options.blocks) * kFewest)
        bench.measure("put_with_signal", bytes, options.blocks, 2, launch(puts));
    }
    struct Case {
      const char* name;
      const tasuki::Messages* messages;
      bool in_window;
      Posted posted;
    };
    for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
      for (const Case& one : {Case{"isend/irecv posted", &shared, true, Posted::before},
                              Case{"isend/irecv unexpected", &shared, true, Posted::late},
                              Case{"isend/irecv two, the first unexpected", &shared, true, Posted::behind},
                              Case{"isend/irecv one group, posted", &alone, true, Posted::before},
                              Case{"isend/irecv one group, unexpected", &alone, true, Posted::late},
                              Case{"isend/irecv one group, two, the first unexpected", &alone, true, Posted::behind},
                              Case{"isend/irecv copied, posted", &shared, false, Posted::before}})
        bench.measure(one.name, bytes, 1, 2, [&](const tasuki::ResidentOptions& how, const Run& what) {
          tasuki::launch_resident(context, how, messages, one.messages->device(), what, one.in_window, one.posted)
              .wait();
        });
    }
  }
  for (const bool sums : {true, false})
    for (const Word bytes : {8, 64})
      if (!sums || bytes == 8)
        bench.measure(sums ? "allreduce" : "all_to_all", bytes, 1, 1,
                      [&](const tasuki::ResidentOptions& how, const Run& what) {
                        tasuki::launch_resident(context, how, exchanges, team.device(), what, sums).wait();
                      });
  for (const int blocks : {1, options.blocks})
    bench.measure(blocks == 1 ? "barrier" : "barrier of all blocks", 0, blocks, 1,
                  [&](const tasuki::ResidentOptions& how, const Run& what) {
                    tasuki::launch_resident(context, how, barriers, team.device(), what, blocks > 1).wait();
                  });
}

void run(const tasuki::Context& context, const Options& options) {
#if defined(__CUDACC__)
  tasuki::use_gpu(context);
#endif
  Bench bench(context, options);
  if (options.direct != 0) directly(context, options, bench);
  if (options.by_host != 0) through_the_host(context, options, bench);
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
