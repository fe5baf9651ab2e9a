// Messages from any rank, which the process's thread carries: each says whose it is; slices too; what a rank sends to
// itself stays out of it; what is wrong says so.
#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr int kEachFromAny = 4;  // messages from each rank to each other one
constexpr Word kMostOfAny = 3000;
constexpr int kMostFromAny = 32;

// The n-th message between two ranks.
TASUKI_DEVICE Word seed_from(int from, int to, int n) {
  return mixed(static_cast<Word>(from), static_cast<Word>(to), static_cast<Word>(n));
}

// Every rank opens a receive from each rank by its name, this one too, then receives from any rank for all else that
// comes. Messages of one sender come in their order, between others': those by name first.
template <class Group>
TASUKI_KERNEL void from_anybody(device::Messages m, int epoch, Byte* memory, Word* errors) {
  const Group group;
  if (device::this_block().thread() >= group.threads()) return;
  const int others = m.team.ranks - 1;
  const int me = m.team.rank;
  device::Request named[kMostFromAny];
  device::Request receives[kMostFromAny];
  Byte* const by_name = memory + kMostFromAny * kMostOfAny;
  Byte* const sent = by_name + kMostFromAny * 8;
  for (int from = 0; from <= others; ++from)
    if (!device::irecv(m, group, from, by_name + 8 * from, 8, device::kAnyTag, named[from])) return;
  for (int n = 0; n < kEachFromAny * others; ++n)
    if (!device::irecv(m, group, device::kAnyRank, memory + static_cast<Word>(n) * kMostOfAny, kMostOfAny,
                       device::kAnyTag, receives[n]))
      return;
  for (int to = 0; to <= others; ++to) {
    device::Request send;
    fill(group, sent, 8, seed_from(me, to, -1));
    if (!device::isend(m, group, to, sent, 8, 9, send) || !device::wait(m, group, send)) return;
    group.sync();
  }
  for (int n = 0; n < kEachFromAny * others; ++n) {
    const int to = (me + 1 + n % others) % m.team.ranks;
    const Word seed = seed_from(me, to, epoch * kEachFromAny + n / others);
    device::Request send;
    fill(group, sent, seed % kMostOfAny, seed);
    if (!device::isend(m, group, to, sent, seed % kMostOfAny, n / others, send) || !device::wait(m, group, send))
      return;
    group.sync();
  }
  int next[device::kMostRanks] = {};
  for (int n = 0; n < kEachFromAny * others; ++n) {
    bool done = n % 2 != 0;
    while (!done)
      if (!device::test(m, group, receives[n], done)) return;
    if (!device::wait(m, group, receives[n])) return;
    const int from = receives[n].peer;
    if (from < 0 || from >= m.team.ranks || from == me) {
      count(errors, 1);
      continue;
    }
    const Word seed = seed_from(from, me, epoch * kEachFromAny + next[from]);
    count(errors, receives[n].tag == next[from] && receives[n].bytes == seed % kMostOfAny ? 0 : 1);
    count(errors, differences(group, memory + static_cast<Word>(n) * kMostOfAny, seed % kMostOfAny, seed));
    ++next[from];
  }
  for (int from = 0; from <= others; ++from) {
    if (!device::wait(m, group, named[from])) return;
    count(errors, named[from].peer == from && named[from].tag == 9 ? 0 : 1);
    count(errors, differences(group, by_name + 8 * from, 8, seed_from(from, me, -1)));
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

}  // namespace

RANK_TEST("kernels receive from any rank through the host where that is asked for") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  REQUIRE(kEachFromAny * (ctx.size() - 1) <= kMostFromAny);
  for (const bool concurrent : {false, true}) {
    tasuki::MessagesOptions options;
    options.any_source = true;
    options.staging = 1000;  // larger ones go in slices
    options.concurrent = concurrent;
    const tasuki::Messages messages(ctx, options);
    const Buffer<Byte> memory(35 * kMostOfAny);
    const Buffer<Word> errors(2);
    int epoch = 0;
    for (const auto& width : widths())
      for (const auto kernel : {from_anybody<device::BlockGroup>, from_anybody<device::WarpGroup>}) {
        tasuki::launch_resident(ctx, width, kernel, messages.device(), epoch++, memory.get(), errors.get()).wait();
        ctx.barrier();  // receives from any rank would take the next epoch's messages
      }
    CHECK(errors[0] == 0);
    CHECK(errors[1] == 2 * widths().size());
  }
}

