// tasuki-bench-kernel: what communication costs that kernels start by themselves. Ranks 0 and 1 play ping-pong inside
// one launch; barriers, exchanges and halos are of all ranks. Cases called floor are raw loads and stores. Microseconds
// one way, or of an epoch, of the slowest rank: median and 10th to 90th percentile of launches. Halos are timed by
// groups of several sizes and by each path, and as the host runs them, on GPUs in a graph. Compiled by nvcc it runs on
// GPUs, else on threads of the host.
//
// At last what goes through the host: a request to the process's thread and back, messages and halos by MPI. A table
// sets the messages beside the same ones started by the host.
//
// Then come peers that communicate inside kernels, by their own calls (peers.hpp), or why they do not.
//
//   tasuki-bench-kernel [--iterations N] [--launches N] [--threads N] [--blocks N] [--ranks N] [--only TEXT]
//                       [--direct 0|1] [--by-host 0|1] [--peers 0|1]
//
// --ranks: as so many threads of this process, each with a GPU of its own. --only: cases whose name has this. --direct,
// --by-host: whether to time what does not go through the host, and what does. --peers: whether to time the others.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench.hpp"
#include "cases.hpp"
#include "floors.hpp"
#include "halos.hpp"
#include "peers.hpp"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace {

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
                       : name == "--peers"    ? &options.peers
                       : name == "--staging"  ? &options.staging
                                              : nullptr;
    const bool flag = value == &options.direct || value == &options.by_host || value == &options.peers;
    if (value != nullptr && i + 1 < argc) *value = std::atoi(argv[i + 1]);
    if (value != nullptr && *value >= (flag ? 0 : 1)) continue;
    std::fprintf(stderr,
                 "usage: %s [--iterations N] [--launches N] [--threads N] [--blocks N] [--ranks N], all above 0, "
                 "[--only TEXT] [--direct 0|1] [--by-host 0|1] [--peers 0|1] [--staging BYTES]\n",
                 argv[0]);
    std::exit(EXIT_FAILURE);
  }
  return options;
}

// Of a ping-pong's turn, in which a rank alone only sends.
double ways_of(const tasuki::Context& context) {
  return context.size() == 1 ? 1 : 2;
}

