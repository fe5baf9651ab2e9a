// What cannot be is an error that names ranks and arguments: at making, at launching, and in kernels, where the first
// counts and all that follows returns false.
#include <cstdlib>
#include <functional>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

std::string number(int n) {
  return std::to_string(n);
}

// `yes` counts those that are not.
TASUKI_DEVICE void all_are_false(const device::Messages& m, Word* yes) {
  const auto group = device::this_block();
  const device::Team& team = m.team;
  Word word = 0;
  device::Request request;
  count(yes, device::failed(m) ? 0 : 1);
  count(yes, device::put(team, group, 0, 0, device::window(team, 0), 0) ? 1 : 0);
  count(yes, device::signal(team, group, team.rank, 0, 1) ? 1 : 0);
  count(yes, device::wait_signal(team, group, team.rank, 0, 1) ? 1 : 0);
  count(yes, device::put_word(team, group, team.rank, 0, 1, 1) ? 1 : 0);
  count(yes, device::wait_word(team, group, team.rank, 0, 1, word) ? 1 : 0);
  count(yes, device::barrier(team, group) ? 1 : 0);
  count(yes, device::barrier(team, device::this_grid()) ? 1 : 0);
  count(yes, device::irecv(m, group, team.rank, nullptr, 0, 1, request) ? 1 : 0);
  count(yes, device::isend(m, group, team.rank, nullptr, 0, 1, request) ? 1 : 0);
  count(yes, device::wait(m, group, request) ? 1 : 0);
}

// One thing that fails.
enum class Fault {
  signal,
  word,
  barrier,
  grid_barrier,
  receive,
  untaken,
  large_send,
  full,
  no_rank,
  no_slot,
  outside,
  beyond,
  bad_tag,
  too_large,
  too_many,
  truncated,
};

TASUKI_KERNEL void faulty(device::Messages m, Fault fault, Byte* memory, Word* yes) {
  const auto group = device::this_block();
  const device::Team& team = m.team;
  const int other = (team.rank + 1) % team.ranks;
  const int before = (team.rank + team.ranks - 1) % team.ranks;
  device::Request request;
  bool good = true;
  Word word = 0;
  switch (fault) {
    case Fault::signal:
      good = device::signal(team, group, other, 3, 41) && device::wait_signal(team, group, before, 3, 41) &&
             device::wait_signal(team, group, before, 3, 42);
      break;
    case Fault::word:
      good = device::wait_word(team, group, other, 5, 6, word);
      break;
    case Fault::barrier:
      if (team.rank == 0) good = device::barrier(team, group, 1);
      break;
    case Fault::grid_barrier:
      if (group.block() == 0) good = device::barrier(team, device::this_grid(), 1);
      break;
    case Fault::receive:
      good = device::irecv(m, group, other, memory, 8, 77, request) && device::wait(m, group, request);
      break;
    case Fault::untaken:
      good = device::isend(m, group, other, memory, 8, 5, request) &&
             device::isend(m, group, other, memory, 8, 6, request) &&
             device::irecv(m, group, before, memory, 8, 77, request) && device::wait(m, group, request);
      break;
    case Fault::large_send:
      good = device::isend(m, group, other, device::window(team, team.rank), 4000, 9, request) &&
             device::wait(m, group, request);
      break;
    case Fault::full:
      for (int i = 0; good && i < 9; ++i) good = device::isend(m, group, other, memory, 8, i, request);
      break;
    case Fault::no_rank:
      good = device::put_with_signal(team, group, team.ranks, 0, memory, 8, 0, 1);
      break;
    case Fault::no_slot:
      good = device::signal(team, group, other, 64, 1);
      break;
    case Fault::outside:
      good = device::put(team, group, other, 4090, memory, 11);
      break;
    case Fault::beyond:
      good = device::put(team, group, other, ~Word{0} - 3, memory, 8);
      break;
    case Fault::bad_tag:
      good = device::isend(m, group, other, memory, 8, device::kAnyTag, request);
      break;
    case Fault::too_large:
      good = device::isend(m, group, other, memory, 3000, 2, request);
      break;
    case Fault::too_many:
      for (int i = 0; good && i < 5; ++i) good = device::irecv(m, group, other, memory, 8, i, request);
      break;
    case Fault::truncated:
      good = device::isend(m, group, other, memory, 100, 4, request) &&
             device::irecv(m, group, before, memory, 99, device::kAnyTag, request) && device::wait(m, group, request);
      break;
  }
  if (good) return;
  all_are_false(m, yes);
}

