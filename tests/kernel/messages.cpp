// Messages with tags: random sizes, tags, orders of posting and waiting, several in flight; what is sent from the
// window and from elsewhere; senders that wait first.
#include "random_messages.hpp"

using namespace kernel_tests;

RANK_TEST("kernels on threads send random messages by block") {
  prepare(ctx);
  int seed = 1;
  for (const auto& width : widths())
    for (int repeat = 0; repeat < 3; ++repeat) exchange(ctx, by_block, width, 10, seed++, 50000);
}

RANK_TEST("kernels on threads send random messages by warp and by thread") {
  prepare(ctx);
  exchange(ctx, by_warp, widths()[1], 20, 11, 20000);
  exchange(ctx, by_warp, widths()[2], 20, 12, 20000);
  exchange(ctx, by_thread, widths()[0], 20, 13, 20000);
}

RANK_TEST("kernels on threads send random messages by one group of a rank at a time") {
  prepare(ctx);
  exchange(ctx, by_block, widths()[0], 20, 21, 50000, false);
  exchange(ctx, by_block, widths()[1], 20, 22, 50000, false);
}

RANK_TEST("kernels on threads send large messages") {
  prepare(ctx);
  exchange(ctx, by_block, widths()[2], 3, 31, (1 << 20) + 1);
  exchange(ctx, by_warp, widths()[1], 3, 32, (1 << 20) + 1);
}

