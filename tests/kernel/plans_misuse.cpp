// Operations that kernels start, used as they cannot be: errors on the host where it can know, else in the kernel,
// after which all calls return false and the host throws what the first was.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

tasuki::ResidentOptions launch_of(const tasuki::KernelGroup& group) {
  tasuki::ResidentOptions options;
  options.blocks = group.blocks;
  options.threads = group.threads;
  options.cpu_threads = group.cpu_threads;
  return options;
}

constexpr tasuki::KernelGroup kTwo{.blocks = 2, .threads = 64, .cpu_threads = 2};

enum class Slip { other_group, twice, no_start, skipped, one_block, swapped, kept, last };

TASUKI_KERNEL void slips(device::Handle h, Slip slip, int rank, Word* yes) {
  const auto all = device::this_grid();
  bool good = true;
  switch (slip) {
    case Slip::other_group:
      good = device::run(h, device::this_block());
      break;
    case Slip::twice:
      good = device::start(h, all) && device::start(h, all);
      break;
    case Slip::no_start:
      good = device::run(h, all) && device::wait(h, all);
      break;
    case Slip::skipped:  // the other ranks leave an epoch out
      good = device::run(h, all) && (rank != 0 || device::run(h, all));
      break;
    case Slip::one_block:
      if (device::this_block().block() == 0) good = device::run(h, all);
      break;
    case Slip::swapped:
      good = device::run(h, all, 0) && device::run(h, all, 1) && device::run(h, all, 1);
      break;
    case Slip::kept: {
      device::BarrierFreeRun<> kept(h, all);
      good = kept.run(0, [] { return true; });
      break;
    }
    case Slip::last:
      break;
  }
  if (good) return;
  count(yes, device::start(h, all) ? 1 : 0);
  count(yes, device::wait(h, all) ? 1 : 0);
  count(yes, device::run(h, all) ? 1 : 0);
  count(yes, device::failed(h) ? 0 : 1);
}

struct Expected {
  std::string text;
  bool here = true;
};
Expected expected_of(Slip slip, int rank, int ranks) {
  switch (slip) {
    case Slip::other_group:
      return {"called by a group of 1 blocks of "};
    case Slip::twice:
      return {"start of epoch 2 while the one before is active"};
    case Slip::no_start:
      return {"wait without a start before it"};
    case Slip::skipped:
      return {"epoch 2 did not end: it waited for ", rank == 0 && ranks > 1};
    case Slip::one_block:
      return {"epoch 1 did not end: not all 2 blocks of the group have come (1 of 2 did): nine tenths of the deadline"};
    case Slip::swapped:
      return {"an alternating halo is started for epoch 3 after 1 swaps"};
    case Slip::kept:
      return {"threads, with group barriers: the group has no cells; make one only where device::barrier_free says"};
    case Slip::last:
      break;
  }
  return {"nothing"};
}

Slip current{};

void one_slip(const tasuki::Context& shared) {
  tasuki::Context ctx = shared;
  prepare(ctx);
  const Expected expected = expected_of(current, ctx.rank(), ctx.size());
  CAPTURE(expected.text);
  tasuki::HaloOptions options;
  options.alternating = current == Slip::swapped;
  if (kWhere == tasuki::Memory::host) options.path = "shared:put,shared:eager";  // what a kernel can start there
  Ring ring(ctx, options, current == Slip::swapped ? 2 : 1);
  const Buffer<Word> yes(1);
  ctx.barrier();
  ctx.set_deadline(1.2);
  auto running =
      tasuki::launch_resident(ctx, launch_of(kTwo), slips, ring.halo.device(kTwo), current, ctx.rank(), yes.get());
  const std::string error = error_of([&] { running.wait(); });
  CHECK(yes[0] == 0);
  INFO(error);
  if (!expected.here) {
    CHECK(error == "no error");
    return;
  }
  CHECK(contains(error, "rank " + std::to_string(ctx.rank()) + ": halo u: in block "));
  CHECK(contains(error, expected.text));
  CHECK(error_of([&] { ring.halo.start(); }) != "no error");
  CHECK(error_of([&] { (void)ring.halo.device(kTwo); }) != "no error");
}

TASUKI_KERNEL void starts(device::Handle h) {
  device::start(h, device::this_grid());
}
TASUKI_KERNEL void runs(device::Handle h) {
  device::run(h, device::this_grid());
}
TASUKI_KERNEL void reduces(device::ReducingHandle h) {
  device::run(h, device::this_grid());
}

}  // namespace