Fault current{};  // what all ranks do next

struct Expected {
  std::string text;
  bool here = true;  // this rank fails
};

// What a rank is to hear.
Expected expected_of(Fault fault, int rank, int ranks) {
  const std::string to = "rank " + number((rank + 1) % ranks);
  const std::string from = "rank " + number((rank + ranks - 1) % ranks);
  switch (fault) {
    case Fault::signal:
      return {"wait_signal: signal 3 of " + from + " did not come: it is at 41, 42 was waited for"};
    case Fault::word:
      return {"wait_word: word 5 of " + to + " did not come: its number is 0, 6 was waited for"};
    case Fault::barrier:
      return {"did not come: it has been there 0 times, this is time 1", rank == 0};
    case Fault::grid_barrier:
      return {"barrier 1 of all blocks: not all blocks of this rank have come"};
    case Fault::receive:
      return {"wait for a message from " + to + " with tag 77: it did not come; 0 messages have"};
    case Fault::untaken:
      return {"wait for a message from " + from +
              " with tag 77: it did not come; 2 messages have, 2 of which no receive takes (the oldest has tag 5)"};
    case Fault::large_send:
      return {"wait for a message to " + to + " with tag 9: " + to + " did not receive it"};
    case Fault::full:
      return {"isend to " + to + " with tag 8: there is no place for message 8"};
    case Fault::no_rank:
      return {"put_with_signal: argument 'to' is " + number(ranks) + ", but the context has ranks 0 to " +
              number(ranks - 1)};
    case Fault::no_slot:
      return {"signal: argument 'slot' is 64, but there are 64 signals; raise 'signals' of the options"};
    case Fault::outside:
      return {"put to " + to + ": bytes from 4090 on, 11 of them, do not lie in the window of 4100 bytes"};
    case Fault::beyond:
      return {"do not lie in the window of 4100 bytes"};
    case Fault::bad_tag:
      return {"isend: argument 'tag' is -1; it must be 0 or more"};
    case Fault::too_large:
      return {"isend to " + to + " with tag 2: 3000 bytes from outside the window"};
    case Fault::too_many:
      return {"irecv from " + to + " with tag 4: 4 receives from that rank are open"};
    case Fault::truncated:
      return {"wait for a message from " + from + ": the message with tag 4 has 100 bytes, its receive takes 99"};
  }
  return {"nothing"};
}

// What has its end at a deadline.
bool waits(Fault fault) {
  return fault <= Fault::full;
}

void one_fault(const tasuki::Context& shared) {
  tasuki::Context ctx = shared;
  prepare(ctx);
  const Expected expected = expected_of(current, ctx.rank(), ctx.size());
  CAPTURE(expected.text);
  tasuki::MessagesOptions options;
  options.team.window = 4100;
  options.depth = 4;
  options.receives = 4;
  options.largest = 2048;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Byte> memory(4096);
  const Buffer<Word> yes(1);
  ctx.barrier();
  ctx.set_deadline(0.7);
  const int blocks = current == Fault::grid_barrier ? 2 : 1;
  auto running =
      tasuki::launch_resident(ctx, widths(blocks)[1], faulty, messages.device(), current, memory.get(), yes.get());
  const std::string error = error_of([&] { running.wait(); });
  CHECK(yes[0] == 0);
  INFO(error);
  if (!expected.here) {
    CHECK(error == "no error");
    return;
  }
  CHECK(contains(error, "rank " + number(ctx.rank()) + ": Messages: in block 0 of a kernel, "));
  CHECK(contains(error, expected.text));
  if (waits(current) && ctx.size() == 1) CHECK(contains(error, "deadline"));
  // The next calls of the host say it again, and there is no other launch.
  CHECK(contains(error_of([&] { (void)messages.device(); }), expected.text));
  CHECK(contains(error_of([&] { messages.check(); }), expected.text));
  CHECK(contains(error_of([&] { tasuki::launch_resident(ctx, {}, faulty, {}, current, nullptr, nullptr).wait(); }),
                 "launch_resident"));
}

}  // namespace

