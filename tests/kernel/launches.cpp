// Launches: how long they may take, what ends them, and which arguments they refuse.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

// Computes for a while between two barriers of all ranks.
TASUKI_KERNEL void long_kernel(device::Team team, Word milliseconds, Word* ended) {
  const auto group = device::this_block();
  constexpr Word kParts = 8;
  for (Word part = 0; part < kParts; ++part) {
    const Word end = device::detail::now_ns() + milliseconds * 1'000'000 / kParts;
    while (device::detail::now_ns() < end) {
    }
    if (!device::barrier(team, group)) return;
  }
  if (group.thread() == 0) count(ended, 1);
}

// The last rank waits for what does not come; the others look whether they may go on.
template <class Given>
TASUKI_DEVICE void look_or_wait(const device::Team& team, const Given& given, Word* seen) {
  const auto group = device::this_block();
  if (team.rank == team.ranks - 1) {
    device::wait_signal(team, group, team.rank, 0, 1);
    return;
  }
  while (!device::failed(given)) {
  }
  if (group.thread() == 0) count(seen, 1);
}
TASUKI_KERNEL void looks_at_team(device::Team team, Word* seen) {
  look_or_wait(team, team, seen);
}
TASUKI_KERNEL void looks_at_messages(device::Messages m, Word* seen) {
  look_or_wait(m.team, m, seen);
}
TASUKI_KERNEL void looks_at_handle(device::Handle h, device::Team team, Word* seen) {
  look_or_wait(team, h, seen);
}

}  // namespace

RANK_TEST("a kernel may take longer than the deadline") {
  tasuki::Context mine = ctx;
  prepare(mine);
  const tasuki::KernelTeam team(ctx);
  const Buffer<Word> ended(1);
  mine.set_deadline(1);
  ctx.barrier();
  tasuki::launch_resident(ctx, {}, long_kernel, team.device(), 2500, ended.get()).wait();
  CHECK(ended[0] == 1);
}

TEST_CASE(
    "kernels that look whether something has failed see that another rank has given up: it ends at the deadline") {
  on_ranks([](const tasuki::Context& shared) {
    tasuki::Context ctx = shared;
    prepare(ctx);
    if (ctx.size() == 1) return;
    std::vector<int> all;
    for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rank);
    for (const int kind : {0, 1, 2}) {
      tasuki::Context other = ctx.subset(all);
      prepare(other);
      const tasuki::KernelTeam team(other);
      const tasuki::Messages messages(other);
      Ring ring(other);
      const Buffer<Word> seen(1);
      other.barrier();
      other.set_deadline(0.7);
      auto running = kind == 0 ? tasuki::launch_resident(other, {}, looks_at_team, team.device(), seen.get())
                     : kind == 1
                         ? tasuki::launch_resident(other, {}, looks_at_messages, messages.device(), seen.get())
                         : tasuki::launch_resident(other, {}, looks_at_handle,
                                                   ring.halo.device({.blocks = 1, .threads = 256, .cpu_threads = 1}),
                                                   team.device(), seen.get());
      const std::string error = error_of([&] { running.wait(); });
      INFO(error);
      const int last = other.size() - 1;
      if (other.rank() == last) {
        CHECK(contains(error, "wait_signal: signal 0 of rank"));
        continue;
      }
      CHECK(seen[0] == 1);
      CHECK(contains(error, "rank " + std::to_string(last) + " gave up because"));
      CHECK(contains(error, "failed: the host has ended its kernels' waits"));
    }
  });
}

#if !defined(__CUDACC__)
namespace {

enum class Stray { leaves, one_thread, other_group };

void strays(device::Team team, Stray stray) {
  const auto block = device::this_block();
  switch (stray) {
    case Stray::leaves:
      if (block.thread() == 1) return;
      device::barrier(team, block);
      break;
    case Stray::one_thread:
      if (block.thread() == 0) device::put(team, block, 0, 0, "abc", 3);
      break;
    case Stray::other_group:
      block.thread() == 0 ? block.sync() : device::this_warp().sync();
      break;
  }
}
void strays_from_operation(device::Handle h) {
  if (device::this_block().thread() == 1) return;
  device::run(h, device::this_grid());
}

tasuki::ResidentOptions two_threads() {
  tasuki::ResidentOptions options;
  options.cpu_threads = 2;
  return options;
}

}  // namespace