TEST_CASE("plans: kernels that use a handle as they cannot say how, and then all is false") {
  for (int slip = 0; slip < static_cast<int>(Slip::last); ++slip) {
    current = static_cast<Slip>(slip);
    on_ranks([](const tasuki::Context& ctx) { one_slip(ctx); });
  }
}

RANK_TEST("plans: handles that cannot be, and launches with others, are errors on the host") {
  prepare(ctx);
  const std::string who = "rank " + std::to_string(ctx.rank()) + ": ";
  Ring ring(ctx);
  const auto device_of = [&](const tasuki::KernelGroup& group) {
    return error_of([&] { (void)ring.halo.device(group); });
  };
  CHECK(contains(device_of({.blocks = 0}), who + "halo u: device: argument 'blocks' is 0"));
#if defined(__CUDACC__)
  CHECK(contains(device_of({.blocks = 1, .threads = 33}), "argument 'threads' is 33; it must be a multiple of 32"));
  CHECK(contains(device_of({.blocks = 1, .threads = 2048}), "argument 'threads' is 2048"));
#else
  CHECK(contains(device_of({.blocks = 1, .threads = 256, .cpu_threads = 33}), "argument 'cpu_threads' is 33"));
#endif
  const device::Handle two = ring.halo.device(kTwo);
  const auto launch = [&](const tasuki::ResidentOptions& options, const device::Handle& handle) {
    return error_of([&] { tasuki::launch_resident(ctx, options, runs, handle).wait(); });
  };
  CHECK(launch(launch_of(kTwo), two) == "no error");
  auto options = launch_of(kTwo);
  options.blocks = 1;
  CHECK(contains(launch(options, two), "a handle of halo u for a group of 2 blocks of "));
  options = launch_of(kTwo);
  options.threads = 128;
  options.cpu_threads = 1;
  CHECK(contains(launch(options, two), "but the launch has 2 blocks of "));
  // A handle for another group replaces it; the same group has the same handle.
  CHECK(ring.halo.device(kTwo).heading.number == two.heading.number);
  const device::Handle one = ring.halo.device();
  CHECK(contains(launch(launch_of(kTwo), two), "a handle that is not valid"));
  CHECK(launch({}, one) == "no error");
  ring.halo.start();
  CHECK(contains(device_of({}), who + "halo u: device while epoch "));
  CHECK(contains(launch({}, one), "halo u is active, and a kernel that has its handle could not start it"));
  ring.halo.wait();
  ring.halo.free();
  CHECK(contains(launch({}, one), "a handle that is not valid: its operation was freed"));
  CHECK(contains(device_of({}), "device after free"));

  tasuki::HaloOptions reverse;
  reverse.reverse = true;
#if defined(__CUDACC__)
  reverse.path = "peer:put,peer:eager";  // LL lines that are added up need as many blocks as there are tasks
#endif
  Ring adding(ctx, reverse);
  CHECK(contains(error_of([&] { (void)adding.halo.device(); }), "it combines elements; call device_reducing"));
  CHECK(error_of([&] { tasuki::launch_resident(ctx, {}, reduces, adding.halo.device_reducing()).wait(); }) ==
        "no error");
}

RANK_TEST("plans: the host does not start what a kernel has left open") {
  tasuki::Context mine = ctx;
  prepare(mine);
  Ring ring(ctx);
  tasuki::launch_resident(ctx, {}, starts, ring.halo.device()).wait();
  mine.set_deadline(2);
  const std::string error = error_of([&] {
    ring.halo.start();
    ring.halo.wait();
  });
  INFO(error);
  CHECK(contains(error, "rank " + std::to_string(ctx.rank()) + ": halo u: start"));
  CHECK(contains(error, "while an epoch that a kernel has started is active; wait for it in the kernel"));
}

#if !defined(__CUDACC__)
namespace {
TASUKI_KERNEL void runs_when_told(device::Handle h, Word* told, int epochs, Word* ended) {
  const auto all = device::this_grid();
  while (std::atomic_ref<Word>(*told).load() == 0) std::this_thread::yield();
  for (int n = 0; n < epochs; ++n)
    if (!device::run(h, all)) return;
  count(ended, 1);
}
}  // namespace

