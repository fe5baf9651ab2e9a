// One rank is killed in the middle of its exchanges. Every other rank must leave its wait with an error that names the
// dead one; it prints the error and how long it waited. Run with the launcher's recovery on (killed_rank.py).
//
// A VICTIM that is no rank leaves it to others to disturb the exchanges (hosts.py).
//
//   killed_rank VICTIM PATH ENGINE MEMORY HOW [DEADLINE]
//
// HOW: `wait`, or `test` for a loop of tests; `kernel` and `messages` exchange in kernels on threads of the host, by
// the halo and by messages, and another thread kills the rank, wherever it is; `exchange` and `redistribute` wait for
// operations of these kinds in place of the halo. For collectives see killed_collective.cpp.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace {

namespace device = tasuki::device;

TASUKI_KERNEL void exchanges(device::Handle halo) {
  while (device::run(halo, device::this_grid())) {
  }
}

TASUKI_KERNEL void sends(device::Messages m, double* memory) {
  const auto group = device::this_block();
  const int right = (m.team.rank + 1) % m.team.ranks;
  const int left = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request send;
  device::Request receive;
  while (device::irecv(m, group, left, memory + 64, 64 * sizeof(double), 3, receive) &&
         device::isend(m, group, right, memory, 64 * sizeof(double), 3, send) && device::wait(m, group, send) &&
         device::wait(m, group, receive)) {
  }
}

// Of the cells of a field; a redistribution moves those of `from` to `to`.
std::unique_ptr<tasuki::Operation> made(const tasuki::Context& ctx, std::string_view how,
                                        const tasuki::Field<double>& from, const tasuki::Field<double>& to,
                                        const std::string& path, const std::string& engine) {
  if (how == "exchange") {  // along a ring, of every other cell
    tasuki::ExchangeOptions options;
    options.path = path;
    options.engine = engine;
    tasuki::ExchangeEntry right{(ctx.rank() + 1) % ctx.size()}, left{(ctx.rank() + ctx.size() - 1) % ctx.size()};
    for (std::int64_t cell = 0; cell < 64; ++cell) {
      right.send.push_back(2 * cell);
      left.receive.push_back(2 * cell + 1);
    }
    return std::make_unique<tasuki::Exchange>(ctx, std::vector{tasuki::ExchangeField(from.data(), 128)},
                                              std::vector{right, left}, options);
  }
  if (how == "redistribute") {
    using Dim = tasuki::DimDistribution;
    tasuki::RedistributeOptions options;
    options.path = path;
    options.engine = engine;
    const tasuki::ArraySide blocks{{{128 * ctx.size()}, {Dim::block(ctx.size())}}};
    const tasuki::ArraySide dealt{{{128 * ctx.size()}, {Dim::cyclic(ctx.size(), 3)}}};
    return std::make_unique<tasuki::Redistribute>(ctx, blocks, dealt,
                                                  std::vector{tasuki::RedistributeArray(from.data(), to.data())},
                                                  std::vector<int>{}, options);
  }
  tasuki::HaloOptions options;
  options.path = path;
  options.engine = engine;
  return std::make_unique<tasuki::Halo>(tasuki::HaloField(from), options);
}

void kill_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(137));
    kill(getpid(), SIGKILL);
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  tasuki::Context ctx(argc, argv);
  const int victim = std::atoi(argv[1]);
  ctx.set_deadline(argc > 6 ? std::atof(argv[6]) : 10);
  const bool polls = std::string_view(argv[5]) == "test";
  const bool on_gpu = std::string_view(argv[4]) == "device";
  if (on_gpu && !tasuki::why_no_gpu().empty()) {
    fmt::print("left out: {}\n", tasuki::why_no_gpu());
    return 0;
  }
  const tasuki::Grid grid(ctx, {64 * ctx.size(), 33}, {.split = {ctx.size(), 1}});
  const tasuki::Memory where = on_gpu ? tasuki::Memory::device : tasuki::Memory::host;
  const tasuki::Field<double> u(grid, {.name = "u", .memory = where});
  const tasuki::Field<double> v(grid, {.name = "v", .memory = where});
  const std::unique_ptr<tasuki::Operation> operation = made(ctx, argv[5], u, v, argv[2], argv[3]);
  tasuki::Operation& exchange = *operation;
  auto begin = std::chrono::steady_clock::now();
  try {
    if (std::string_view(argv[5]) == "kernel") {
      auto running = tasuki::launch_resident(ctx, {}, exchanges, exchange.device());
      if (ctx.rank() == victim) kill_soon();
      running.wait();
    }
    if (std::string_view(argv[5]) == "messages") {
      tasuki::MessagesOptions how;
      how.path = argv[2];
      const tasuki::Messages messages(ctx, how);
      std::vector<double> memory(128);
      auto running = tasuki::launch_resident(ctx, {}, sends, messages.device(), memory.data());
      if (ctx.rank() == victim) kill_soon();
      running.wait();
    }
    for (int iteration = 0;; ++iteration) {
      begin = std::chrono::steady_clock::now();
      if (ctx.rank() == 0 && iteration == 50) {
        fmt::print("under way\n");
        std::fflush(stdout);
      }
      if (ctx.rank() == victim && iteration == 100) kill(getpid(), SIGKILL);
      if (on_gpu) {
        exchange.run(nullptr);
        tasuki::synchronize(ctx, nullptr);
        continue;
      }
      exchange.start();
      while (polls && !exchange.test()) {
      }
      exchange.wait();
    }
  } catch (const tasuki::Error& error) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    fmt::print("survivor {} after {:.2f} s: {} [{}]\n", ctx.rank(), waited.count(), error.what(),
               to_string(error.kind()));
    std::fflush(stdout);
    _exit(0);
  }
}
