// One rank is killed while a kernel of it and one of each other rank communicate on GPUs. The other kernels must end
// and the host must say which rank has died; it prints that and how long it waited. Run with the launcher's recovery on
// (killed_kernel.py). On processors killed_rank.cpp does the same.
//
//   killed_kernel VICTIM HOW [DEADLINE]
//
// HOW: what the kernels do: `halo`, `messages`, `host` (messages that go through the host), `barrier`, of several
// blocks, or `late`: the victim's kernel has ended before, and the others' wait for a message of it.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

std::string (*why_skip)(int ranks) = nullptr;  // gpu/enough.cpp

namespace {

namespace device = tasuki::device;

constexpr int kBlocks = 4;
constexpr std::size_t kDoubles = 64;  // of a block's message

TASUKI_KERNEL void exchanges(TASUKI_PARAMETER device::Handle halo) {
  while (device::run(halo, device::this_grid())) {
  }
}

TASUKI_KERNEL void sends(TASUKI_PARAMETER device::Messages m, double* memory) {
  const auto group = device::this_block();
  double* const mine = memory + 2 * kDoubles * static_cast<std::size_t>(group.block());
  const int right = (m.team.rank + 1) % m.team.ranks;
  const int left = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request send;
  device::Request receive;
  while (device::irecv(m, group, left, mine + kDoubles, kDoubles * sizeof(double), group.block(), receive) &&
         device::isend(m, group, right, mine, kDoubles * sizeof(double), group.block(), send) &&
         device::wait(m, group, send) && device::wait(m, group, receive)) {
  }
}

TASUKI_KERNEL void waits(TASUKI_PARAMETER device::Messages m, double* memory, int victim) {
  const auto group = device::this_block();
  device::Request receive;
  if (m.team.rank != victim && device::irecv(m, group, victim, memory, 8, group.block(), receive))
    device::wait(m, group, receive);
}

TASUKI_KERNEL void meets(TASUKI_PARAMETER device::Messages m) {
  while (device::barrier(m.team, device::this_grid())) {
  }
}

void kill_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(437));
    kill(getpid(), SIGKILL);
  }).detach();
}

std::string why_not(int ranks) {
  std::string why = why_skip(ranks);
  if (!why.empty()) return why;
  int gpus = 0;
  int together = 0;
  TASUKI_CUDA(cudaGetDeviceCount, &gpus);
  TASUKI_CUDA(cudaDeviceGetAttribute, &together, cudaDevAttrMpsEnabled, 0);
  if (gpus < ranks && together == 0)
    why = "ranks that share a GPU without CUDA's Multi-Process Service take turns, too slowly for this";
  return why;
}

// Where it was if nothing more comes.
void say(const tasuki::Context& ctx, const char* what) {
  fmt::print("rank {} {}\n", ctx.rank(), what);
  std::fflush(stdout);
}

tasuki::Resident launch(const tasuki::Context& ctx, const std::string& how, tasuki::Halo& halo,
                        const tasuki::Messages& messages, double* memory, int victim) {
  tasuki::ResidentOptions options;
  options.blocks = kBlocks;
  if (how == "halo") return tasuki::launch_resident(ctx, options, exchanges, halo.device({.blocks = kBlocks}));
  if (how == "barrier") return tasuki::launch_resident(ctx, options, meets, messages.device());
  if (how == "late") return tasuki::launch_resident(ctx, options, waits, messages.device(), memory, victim);
  return tasuki::launch_resident(ctx, options, sends, messages.device(), memory);
}

}  // namespace

int main(int argc, char** argv) {
  tasuki::Context ctx(argc, argv);
  const int victim = std::atoi(argv[1]);
  const std::string how = argv[2];
  if (const std::string why = why_not(ctx.size()); !why.empty()) {
    if (ctx.is_root()) fmt::print("SKIPPED: {}\n", why);
    return 0;
  }
  ctx.set_deadline(argc > 3 ? std::atof(argv[3]) : 20);
  tasuki::use_gpu(ctx);
  const tasuki::Grid grid(ctx, {64 * ctx.size(), 33}, {.split = {ctx.size(), 1}});
  const tasuki::Field<double> u(grid, {.name = "u", .memory = tasuki::Memory::device});
  tasuki::Halo halo{tasuki::HaloField(u)};
  tasuki::MessagesOptions options;
  options.path = how == "host" ? "mpi" : "auto";
  const tasuki::Messages messages(ctx, options);
  double* memory = nullptr;
  TASUKI_CUDA(cudaMalloc, &memory, 2 * kBlocks * kDoubles * sizeof(double));
  ctx.barrier();
  say(ctx, "has made what it needs");
  const auto begin = std::chrono::steady_clock::now();
  std::string text = "nothing";
  try {
    auto running = launch(ctx, how, halo, messages, memory, victim);
    say(ctx, "has launched its kernel");
    if (ctx.rank() == victim) kill_soon();
    running.wait();
    if (ctx.rank() == victim) std::this_thread::sleep_for(std::chrono::seconds(60));  // it is killed meanwhile
  } catch (const tasuki::Error& error) {
    text = error.what();
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  fmt::print("rank {} after {:.2f} s: {}\n", ctx.rank(), waited.count(), text);
  std::fflush(stdout);
  const cudaError_t left = cudaDeviceSynchronize();  // the kernel has ended
  fmt::print("survivor {} after {:.2f} s, then {}: {}\n", ctx.rank(), waited.count(), cudaGetErrorName(left), text);
  std::fflush(stdout);
  _exit(0);
}