TEST_CASE("kernels on threads that fail say who, whom and what, and then all is false") {
  for (int fault = 0; fault <= static_cast<int>(Fault::truncated); ++fault) {
    current = static_cast<Fault>(fault);
    on_ranks([](const tasuki::Context& ctx) {
      if (current != Fault::barrier || ctx.size() > 1) one_fault(ctx);
    });
  }
}

TEST_CASE("kernels need ranks that reach each other's memory") {
  setenv("TASUKI_ISLAND", "1", 1);
  on_ranks([](const tasuki::Context& ctx) {
    prepare(ctx);
    const std::string text = ": rank 0: the memory of rank 1 cannot be stored into from here (another island)";
    const std::string of_team = error_of([&] { tasuki::KernelTeam team(ctx); });
    const std::string of_messages = error_of([&] { tasuki::Messages messages(ctx); });
    CHECK(contains(of_team, ctx.size() > 1 ? text : "no error"));
    // Messages go through the host, but for threads, between which there is no MPI.
    const bool threads = ctx.size() > 1 && ranks_are_threads();
    CHECK(contains(of_messages, threads ? text : "no error"));
    CHECK(contains(of_messages, threads ? "and the ranks are threads of one process" : "no error"));
    ctx.barrier();
  });
  unsetenv("TASUKI_ISLAND");
}

RANK_TEST("options of teams and messages that cannot be, or differ, are refused on all ranks") {
  prepare(ctx);
  const int last = ctx.size() - 1;
  const auto team = [&](void (*change)(tasuki::KernelTeamOptions&), bool all = true) {
    tasuki::KernelTeamOptions options;
    if (all || ctx.rank() == last) change(options);
    return error_of([&] { tasuki::KernelTeam made(ctx, options); });
  };
  const auto messages = [&](void (*change)(tasuki::MessagesOptions&)) {
    tasuki::MessagesOptions options;
    change(options);
    return error_of([&] { tasuki::Messages made(ctx, options); });
  };
  CHECK(team([](auto& o) { o.window = -1; }) ==
        "KernelTeam: rank 0: option 'window' is -1; it must be between 0 and 1099511627776 bytes");
  CHECK(contains(team([](auto& o) { o.signals = 70000; }), "option 'signals' is 70000"));
  CHECK(contains(team([](auto& o) { o.words = -2; }), "option 'words' is -2"));
  CHECK(contains(team([](auto& o) { o.barriers = -3; }), "option 'barriers' is -3"));
  if (ctx.size() > 1)
    CHECK(team([](auto& o) { o.window = 77; }, false) ==
          "KernelTeam: argument 'window' differs between ranks: rank 0 has 0, rank " + number(last) + " has 77");
  CHECK(team([](auto& o) { o.words = 0; }) == "no error");
  CHECK(messages([](auto& o) { o.depth = 0; }) ==
        "Messages: rank 0: option 'depth' is 0; it must be between 1 and 16384");
  CHECK(contains(messages([](auto& o) { o.receives = 0; }), "option 'receives' is 0"));
  CHECK(
      contains(messages([](auto& o) { o.eager = 40000; }), "option 'eager' is 40000; it must be between 0 and 32768"));
  CHECK(contains(messages([](auto& o) { o.largest = -1; }), "option 'largest' is -1"));
  CHECK(messages([](auto& o) { o.eager = o.largest = 0; }) == "no error");
}

namespace {
TASUKI_KERNEL void nothing() {}
}  // namespace