TEST_CASE("threads of a group that are not there are told so") {
  on_ranks([](const tasuki::Context& shared) {
    std::vector<int> me{shared.rank()};
    for (const Stray stray : {Stray::leaves, Stray::one_thread, Stray::other_group}) {
      tasuki::Context ctx = shared.subset(me);
      prepare(ctx);
      tasuki::KernelTeamOptions options;
      options.window = 64;
      const tasuki::KernelTeam team(ctx, options);
      const std::string error =
          error_of([&] { tasuki::launch_resident(ctx, two_threads(), strays, team.device(), stray).wait(); });
      INFO(error);
      CHECK(contains(error, "rank 0: launch_resident: in block 0 of a kernel, not all threads of a group came to `"));
      CHECK(contains(error, " of 2 waits there"));
    }
    tasuki::Context ctx = shared.subset(me);
    prepare(ctx);
    Ring ring(ctx);
    const std::string error = error_of([&] {
      tasuki::launch_resident(ctx, two_threads(), strays_from_operation,
                              ring.halo.device({.blocks = 1, .threads = 32, .cpu_threads = 2}))
          .wait();
    });
    INFO(error);
    CHECK(contains(error, "not all threads of a group came to `"));
  });
}
#endif

namespace {

// What kernels take, in a struct.
struct Given {
  int epochs;
  device::Handle handle;
};
TASUKI_KERNEL void runs_given(Given given, Word* ended) {
  for (int n = 0; n < given.epochs; ++n)
    if (!device::run(given.handle, device::this_grid())) return;
  if (device::this_block().thread() == 0) count(ended, 1);
}
struct GivenTeam {
  device::Team team;
};
TASUKI_KERNEL void passes_given(GivenTeam given) {
  device::barrier(given.team, device::this_block());
}
TASUKI_KERNEL void passes(device::Team team) {
  device::barrier(team, device::this_block());
}
TASUKI_KERNEL void passes_of(device::Messages m) {
  device::barrier(m.team, device::this_block());
}
TASUKI_KERNEL void takes_neighbours(device::Neighbours) {}

tasuki::KernelGroup one_block() {
  return {.blocks = 1, .threads = 256, .cpu_threads = 1};
}

}  // namespace

RANK_TEST("handles, teams, messages and neighbours are checked by launches, in structs too") {
  prepare(ctx);
  const auto refused = [&](const std::string& error, const std::string& text) {
    INFO(error);
    CHECK(contains(error, "rank " + std::to_string(ctx.rank()) + ": launch_resident: an argument "));
    CHECK(contains(error, text));
  };
  std::vector<int> all;
  for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rank);
  const tasuki::Context other = ctx.subset(all);
#if defined(__CUDACC__)
  tasuki::use_gpu(other);
#endif
  const Buffer<Word> ended(1);
  const auto run_given = [&](const tasuki::Context& context, const device::Handle& handle) {
    tasuki::launch_resident(context, {}, runs_given, Given{3, handle}, ended.get()).wait();
  };
  {
    Ring ring(ctx);
    const device::Handle handle = ring.halo.device(one_block());
    run_given(ctx, handle);
    CHECK(ended[0] == 1);
    refused(error_of([&] { run_given(other, handle); }), "is a handle that is not valid");
    ring.halo.start();
    const std::string active = error_of([&] { run_given(ctx, handle); });
    CHECK(contains(active, "halo u is active"));
    ring.halo.wait();
    const device::Handle two = ring.halo.device({.blocks = 2, .threads = 256, .cpu_threads = 1});
    refused(error_of([&] { run_given(ctx, handle); }), "has a newer handle for another group");
    refused(error_of([&] { run_given(ctx, two); }), "for a group of 2 blocks");
    ring.halo.free();
    refused(error_of([&] { run_given(ctx, two); }), "its operation was freed");
  }
  {
    std::optional<tasuki::KernelTeam> team(std::in_place, ctx);
    const device::Team given = team->device();
    tasuki::launch_resident(ctx, {}, passes_given, GivenTeam{given}).wait();
    tasuki::launch_resident(ctx, {}, passes, given).wait();
    refused(error_of([&] { tasuki::launch_resident(other, {}, passes, given).wait(); }), "is a Team that is not valid");
    ctx.barrier();
    team.reset();
    refused(error_of([&] { tasuki::launch_resident(ctx, {}, passes, given).wait(); }), "its KernelTeam was destroyed");
    refused(error_of([&] { tasuki::launch_resident(ctx, {}, passes_given, GivenTeam{given}).wait(); }), "a Team");
  }
  {
    std::optional<tasuki::Messages> messages(std::in_place, ctx);
    const device::Messages given = messages->device();
    tasuki::launch_resident(ctx, {}, passes_of, given).wait();
    refused(error_of([&] { tasuki::launch_resident(other, {}, passes_of, given).wait(); }), "is Messages that are not");
    ctx.barrier();
    messages.reset();
    refused(error_of([&] { tasuki::launch_resident(ctx, {}, passes_of, given).wait(); }), "is Messages that are not");
  }
  {
    std::optional<tasuki::BlockNeighbours> neighbours(std::in_place, ctx, std::vector<std::vector<int>>{{}});
    const device::Neighbours given = neighbours->device();
    tasuki::launch_resident(ctx, {}, takes_neighbours, given).wait();
    refused(error_of([&] { tasuki::launch_resident(other, {}, takes_neighbours, given).wait(); }), "is Neighbours");
    neighbours.reset();
    refused(error_of([&] { tasuki::launch_resident(ctx, {}, takes_neighbours, given).wait(); }),
            "their BlockNeighbours were destroyed");
  }
}