namespace {

enum class AnyFault { not_asked_for, not_asked_for_by_host, sends, nothing_came, truncated };
AnyFault any_fault{};

TASUKI_KERNEL void faulty_from_anybody(device::Messages m, AnyFault fault, Byte* memory, Word* yes) {
  const auto group = device::this_block();
  const int other = (m.team.rank + 1) % m.team.ranks;
  device::Request send;
  device::Request receive;
  bool good = true;
  if (fault == AnyFault::sends) good = device::isend(m, group, device::kAnyRank, memory, 8, 1, send);
  if (fault == AnyFault::truncated) good = device::isend(m, group, other, memory, 100, 4, send);
  good = good && device::irecv(m, group, device::kAnyRank, memory + 100, 99, device::kAnyTag, receive) &&
         device::wait(m, group, receive);
  if (good) count(yes, 1);
}

std::string expected_from_anybody(const tasuki::Context& ctx) {
  switch (any_fault) {
    case AnyFault::not_asked_for:
    case AnyFault::not_asked_for_by_host:
      return "irecv: argument 'from' is kAnyRank, which needs MessagesOptions::any_source and other ranks";
    case AnyFault::sends:
      return "isend: argument 'to' is -2, but the context has ranks 0 to";
    case AnyFault::nothing_came:
      return "wait for a message from any rank with any tag, which comes through the host: it did not come";
    case AnyFault::truncated:
      return "wait for a message from rank " + std::to_string((ctx.rank() + ctx.size() - 1) % ctx.size()) +
             ": the message with tag 4 has 100 bytes, its receive takes 99";
  }
  return {};
}

void one_fault_from_anybody(const tasuki::Context& shared) {
  if (shared.size() == 1) return;
  tasuki::Context ctx = shared;
  prepare(ctx);
  tasuki::MessagesOptions options;
  options.path = any_fault == AnyFault::not_asked_for_by_host ? "mpi" : "auto";
  options.any_source = any_fault > AnyFault::not_asked_for_by_host;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Byte> memory(256);
  const Buffer<Word> yes(1);
  ctx.barrier();
  ctx.set_deadline(1.2);
  auto running =
      tasuki::launch_resident(ctx, {}, faulty_from_anybody, messages.device(), any_fault, memory.get(), yes.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  CHECK(yes[0] == 0);
  CHECK(contains(error, expected_from_anybody(ctx)));
}

}  // namespace

TEST_CASE("kernels whose receives from any rank through the host fail say what is wrong") {
  if (ranks_are_threads()) return;
  for (int fault = 0; fault <= static_cast<int>(AnyFault::truncated); ++fault) {
    any_fault = static_cast<AnyFault>(fault);
    on_ranks([](const tasuki::Context& ctx) { one_fault_from_anybody(ctx); });
  }
}

RANK_TEST("receives from any rank are refused between threads, and where ranks do not agree") {
  prepare(ctx);
  const bool threads = ctx.size() > 1 && ranks_are_threads();
  const std::string no_mpi = "path 'mpi' or any_source is asked for, but the ranks are threads of one process";
  tasuki::MessagesOptions options;
  options.any_source = ctx.rank() == 0;
  const std::string differing = error_of([&] { tasuki::Messages messages(ctx, options); });
  CHECK(contains(differing, threads          ? no_mpi
                            : ctx.size() > 1 ? "argument 'any_source' differs between ranks"
                                             : "no error"));
  options.any_source = true;
  CHECK(contains(error_of([&] { tasuki::Messages messages(ctx, options); }), threads ? no_mpi : "no error"));
}