RANK_TEST("plans: a kernel on threads that has a handle keeps others from it, and its operation in memory") {
  prepare(ctx);
  std::optional<Ring> ring(std::in_place, ctx);
  const Buffer<Word> told(1);
  const Buffer<Word> ended(1);
  device::Handle handle{};
  const auto launch = [&] {
    return tasuki::launch_resident(ctx, launch_of(kTwo), runs_when_told, handle, told.get(), 50, ended.get());
  };
  const Word threads = 2 * 2;
  for (const bool freed : {true, false}) {
    told[0] = 0;
    ended[0] = 0;
    handle = ring->halo.device(kTwo);
    auto running = launch();
    for (const std::string& error :
         {error_of([&] { ring->halo.start(); }), error_of([&] { (void)ring->halo.device(kTwo); })}) {
      INFO(error);
      CHECK(contains(error, "while a kernel that has its handle runs; call Resident::wait first"));
    }
    const std::string again = error_of([&] { launch().wait(); });
    INFO(again);
    CHECK(contains(again, "launch_resident: a kernel that has the handle of halo u still runs; wait for it first"));
    std::thread tells([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::atomic_ref<Word>(told[0]).store(1);
    });
    if (freed) {
      ring->halo.free();
      CHECK(contains(error_of([&] { launch().wait(); }), "its operation was freed"));
    }
    ring.reset();
    CHECK(ended[0] == threads);
    running.wait();
    tells.join();
    ring.emplace(ctx);
  }
  told[0] = 1;
  handle = ring->halo.device(kTwo);
  launch().wait();
  launch().wait();  // one after the other
}

RANK_TEST("plans: pieces that only the host can carry are named") {
  if (ranks_are_threads()) return;
  prepare(ctx);
  tasuki::HaloOptions options;
  options.path = "shared:read";
  Ring ring(ctx, options);
  const std::string error = error_of([&] { (void)ring.halo.device(); });
  INFO(error);
  if (ctx.size() == 1) CHECK(error == "no error");
  if (ctx.size() > 1) {
    CHECK(contains(error, "travels by path 'shared:read', which a kernel cannot start; force path 'shared:put"));
    ring.halo.start();
    ring.halo.wait();
  }
}

namespace {

std::string error_of_broadcast(const tasuki::Context& ctx) {
  std::vector<std::byte> bytes(3 << 20);
  tasuki::CollectiveOptions options;
  options.path = "mpi";
  options.algorithm = "trees";  // whatever the machine's prices are
  options.chunk = 1 << 16;
  tasuki::Broadcast broadcast(ctx, 0, bytes.data(), static_cast<std::int64_t>(bytes.size()), options);
  const bool sound = tasuki::verify(broadcast).ok();
  CHECK(sound);
  return error_of([&] { (void)broadcast.device(); });
}

}  // namespace

RANK_TEST("plans: messages in chunks are left to the host") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  const std::string error = error_of_broadcast(ctx);
  INFO(error);
  CHECK(contains(error, "travels by path 'mpi' in chunks, which a kernel cannot start"));
}
#endif

namespace {

// Messages go to another island, whose rank does not come.
void wait_for_another_island(const tasuki::Context& shared) {
  tasuki::Context ctx = shared;
  prepare(ctx);
  tasuki::HaloOptions by_mpi;
  by_mpi.path = "mpi";  // on GPUs of their own NCCL would carry the halo, which no kernel can start
  Ring ring(ctx, by_mpi);
  const Buffer<Word> yes(1);
  ctx.barrier();
  ctx.set_deadline(1.5);
  constexpr tasuki::KernelGroup kOne{.blocks = 1, .threads = 64, .cpu_threads = 2};
  auto running = tasuki::launch_resident(ctx, launch_of(kOne), slips, ring.halo.device(kOne), Slip::skipped, ctx.rank(),
                                         yes.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  CHECK(yes[0] == 0);
  if (ctx.rank() != 0 || ctx.size() == 1) {
    CHECK(error == "no error");
    return;
  }
  CHECK(contains(error, "rank 0: halo u: in block "));
  CHECK(contains(error, "epoch 2 did not end: it waited for #"));
  CHECK(contains(error, " recv with rank "));
  CHECK(contains(error, "which the process's thread carries"));
}

}  // namespace

TEST_CASE("plans: a kernel that waits for a message of another island ends at the deadline, and says so") {
  if (ranks_are_threads()) return;
  with_islands(1, [] { on_ranks([](const tasuki::Context& ctx) { wait_for_another_island(ctx); }); });
}