#if !defined(__CUDACC__)
namespace {
void waits_to_be_told(device::Team team, device::Neighbours, Word* told, Word* ended) {
  while (std::atomic_ref<Word>(*told).load() == 0) std::this_thread::yield();
  if (device::barrier(team, device::this_block())) count(ended, 1);
}
}  // namespace

RANK_TEST("a team and neighbours stay in memory while a kernel on threads has them") {
  prepare(ctx);
  std::optional<tasuki::KernelTeam> team(std::in_place, ctx);
  std::optional<tasuki::BlockNeighbours> neighbours(std::in_place, ctx, std::vector<std::vector<int>>{{}});
  const Buffer<Word> told(1);
  const Buffer<Word> ended(1);
  auto running =
      tasuki::launch_resident(ctx, {}, waits_to_be_told, team->device(), neighbours->device(), told.get(), ended.get());
  const std::string again =
      error_of([&] { tasuki::launch_resident(ctx, {}, takes_neighbours, neighbours->device()).wait(); });
  CHECK(contains(again, "launch_resident: a kernel that has the same BlockNeighbours still runs; wait for it first"));
  std::thread tells([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref<Word>(told[0]).store(1);
  });
  neighbours.reset();
  team.reset();
  CHECK(ended[0] == 1);
  running.wait();
  tells.join();
}
#endif

namespace {
TASUKI_KERNEL void leaves_open(device::Messages m, Word* to) {
  device::Request request;
  device::irecv(m, device::this_block(), m.team.rank, to, sizeof(Word), 1, request);
}
TASUKI_KERNEL void receives_again(device::Messages m, Word* from, Word* to) {
  const auto group = device::this_block();
  device::Request requests[2];
  if (!device::isend(m, group, m.team.rank, from, sizeof(Word), 1, requests[0])) return;
  if (!device::irecv(m, group, m.team.rank, to, sizeof(Word), 1, requests[1])) return;
  device::wait(m, group, requests[1]);
}
}  // namespace

TEST_CASE("a receive that waits for what an earlier kernel's takes ends at the deadline and says so") {
  on_ranks([](const tasuki::Context& shared) {
    tasuki::Context ctx = shared.subset({shared.rank()});
    prepare(ctx);
    for (const bool concurrent : {false, true}) {
      tasuki::Context again = ctx.subset({0});
      prepare(again);
      tasuki::MessagesOptions options;
      options.concurrent = concurrent;
      const tasuki::Messages messages(again, options);
      const Buffer<Word> words(3);
      tasuki::launch_resident(again, {}, leaves_open, messages.device(), words.get()).wait();
      again.set_deadline(0.7);
      words[1] = 42;
      auto running =
          tasuki::launch_resident(again, {}, receives_again, messages.device(), words.get() + 1, words.get() + 2);
      const std::string error = error_of([&] { running.wait(); });
      INFO(error);
      CHECK(words[0] == 42);
      CHECK(contains(error, "wait for a message from rank 0 with tag 1: it did not come; 1 messages have"));
      CHECK(contains(error, "have not been waited for, perhaps by an earlier kernel: 1, of which older ones"));
    }
  });
}