namespace {

// Which block of the other gets a message nobody knows: all have one tag, or receives take any. Each message says what
// is in it; `sums` counts what was sent and what came.
TASUKI_KERNEL void anybodys(device::Messages m, int epochs, int tags, Byte* memory, Word* sums, Word* errors) {
  const auto group = device::this_block();
  const auto block = static_cast<Word>(group.block());
  const int to = (m.team.rank + 1) % m.team.ranks;
  const int from = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  constexpr Word kMost = 600;
  constexpr int kAhead = 3;  // receives that are open at once
  Byte* const sent = memory + block * (kAhead + 1) * kMost;
  device::Request receives[kAhead];
  for (int n = 0; n < epochs + kAhead; ++n) {
    if (n >= kAhead) {
      const int at = (n * 7 + 2) % kAhead;  // not in their order
      bool done = n % 2 != 0;
      while (!done)
        if (!device::test(m, group, receives[at], done)) return;
      if (!device::wait(m, group, receives[at])) return;
      const Byte* const got = sent + (1 + at) * kMost;
      const Word bytes = receives[at].bytes;
      Word seed = 0;
      for (Word i = 0; i < 8; ++i) seed |= static_cast<Word>(got[i]) << 8 * i;
      count(errors, bytes >= 8 && seed % (kMost - 8) + 8 == bytes ? 0 : 1);
      count(errors, differences(group, got + 8, bytes - 8, seed));
      if (group.thread() == 0) device::detail::add_gpu(sums + 1, seed);
      group.sync();
    }
    const int at = n < kAhead ? n : (n * 7 + 2) % kAhead;
    const int tag = n % 2 == 0 ? device::kAnyTag : 5;
    if (n < epochs &&
        !device::irecv(m, group, from, sent + (1 + at) * kMost, kMost, tags > 1 ? device::kAnyTag : tag, receives[at]))
      return;
    if (n >= epochs) continue;
    const Word seed = mixed(static_cast<Word>(n), block, static_cast<Word>(m.team.rank));
    const Word bytes = seed % (kMost - 8) + 8;
    group.sync();
    for (Word i = static_cast<Word>(group.thread()); i < 8; i += static_cast<Word>(group.threads()))
      sent[i] = static_cast<Byte>(seed >> 8 * i);
    fill(group, sent + 8, bytes - 8, seed);
    if (group.thread() == 0) device::detail::add_gpu(sums, seed);
    device::Request send;
    if (!device::isend(m, group, to, sent, bytes, 5 + n % tags, send) || !device::wait(m, group, send)) return;
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

// Large messages out of windows, all of them waited for before anything is received.
TASUKI_KERNEL void senders_first(device::Messages m, int epochs, Word bytes, Byte* memory, Word* errors) {
  const auto group = device::this_block();
  const int right = (m.team.rank + 1) % m.team.ranks;
  const int left = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  auto* const window = static_cast<Byte*>(device::window(m.team, m.team.rank));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    device::Request send;
    device::Request first;
    device::Request second;
    const auto number = static_cast<Word>(epoch);
    fill(group, window, bytes, mixed(number, static_cast<Word>(m.team.rank)));
    if (!device::irecv(m, group, left, memory, bytes, 1, first)) return;
    if (!device::irecv(m, group, left, memory + bytes, bytes, 2, second)) return;
    if (!device::isend(m, group, right, window, bytes, 1, send) || !device::wait(m, group, send)) return;
    fill(group, window, bytes, mixed(number, static_cast<Word>(m.team.rank), 1));
    if (!device::isend(m, group, right, window, bytes, 2, send)) return;
    if (!device::wait(m, group, second) || !device::wait(m, group, send) || !device::wait(m, group, first)) return;
    count(errors, differences(group, memory, bytes, mixed(number, static_cast<Word>(left))));
    count(errors, differences(group, memory + bytes, bytes, mixed(number, static_cast<Word>(left), 1)));
    group.sync();
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

constexpr int kInOrder = 3;           // messages of an epoch
constexpr Word kMostInOrder = 30008;  // bytes
/// Messages around a ring that come in the order of their receives, by a block, or its first warp or thread.
template <class Group>
TASUKI_KERNEL void in_order(device::Messages m, int epochs, Byte* memory, Word* errors) {
  const Group group;
  if (device::this_block().thread() >= group.threads()) return;
  const Word sizes[] = {8, 0, 16, 64, 8, 1, 40, 256, 8, 2040, 1000, 1024, 8, kMostInOrder, 20, 512};
  const int right = (m.team.rank + 1) % m.team.ranks;
  const int left = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  auto* const window = static_cast<Byte*>(device::window(m.team, m.team.rank));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    device::Request sends[kInOrder];
    device::Request receives[kInOrder];
    const bool early = epoch % 2 == 0;
    const auto size_of = [&](int i) { return sizes[(epoch * kInOrder + i) % 16]; };
    const auto to = [&](int i) { return memory + static_cast<Word>(i) * kMostInOrder; };
    const auto receive = [&](int i) {
      const Word more = epoch % 4 == 1 && i != 0 && size_of(i) < kMostInOrder ? 24 : 0;
      return device::irecv(m, group, left, to(i), size_of(i) + more, epoch % 5 == 2 ? device::kAnyTag : i, receives[i]);
    };
    for (int i = 0; i < kInOrder && early; ++i)
      if (!receive(i)) return;
    for (int i = 0; i < kInOrder; ++i) {
      Byte* const from = ((epoch + i) % 3 == 0 ? to(kInOrder) : window) + static_cast<Word>(i) * kMostInOrder;
      fill(group, from, size_of(i), mixed(static_cast<Word>(epoch), static_cast<Word>(m.team.rank), i));
      if (!device::isend(m, group, right, from, size_of(i), i, sends[i])) return;
    }
    for (int i = 0; i < kInOrder && !early; ++i)
      if (!receive(i)) return;
    for (int i = 0; i < kInOrder; ++i) {
      if (!device::wait(m, group, receives[i])) return;
      count(errors, receives[i].tag == i && receives[i].bytes == size_of(i) ? 0 : 1);
      count(errors, differences(group, to(i), size_of(i), mixed(static_cast<Word>(epoch), static_cast<Word>(left), i)));
    }
    for (int i = 0; i < kInOrder; ++i)
      if (!device::wait(m, group, sends[i])) return;
    group.sync();
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

// Two messages come for which no receive is open. Then the first is received, and its place in the ring gets a third
// message for which none is open. Now the second is the earliest that is left over.
TASUKI_KERNEL void left_over(device::Messages m, int epochs, Byte* memory, Word* errors) {
  const auto group = device::this_block();
  const int me = m.team.rank;
  constexpr Word kBytes = 21;
  Byte* const from = memory + kBytes;
  Byte* const to = from + kBytes;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto send = [&](int tag, Word seed) {
      device::Request request;
      fill(group, from, kBytes, mixed(static_cast<Word>(epoch), seed));
      return device::isend(m, group, me, from, kBytes, tag, request) && device::wait(m, group, request);
    };
    const auto receive = [&](int tag, int expected, Word seed) {
      device::Request request;
      if (!device::irecv(m, group, me, to, kBytes, tag, request) || !device::wait(m, group, request)) return false;
      count(errors, request.tag == expected ? 0 : 1);
      count(errors, differences(group, to, kBytes, mixed(static_cast<Word>(epoch), seed)));
      return true;
    };
    device::Request other;
    bool done = false;
    if (!device::irecv(m, group, me, memory, kBytes, 9, other)) return;
    if (!send(1, 0) || !send(2, 1) || !device::test(m, group, other, done)) return;  // which looks at both
    if (!receive(1, 1, 0)) return;
    if (!send(1, 2) || !device::test(m, group, other, done)) return;
    if (!receive(device::kAnyTag, 2, 1) || !receive(device::kAnyTag, 1, 2)) return;
    if (!send(9, 3) || !device::wait(m, group, other)) return;
    count(errors, done ? 1 : 0);
    count(errors, differences(group, memory, kBytes, mixed(static_cast<Word>(epoch), 3)));
    group.sync();
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

}  // namespace

RANK_TEST("the earliest message that nobody takes goes first, when an earlier one's place is in use again") {
  prepare(ctx);
  for (const bool concurrent : {false, true}) {
    tasuki::MessagesOptions options;
    options.depth = 1;  // two places
    options.concurrent = concurrent;
    const tasuki::Messages messages(ctx, options);
    const Buffer<Byte> memory(3 * 21);
    const Buffer<Word> errors(2);
    for (const auto& width : widths())
      tasuki::launch_resident(ctx, width, left_over, messages.device(), 5, memory.get(), errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == widths().size());
  }
}

RANK_TEST("all blocks of kernels on threads send at once") {
  prepare(ctx);
  constexpr int kBlocks = 3;
  for (const auto& width : {widths(kBlocks)[0], widths(kBlocks)[1]}) {
    tasuki::MessagesOptions options;
    options.receives = 128;  // counted from the oldest, whose block may have stopped for long
    const tasuki::Messages messages(ctx, options);
    const Buffer<Byte> memory(static_cast<std::size_t>(kBlocks) * 2 * 2100);
    const Buffer<Word> errors(2);
    // Again, for what one launch leaves the next finds.
    for (const int epochs : {30, 1, 9})
      tasuki::launch_resident(ctx, width, all_blocks, messages.device(), 0, epochs, memory.get(), errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == 3 * kBlocks);
  }
}

RANK_TEST("messages of kernels on threads come in the order of their receives") {
  prepare(ctx);
  for (const bool concurrent : {false, true})
    for (const int depth : {4, 16}) {
      tasuki::MessagesOptions options;
      options.team.window = kInOrder * kMostInOrder;
      options.depth = depth;
      options.concurrent = concurrent;
      const tasuki::Messages messages(ctx, options);
      const Buffer<Byte> memory(2 * kInOrder * kMostInOrder);
      const Buffer<Word> errors(2);
      for (const auto& width : widths())
        for (const auto kernel :
             {in_order<device::BlockGroup>, in_order<device::WarpGroup>, in_order<device::ThreadGroup>})
          tasuki::launch_resident(ctx, width, kernel, messages.device(), 37, memory.get(), errors.get()).wait();
      CHECK(errors[0] == 0);
      CHECK(errors[1] == 3 * widths().size());
    }
}

RANK_TEST("blocks of kernels on threads take messages that are anybody's") {
  prepare(ctx);
  constexpr int kBlocks = 4;
  constexpr Word kLaunches = 3;
  for (const std::int64_t eager : {1024, 64})
    for (const int tags : {1, 3}) {
      tasuki::MessagesOptions options;
      options.eager = eager;
      options.receives = 256;
      const tasuki::Messages messages(ctx, options);
      const Buffer<Byte> memory(static_cast<std::size_t>(kBlocks) * 4 * 600);
      const Buffer<Word> sums(2);
      const Buffer<Word> errors(2);
      for (Word launch = 0; launch < kLaunches; ++launch)
        tasuki::launch_resident(ctx, widths(kBlocks)[launch % 2], anybodys, messages.device(), 40, tags, memory.get(),
                                sums.get(), errors.get())
            .wait();
      const std::vector<Word> sent = ctx.allgather(Word{sums[0]});
      CHECK(sums[1] == sent[static_cast<std::size_t>((ctx.rank() + ctx.size() - 1) % ctx.size())]);
      CHECK(errors[0] == 0);
      CHECK(errors[1] == kLaunches * kBlocks);
    }
}

RANK_TEST("kernels on threads may wait for what they send before they wait for what they get") {
  prepare(ctx);
  constexpr Word kBytes = 30011;
  tasuki::MessagesOptions options;
  options.team.window = kBytes;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Byte> memory(2 * kBytes);
  const Buffer<Word> errors(2);
  tasuki::launch_resident(ctx, widths()[1], senders_first, messages.device(), 50, kBytes, memory.get(), errors.get())
      .wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 1);
}