RANK_TEST("launches that cannot be say why") {
  prepare(ctx);
  const std::string call = "rank " + number(ctx.rank()) + ": launch_resident: ";
  const auto launch = [&](const tasuki::ResidentOptions& options) {
    return error_of([&] { tasuki::launch_resident(ctx, options, nothing).wait(); });
  };
  CHECK(launch({}) == "no error");
  tasuki::ResidentOptions options;
  options.blocks = 0;
  CHECK(contains(launch(options), call + "argument 'blocks' is 0"));
#if defined(__CUDACC__)
  options.blocks = 1;
  options.threads = 1025;
  CHECK(contains(launch(options), call + "argument 'threads' is 1025"));
  options.threads = 1024;
  options.blocks = 1000000;
  CHECK(contains(launch(options), "do not fit on GPU"));
  CHECK(contains(launch(options), "what runs out is threads (1024 a block)"));
  options.threads = 32;
  CHECK(contains(launch(options), "what runs out is blocks ("));
  options.shared_bytes = 200 << 10;
  CHECK(contains(launch(options), "what runs out is shared memory ("));
  options.shared_bytes = 1 << 30;
  CHECK(contains(launch(options), call + "argument 'shared_bytes' is 1073741824"));
  options = {};
  ctx.barrier();  // the environment is that of all ranks that are threads of a process
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  CHECK(contains(launch(options), call + "CUDA_LAUNCH_BLOCKING=1 would make the host wait"));
  ctx.barrier();
  unsetenv("CUDA_LAUNCH_BLOCKING");
  ctx.barrier();
  TASUKI_CUDA(cudaStreamCreateWithFlags, &options.stream, cudaStreamNonBlocking);
  CHECK(launch(options) == "no error");
  CHECK(contains(error_of([&] {
                   tasuki::Graph graph(options.stream, [&] { tasuki::launch_resident(ctx, options, nothing).wait(); });
                 }),
                 call + "the stream is being captured into a graph"));
  TASUKI_CUDA(cudaStreamDestroy, options.stream);
#else
  options.blocks = 2000;
  CHECK(contains(launch(options), call + "argument 'blocks' is 2000; it must be between 1 and 1024"));
  options.blocks = 1;
  options.cpu_threads = 33;
  CHECK(contains(launch(options), call + "argument 'cpu_threads' is 33; it must be between 1 and 32"));
  options.blocks = 100;
  options.cpu_threads = 32;
  CHECK(contains(launch(options), call + "100 blocks of 32 threads are 3200 threads; 1024 would fit"));
#endif
}

#if !defined(__CUDACC__)
namespace {
// The last rank throws in one thread; the others wait for it, those of its block at a barrier.
void throwing(device::Team team) {
  const auto group = device::this_block();
  if (team.rank == team.ranks - 1 && group.block() == 0 && group.thread() == group.threads() - 1)
    throw std::runtime_error("a kernel's own error");
  if (!device::barrier(team, group, group.block())) return;
  if (group.block() == 0) throw std::runtime_error("not to be reached");
}
}  // namespace

TEST_CASE("what kernels on threads throw comes out, and ends those that wait for them") {
  on_ranks([](const tasuki::Context& ctx) {
    const tasuki::KernelTeam team(ctx);
    auto running = tasuki::launch_resident(ctx, widths(2)[1], throwing, team.device());
    const std::string error = error_of([&] { running.wait(); });
    const int last = ctx.size() - 1;
    INFO(error);
    if (ctx.rank() == last) CHECK(error == "a kernel's own error");
    if (ctx.rank() != last)
      CHECK(contains(error, "rank " + number(last) + " gave up because a kernel of rank " + number(last) +
                                " has thrown: a kernel's own error"));
  });
}

namespace {
// The last thread of each group goes its own way.
void straying(int by_warp) {
  const auto stray = [](const auto& group) {
    for (int n = 0; n < 3; ++n) group.sync();
    group.thread() == group.threads() - 1 ? void(group.all(true)) : group.sync();
  };
  by_warp != 0 ? stray(device::this_warp()) : stray(device::this_block());
}
}  // namespace

TEST_CASE("threads of a group that take different ways are told so") {
  on_ranks([](const tasuki::Context& ctx) {
    for (const int by_warp : {0, 1}) {
      const std::string error = error_of([&] { tasuki::launch_resident(ctx, widths(2)[2], straying, by_warp).wait(); });
      INFO(error);
      CHECK(contains(error, "the threads of a group make different calls: thread "));
      CHECK(contains(error, "`all`"));
      CHECK(contains(error, "`sync`"));
    }
  });
}
#endif