// What the hardware takes at least for the cases that follow, on the same wire.
void floors_of(const tasuki::Context& context, const Options& options, const tasuki::KernelTeam& team, Bench& bench) {
  const auto launch = [&](void (*kernel)(floors::Wires)) {
    return [&context, &team, kernel](const tasuki::ResidentOptions& how, const Run& one) {
      const device::Team plain = team.device();
      floors::Wires wires{};
      wires.mine = plain.base[plain.rank] + plain.window_at;
      wires.theirs = plain.base[plain.ranks == 1 ? 0 : 1 - plain.rank] + plain.window_at;
      wires.times = one.times;
      wires.first = plain.rank == 0;
      wires.bytes = one.bytes;
      wires.rounds = one.iterations;
      wires.number = one.first;
      if (plain.rank < 2) tasuki::launch_resident(context, how, kernel, wires).wait();
    };
  };
  const double ways = ways_of(context);
  bench.measure("floor: a line", 8, 1, ways, launch(floors::line));
  bench.measure("floor: meeting by flags", 0, 1, 1, launch(floors::meeting));
  for (const Word bytes : {Word{8}, Word{4096}, kMostPacket, Word{1} << 20, kMost})
    for (const int blocks : {1, options.blocks}) {
      if (blocks > 1 && bytes < static_cast<Word>(blocks) * kFewest) continue;
      if (bytes <= kMostPacket) bench.measure("floor: lines", bytes, blocks, ways, launch(floors::lines));
      if (bytes <= kMost) bench.measure("floor: data and flag", bytes, blocks, ways, launch(floors::flagged));
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

// The same message started by the host, with the same staging: on GPUs in a graph, as halos are.
double ping_pong_by_host(const tasuki::Context& context, Bench& bench, Word bytes) {
  const std::shared_ptr<std::byte> from = allocate(bytes);
  const std::shared_ptr<std::byte> to = allocate(bytes);
  const tasuki::Layout layout = tasuki::Layout::bytes(static_cast<std::int64_t>(bytes));
  tasuki::OperationOptions how;
  how.path = "mpi";
  tasuki::Transfer there(context, {0, from.get(), layout}, {1, to.get(), layout}, how);
  tasuki::Transfer back(context, {1, from.get(), layout}, {0, to.get(), layout}, how);
  const char* const name = "transfer by MPI";
#if defined(__CUDACC__)
  constexpr int kInGraph = 20;  // twice one way each
  cudaStream_t stream = nullptr;
  TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  double median = 0;
  {
    const tasuki::Graph graph(stream, [&] {
      for (int n = 0; n < kInGraph; n += 2) {
        there.run(stream);
        back.run(stream);
      }
    });
    median = bench.measure_host(name, bytes, [&](int times) {
      for (int n = 0; n < times; n += kInGraph) graph.launch(stream);
      tasuki::synchronize(context, stream);
    });
  }
  TASUKI_CUDA(cudaStreamDestroy, stream);
  return median;
#else
  return bench.measure_host(name, bytes, [&](int times) {
    for (int n = 0; n < times; n += 2) {
      there.start();
      there.wait();
      back.start();
      back.wait();
    }
  });
#endif
}

// What a kernel's message takes beside the same one started by the host.
void beside_the_host(const tasuki::Context& context, const std::vector<std::array<double, 3>>& rows) {
  if (!context.is_root()) return;
  std::printf("%14s %14s %14s %12s %12s\n", "bytes", "by kernel, us", "by host, us", "host/kernel", "more, us");
  for (const auto& [bytes, kernel, host] : rows)
    std::printf("%14.0f %14.2f %14.2f %11.0f%% %12.2f\n", bytes, kernel, host, 100 * host / kernel, kernel - host);
}

void through_the_host(const tasuki::Context& context, const Options& options, Bench& bench) {
  if (context.size() == 1) return;
  tasuki::MessagesOptions how;
  how.path = "mpi";
  how.staging = options.staging;
  how.by_host = 8;
  const tasuki::Messages by_host(context, how);
  bench.measure("request to the host and back", 8, 1, 1, [&](const tasuki::ResidentOptions& launch, const Run& run) {
    tasuki::launch_resident(context, launch, echoes, by_host.device(), run).wait();
  });
  std::vector<std::array<double, 3>> rows;  // bytes, and microseconds one way
  for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
    const double by_kernel = bench.measure("isend/irecv through the host", bytes, 1, 2,
                                           [&](const tasuki::ResidentOptions& launch, const Run& run) {
                                             tasuki::launch_resident(context, launch, messages<device::BlockGroup>,
                                                                     by_host.device(), run, false, Posted::before)
                                                 .wait();
                                           });
    const double from_host = ping_pong_by_host(context, bench, bytes);
    ping_pong_by_mpi(context, bench, bytes);
    if (by_kernel > 0 && from_host > 0) rows.push_back({static_cast<double>(bytes), by_kernel, from_host});
  }
  beside_the_host(context, rows);
  halos_by_mpi(context, options, bench);
}

void directly(const tasuki::Context& context, const Options& options, Bench& bench) {
  tasuki::KernelTeamOptions team_options;
  team_options.window = 2 * kMost + floors::kFlags;  // floors send from there, too
  team_options.signals = options.blocks;
  team_options.packets = options.blocks;
  team_options.packet = kMostPacket;
  tasuki::MessagesOptions message_options;
  message_options.team.window = kMost;
  message_options.largest = kMostCopied;
  message_options.depth = 4;
  message_options.eager = 4096;
  const tasuki::KernelTeam team(context, team_options);
  const tasuki::Messages shared(context, message_options);
  message_options.concurrent = false;
  const tasuki::Messages alone(context, message_options);

  halos(context, bench);
#if defined(__CUDACC__)
  beside_epochs(context, bench);
#endif
  const auto launch = [&](void (*kernel)(device::Team, Run)) {
    return [&context, &team, kernel](const tasuki::ResidentOptions& how, const Run& one) {
      tasuki::launch_resident(context, how, kernel, team.device(), one).wait();
    };
  };
  const double ways = ways_of(context);
  floors_of(context, options, team, bench);
  bench.measure("put_word", 8, 1, ways, launch(words<device::BlockGroup>));
  bench.measure("put_word by a warp", 8, 1, ways, launch(words<device::WarpGroup>));
  bench.measure("put_word by a thread", 8, 1, ways, launch(words<device::ThreadGroup>));
  for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4)
    for (const int blocks : {1, options.blocks}) {
      if (blocks > 1 && bytes < static_cast<Word>(blocks) * kFewest) continue;
      if (bytes <= kMostPacket) bench.measure("put_packet", bytes, blocks, ways, launch(packets));
      bench.measure("put_with_signal", bytes, blocks, ways, launch(puts));
    }
  if (context.size() > 1) {
    struct Case {
      const char* name;
      const tasuki::Messages* messages;
      bool in_window;
      Posted posted;
      int blocks = 1;
    };
    for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4) {
      for (const Case& one : {Case{"isend/irecv posted", &shared, true, Posted::before},
                              Case{"isend/irecv unexpected", &shared, true, Posted::late},
                              Case{"isend/irecv two, the first unexpected", &shared, true, Posted::behind},
                              Case{"isend/irecv one group, posted", &alone, true, Posted::before},
                              Case{"isend/irecv one group, unexpected", &alone, true, Posted::late},
                              Case{"isend/irecv one group, two, the first unexpected", &alone, true, Posted::behind},
                              Case{"isend/irecv copied, posted", &shared, false, Posted::before},
                              Case{"isend/irecv by blocks, posted", &shared, true, Posted::before, 2},
                              Case{"isend/irecv by blocks, posted", &shared, true, Posted::before, 4}})
        if (bytes * static_cast<Word>(one.blocks) <= (one.in_window ? kMost : kMostCopied))
          bench.measure(one.name, bytes, one.blocks, 2, [&](const tasuki::ResidentOptions& how, const Run& what) {
            tasuki::launch_resident(context, how, messages<device::BlockGroup>, one.messages->device(), what,
                                    one.in_window, one.posted)
                .wait();
          });
      if (bytes > 256) continue;
      for (const Case& one :
           {Case{"posted", &shared, true, Posted::before}, Case{"unexpected", &shared, true, Posted::late},
            Case{"one group, posted", &alone, true, Posted::before},
            Case{"one group, unexpected", &alone, true, Posted::late}}) {
        const auto by = [&](const char* whom, auto kernel) {
          bench.measure("isend/irecv by a " + std::string(whom) + ", " + one.name, bytes, 1, 2,
                        [&](const tasuki::ResidentOptions& how, const Run& what) {
                          tasuki::launch_resident(context, how, kernel, one.messages->device(), what, one.in_window,
                                                  one.posted)
                              .wait();
                        });
        };
        by("warp", messages<device::WarpGroup>);
        by("thread", messages<device::ThreadGroup>);
      }
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

#if defined(__CUDACC__)
// The calls of others that do what Tasuki's do: ping-pong by put with signal, a barrier, an all-to-all of words.
void by_peers(const tasuki::Context& context, const Options& options, Bench& bench) {
  struct Other {
    std::string name;
    peers::Made (*make)(const tasuki::Context&, bool ranks_are_threads, std::size_t most, int blocks);
  };
  for (const Other& other : {Other{"NVSHMEM", peers::nvshmem}, Other{"NCCL", peers::nccl}}) {
    const std::string puts = other.name + ": put with signal";
    const std::string barrier = other.name + ": barrier";
    const std::string exchange = other.name + ": all_to_all";
    if (!bench.wants(puts) && !bench.wants(barrier) && !bench.wants(exchange)) continue;
    const peers::Made made = other.make(context, options.ranks > 0, kMost, options.blocks);
    if (!made.peer) {
      if (context.is_root()) std::printf("%s: left out: %s\n", other.name.c_str(), made.why_not.c_str());
      continue;
    }
    const auto measure = [&](peers::Call call, const std::string& name, Word bytes, int blocks, double ways) {
      if (!made.peer->has(call)) return;
      bench.measure(name, bytes, blocks, ways, [&](const tasuki::ResidentOptions& how, const Run& one) {
        made.peer->launch(call, {one.bytes, one.iterations + kWarmUp, kWarmUp, one.first, one.times, how.blocks,
                                 how.threads, how.stream});
      });
    };
    for (Word bytes = 8; bytes <= kMost; bytes *= bytes < 64 ? 8 : 4)
      for (const int blocks : {1, options.blocks})
        if (blocks == 1 || bytes >= static_cast<Word>(blocks) * kFewest)
          measure(peers::Call::put_with_signal, puts, bytes, blocks, ways_of(context));
    measure(peers::Call::barrier, barrier, 0, 1, 1);
    for (const Word bytes : {8, 64}) measure(peers::Call::all_to_all, exchange, bytes, 1, 1);
  }
}
#endif

void run(const tasuki::Context& context, const Options& options) {
#if defined(__CUDACC__)
  tasuki::use_gpu(context);
#endif
  Bench bench(context, options);
  if (options.direct != 0) directly(context, options, bench);
  if (options.by_host != 0) through_the_host(context, options, bench);
#if defined(__CUDACC__)
  if (options.peers != 0) by_peers(context, options, bench);
#endif
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