namespace {

// One thing that fails where messages go through the host.
enum class HostFault { put, barrier, too_large, receive, truncated, truncated_slices, layout, untaken };
HostFault by_host{};

TASUKI_KERNEL void faulty_by_host(device::Messages m, HostFault fault, Byte* memory, Word* yes) {
  const auto group = device::this_block();
  const device::Team& team = m.team;
  const int other = (team.rank + 1) % team.ranks;
  const int before = (team.rank + team.ranks - 1) % team.ranks;
  device::Request requests[5];
  bool good = true;
  switch (fault) {
    case HostFault::put:
      count(yes, device::window(team, other) == nullptr ? 0 : 1);
      good = device::put(team, group, other, 0, memory, 8);
      break;
    case HostFault::barrier:
      good = device::barrier(team, group);
      break;
    case HostFault::too_large:
      good = device::isend(m, group, other, memory, 3000, 2, requests[0]);
      break;
    case HostFault::receive:
      good = device::irecv(m, group, other, memory, 8, 77, requests[0]) && device::wait(m, group, requests[0]);
      break;
    case HostFault::truncated:
      good = device::isend(m, group, other, memory, 100, 4, requests[0]) &&
             device::irecv(m, group, before, memory, 99, device::kAnyTag, requests[1]) &&
             device::wait(m, group, requests[1]);
      break;
    case HostFault::truncated_slices:
      good = device::isend(m, group, other, memory, 3000, 4, requests[0]) &&
             device::irecv(m, group, before, memory, 2999, device::kAnyTag, requests[1]) &&
             device::wait(m, group, requests[1]);
      break;
    case HostFault::layout: {
      device::Shape shape{};
      shape.bytes = 3000;
      good = device::isend(m, group, other, memory, shape, 6, requests[0]);
      break;
    }
    case HostFault::untaken:
      for (int n = 0; good && n < 5; ++n) good = device::irecv(m, group, other, memory, 8, 5, requests[n]);
      break;
  }
  if (!good) all_are_false(m, yes);
}

std::string expected_by_host(HostFault fault, int rank, int ranks) {
  const std::string other = number((rank + 1) % ranks);
  const std::string before = number((rank + ranks - 1) % ranks);
  switch (fault) {
    case HostFault::put:
      return "put: kernels of this rank do not reach the memory of rank " + other;
    case HostFault::barrier:
      return "barrier: kernels of this rank do not reach the memory of all ranks";
    case HostFault::too_large:
      return "isend to rank " + other +
             " with tag 2: 3000 bytes; through the host 48 may go, for MessagesOptions::staging is too";
    case HostFault::receive:
      return "wait for a message from rank " + other + " with tag 77, which comes through the host: it did not come";
    case HostFault::truncated:
      return "wait for a message from rank " + before + ": the message with tag 4 has 100 bytes, its receive takes 99";
    case HostFault::truncated_slices:
      return "wait for a message from rank " + before +
             ": the message with tag 4 has 3000 bytes, its receive takes 2999";
    case HostFault::layout:
      return "isend to rank " + other +
             " with tag 6: 3000 bytes; through the host 48 may go, for MessagesOptions::staging is too";
    case HostFault::untaken:
      return "from rank " + other + " with tag 5: 4 messages through the host have not ended";
  }
  return "nothing";
}

void one_fault_by_host(const tasuki::Context& shared) {
  if (shared.size() == 1) return;
  tasuki::Context ctx = shared;
  prepare(ctx);
  const std::string expected = expected_by_host(by_host, ctx.rank(), ctx.size());
  CAPTURE(expected);
  tasuki::MessagesOptions options;
  options.path = "mpi";
  options.staging = by_host == HostFault::too_large || by_host == HostFault::layout ? 48 : 2048;
  options.by_host = 4;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Byte> memory(4096);
  const Buffer<Word> yes(1);
  ctx.barrier();
  ctx.set_deadline(1.2);
  auto running = tasuki::launch_resident(ctx, {}, faulty_by_host, messages.device(), by_host, memory.get(), yes.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  CHECK(yes[0] == 0);
  CHECK(contains(error, "rank " + number(ctx.rank()) + ": Messages: in block 0 of a kernel, "));
  CHECK(contains(error, expected));
}

}  // namespace

TEST_CASE("kernels whose messages through the host fail say who, whom and what") {
  if (ranks_are_threads()) return;
  for (int fault = 0; fault <= static_cast<int>(HostFault::untaken); ++fault) {
    by_host = static_cast<HostFault>(fault);
    on_ranks([](const tasuki::Context& ctx) { one_fault_by_host(ctx); });
  }
}
