// Messages with tags: random sizes, tags, orders of posting and waiting, several in flight; what is sent from the
// window and from elsewhere; senders that wait first. Which receive gets which message the host has worked out.
#include <algorithm>
#include <random>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr int kMostRequests = 64;  // of a rank in a round

// One call of a rank's part. Sends and receives are posted in their order, and waited for in that of `wait`.
struct Post {
  int receives;
  int peer;
  int tag;
  int expected_tag;
  int wait;   // which post is the n-th to be waited for
  int tests;  // not waited for but tested
  Word at;    // where in the rank's memory; for sends from the window, where in that
  Word room;
  Word bytes;
  Word seed;
  int in_window;
};

template <class Group>
TASUKI_DEVICE bool run_posts(const device::Messages& m, const Group& group, const Post* posts, int number, Byte* memory,
                             Word* errors) {
  device::Request requests[kMostRequests];
  auto* const window = static_cast<Byte*>(device::window(m.team, m.team.rank));
  for (int i = 0; i < number; ++i) {
    const Post post = posts[i];
    Byte* const at = (post.in_window != 0 ? window : memory) + post.at;
    if (post.receives != 0) {
      if (!device::irecv(m, group, post.peer, at, post.room, post.tag, requests[i])) return false;
      continue;
    }
    fill(group, at, post.bytes, post.seed);
    if (!device::isend(m, group, post.peer, at, post.bytes, post.tag, requests[i])) return false;
  }
  for (int n = 0; n < number; ++n) {
    const int i = posts[n].wait;
    const Post post = posts[i];
    bool done = false;
    while (post.tests != 0 && !done)
      if (!device::test(m, group, requests[i], done)) return false;
    if (!device::wait(m, group, requests[i])) return false;
    Byte* const at = (post.in_window != 0 ? window : memory) + post.at;
    if (post.receives != 0) {
      count(errors, requests[i].tag == post.expected_tag && requests[i].bytes == post.bytes ? 0 : 1);
      count(errors, differences(group, at, post.bytes, post.seed));
    } else {
      group.sync();
      fill(group, at, post.bytes, 7);  // it may be changed
    }
    group.sync();
  }
  return true;
}

struct Rounds {
  const Post* posts;
  const int* first;  // of each round, and one more
  int rounds;
};

TASUKI_KERNEL void by_block(device::Messages m, Rounds all, Byte* memory, Word* errors) {
  const auto group = device::this_block();
  for (int r = 0; r < all.rounds; ++r)
    if (!run_posts(m, group, all.posts + all.first[r], all.first[r + 1] - all.first[r], memory, errors)) return;
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}
TASUKI_KERNEL void by_warp(device::Messages m, Rounds all, Byte* memory, Word* errors) {
  const auto group = device::this_warp();
  if (group.warp() != group.warps() - 1) return;
  for (int r = 0; r < all.rounds; ++r)
    if (!run_posts(m, group, all.posts + all.first[r], all.first[r + 1] - all.first[r], memory, errors)) return;
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}
TASUKI_KERNEL void by_thread(device::Messages m, Rounds all, Byte* memory, Word* errors) {
  if (device::this_block().thread() != 0) return;
  for (int r = 0; r < all.rounds; ++r)
    if (!run_posts(m, device::this_thread(), all.posts + all.first[r], all.first[r + 1] - all.first[r], memory, errors))
      return;
  device::detail::add_gpu(errors + 1, 1);
}

using Kernel = void (*)(device::Messages, Rounds, Byte*, Word*);

struct Message {
  int tag;
  Word bytes;
  Word seed;
};

// Which message each receive gets; empty if one gets none.
std::vector<std::size_t> matched(const std::vector<Message>& messages, const std::vector<int>& wanted) {
  std::vector<std::size_t> got;
  std::vector<bool> gone(messages.size(), false);
  for (const int tag : wanted) {
    std::size_t n = 0;
    while (n < messages.size() && (gone[n] || (tag != device::kAnyTag && tag != messages[n].tag))) ++n;
    if (n == messages.size()) return {};
    gone[n] = true;
    got.push_back(n);
  }
  return got;
}

struct Part {
  std::vector<Post> posts;
  std::vector<int> first{0};
  Word memory = 0;
  Word window = 0;
};

constexpr int kMostMessages = 4;  // between two ranks in a round

// A rank's part in rounds that all ranks work out alike. `outside`: bytes of its own window's messages from elsewhere.
Part part_of(int me, int ranks, int rounds, int seed, Word largest, Word outside, bool receives_first) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Part part;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::vector<Post>> posts(static_cast<std::size_t>(ranks));
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        std::vector<Message> messages(random() % (kMostMessages + 1));
        for (Message& message : messages) {
          const auto kind = random() % 8;
          message.bytes = kind == 0 ? 0 : kind < 5 ? random() % 40 : kind < 7 ? random() % 3000 : random() % largest;
          message.tag = static_cast<int>(random() % 3) * 1000000;
          message.seed = random();
        }
        std::vector<int> wanted;
        std::vector<std::size_t> got;
        do {
          wanted.clear();
          for (const Message& message : messages) wanted.push_back(random() % 3 == 0 ? device::kAnyTag : message.tag);
          std::shuffle(wanted.begin(), wanted.end(), random);
          got = matched(messages, wanted);
        } while (got.size() != messages.size());
        for (const Message& message : messages) {
          Post send{};
          send.peer = to;
          send.tag = message.tag;
          send.bytes = send.room = message.bytes;
          send.seed = message.seed;
          const bool alone = from == to && message.bytes > outside;
          send.in_window = random() % 2 == 0 || message.bytes > 60000 || alone ? 1 : 0;
          posts[static_cast<std::size_t>(from)].push_back(send);
        }
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const Message& message = messages[got[i]];
          Post receive{};
          receive.receives = 1;
          receive.peer = from;
          receive.tag = wanted[i];
          receive.expected_tag = message.tag;
          receive.bytes = message.bytes;
          receive.room = message.bytes + random() % 3 * 11;
          receive.seed = message.seed;
          receive.tests = random() % 4 == 0 ? 1 : 0;
          receive.in_window = random() % 2 == 0 ? 1 : 0;
          posts[static_cast<std::size_t>(to)].push_back(receive);
        }
      }
    }
    // Shuffled, but for the order between two ranks in one direction.
    for (int rank = 0; rank < ranks; ++rank) {
      auto& mine = posts[static_cast<std::size_t>(rank)];
      std::vector<Post> shuffled;
      while (!mine.empty()) {
        const Post chosen = mine[random() % mine.size()];
        const auto same = [&](const Post& post) {
          return post.receives == chosen.receives && post.peer == chosen.peer;
        };
        const auto first = std::find_if(mine.begin(), mine.end(), same);
        shuffled.push_back(*first);
        mine.erase(first);
      }
      if (receives_first)
        std::stable_partition(shuffled.begin(), shuffled.end(), [](const Post& post) { return post.receives != 0; });
      std::vector<int> order(shuffled.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
      std::shuffle(order.begin(), order.end(), random);
      const Word shift = random() % 16;
      if (rank != me) continue;
      Word memory = shift;
      Word window = shift / 2;
      for (std::size_t i = 0; i < shuffled.size(); ++i) {
        Post& post = shuffled[i];
        Word& place = post.in_window != 0 ? window : memory;
        post.wait = order[i];
        post.at = place;
        place += post.room + (post.seed % 2 == 0 ? 16 - post.room % 16 : 3);
        part.posts.push_back(post);
      }
      part.memory = std::max(part.memory, memory);
      part.window = std::max(part.window, window);
      part.first.push_back(static_cast<int>(part.posts.size()));
    }
  }
  return part;
}

void exchange(const tasuki::Context& ctx, Kernel kernel, const tasuki::ResidentOptions& width, int rounds, int seed,
              Word largest, bool concurrent = true, const std::string& path = "auto",
              std::int64_t staging = tasuki::MessagesOptions().largest) {
  CAPTURE(seed);
  CAPTURE(staging);
  const bool tight = seed % 3 == 0;  // isend has to wait, and takes meanwhile what comes for receives that are open
  const Part part = part_of(ctx.rank(), ctx.size(), rounds, seed, largest, static_cast<Word>(staging), tight);
  for (int r = 0; r < rounds; ++r)
    REQUIRE(part.first[static_cast<std::size_t>(r) + 1] - part.first[static_cast<std::size_t>(r)] <= kMostRequests);
  tasuki::MessagesOptions options;
  for (const Word bytes : ctx.allgather(part.window))
    options.team.window = std::max(options.team.window, static_cast<std::int64_t>(bytes));
  options.depth = tight ? 1 : kMostMessages;
  options.receives = kMostRequests;
  options.eager = seed % 2 == 0 ? 1024 : 37;
  options.concurrent = concurrent;
  options.path = path;
  options.largest = staging;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Post> posts(part.posts);
  const Buffer<int> first(part.first);
  const Buffer<Byte> memory(part.memory + 1);
  const Buffer<Word> errors(2);
  auto running = tasuki::launch_resident(ctx, width, kernel, messages.device(),
                                         Rounds{posts.get(), first.get(), rounds}, memory.get(), errors.get());
  running.wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 1);
}

}  // namespace

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

// Every block of a rank sends to the same block of every rank, `first` ranks on, with its number for a tag, all at
// once.
TASUKI_KERNEL void all_blocks(device::Messages m, int first, int epochs, Byte* memory, Word* errors) {
  const auto group = device::this_block();
  const auto block = static_cast<Word>(group.block());
  constexpr Word kMost = 2100;
  Byte* const sent = memory + block * 2 * kMost;
  Byte* const got = sent + kMost;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int step = first; step < m.team.ranks; ++step) {
      const int to = (m.team.rank + step) % m.team.ranks;
      const int from = (m.team.rank + m.team.ranks - step) % m.team.ranks;
      const Word out = mixed(static_cast<Word>(epoch), block, static_cast<Word>(m.team.rank), static_cast<Word>(to));
      const Word in = mixed(static_cast<Word>(epoch), block, static_cast<Word>(from), static_cast<Word>(m.team.rank));
      device::Request send;
      device::Request receive;
      fill(group, sent, out % kMost, out);
      if (!device::irecv(m, group, from, got, kMost, group.block(), receive)) return;
      if (!device::isend(m, group, to, sent, out % kMost, group.block(), send)) return;
      if (!device::wait(m, group, send) || !device::wait(m, group, receive)) return;
      count(errors, receive.bytes == in % kMost && receive.tag == group.block() ? 0 : 1);
      count(errors, differences(group, got, in % kMost, in));
      group.sync();
    }
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

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

TEST_CASE("kernels send random messages across islands") {
  if (ranks_are_threads()) return;
  for (const int island : {1, 2}) {
    with_islands(island, [] {
      on_ranks([](const tasuki::Context& ctx) {
        prepare(ctx);
        int seed = 41;
        for (const auto& width : widths())
          for (int repeat = 0; repeat < 3; ++repeat) exchange(ctx, by_block, width, 8, seed++, 50000);
        exchange(ctx, by_warp, widths()[1], 10, 51, 20000);
        exchange(ctx, by_thread, widths()[0], 10, 52, 20000, false);
      });
    });
  }
}

RANK_TEST("kernels send random messages through the host where that is asked for") {
  if (ranks_are_threads()) return;
  prepare(ctx);
  exchange(ctx, by_block, widths()[0], 10, 61, 50000, true, "mpi");
  exchange(ctx, by_block, widths()[1], 10, 62, 50000, true, "mpi");
  exchange(ctx, by_block, widths()[2], 10, 63, 50000, false, "mpi");
}

RANK_TEST("kernels send messages of any size through the host, in slices") {
  if (ranks_are_threads()) return;
  prepare(ctx);
  exchange(ctx, by_block, widths()[0], 2, 71, 90000, true, "mpi", 1000);
  exchange(ctx, by_block, widths()[1], 2, 72, 50000, true, "mpi", 4096);
  exchange(ctx, by_block, widths()[2], 2, 73, 3000, false, "mpi", 64);
  exchange(ctx, by_warp, widths()[1], 2, 75, 20000, true, "mpi", 500);
  exchange(ctx, by_thread, widths()[0], 2, 76, 20000, false, "mpi", 500);
}

RANK_TEST("blocks of kernels copy slices of each other's messages through the host") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  constexpr int kBlocks = 3;
  tasuki::MessagesOptions options;
  options.path = "mpi";
  options.largest = 800;
  options.by_host = 16;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Byte> memory(static_cast<std::size_t>(kBlocks) * 2 * 2100);
  const Buffer<Word> errors(2);
  for (const int epochs : {4, 1, 2})
    tasuki::launch_resident(ctx, widths(kBlocks)[1], all_blocks, messages.device(), 1, epochs, memory.get(),
                            errors.get())
        .wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 3 * kBlocks);
}

namespace {

// Two ranks send to each other, and wait for a last word before they wait for what they send and get: only in that wait
// can the slices go.
TASUKI_KERNEL void word_last(device::Messages m, Word bytes, Byte* memory, Word* errors) {
  const auto group = device::this_block();
  const int other = m.team.rank ^ 1;
  if (other >= m.team.ranks) return;
  device::Request send, receive, word, last;
  fill(group, memory, bytes, static_cast<Word>(m.team.rank) + 5);
  if (!device::irecv(m, group, other, memory + bytes, bytes, 1, receive)) return;
  if (!device::irecv(m, group, other, memory + 2 * bytes, 8, 2, last)) return;
  if (!device::isend(m, group, other, memory, bytes, 1, send)) return;
  if (m.team.rank < other) {  // the word goes when all has come
    if (!device::wait(m, group, receive) || !device::isend(m, group, other, memory, 8, 2, word)) return;
    if (!device::wait(m, group, last) || !device::wait(m, group, word) || !device::wait(m, group, send)) return;
  } else {
    if (!device::wait(m, group, last) || !device::isend(m, group, other, memory, 8, 2, word)) return;
    if (!device::wait(m, group, word) || !device::wait(m, group, send) || !device::wait(m, group, receive)) return;
  }
  count(errors, receive.bytes == bytes ? 0 : 1);
  count(errors, differences(group, memory + bytes, bytes, static_cast<Word>(other) + 5));
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

}  // namespace

RANK_TEST("a kernel that waits for something else sends and receives slices meanwhile") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  tasuki::MessagesOptions options;
  options.path = "mpi";
  options.largest = 1 << 12;
  const tasuki::Messages messages(ctx, options);
  for (const Word bytes : {Word{4097}, Word{177777}}) {
    const Buffer<Byte> memory(2 * bytes + 8);
    const Buffer<Word> errors(2);
    tasuki::launch_resident(ctx, widths()[1], word_last, messages.device(), bytes, memory.get(), errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == ((ctx.rank() ^ 1) < ctx.size() ? 1 : 0));
  }
}

RANK_TEST("all blocks of kernels send through the host at once, with fewer places than messages") {
  if (ranks_are_threads()) return;
  prepare(ctx);
  constexpr int kBlocks = 5;
  tasuki::MessagesOptions options;
  options.path = "mpi";
  options.by_host = 16;
  options.receives = 256;
  const tasuki::Messages messages(ctx, options);
  const Buffer<Byte> memory(static_cast<std::size_t>(kBlocks) * 2 * 2100);
  const Buffer<Word> errors(2);
  for (const int epochs : {30, 1, 9})
    tasuki::launch_resident(ctx, widths(kBlocks)[0], all_blocks, messages.device(), 0, epochs, memory.get(),
                            errors.get())
        .wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 3 * kBlocks);
}

namespace {

TASUKI_KERNEL void echoes(device::Messages m, int times, Word* errors) {
  const auto group = device::this_block();
  for (int n = 0; n < times; ++n) {
    const Word word = mixed(static_cast<Word>(n), static_cast<Word>(group.block()));
    Word back = 0;
    if (!device::echo(m, group, word, back)) return;
    if (group.thread() == 0) count(errors, back == word ? 0 : 1);
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

}  // namespace

RANK_TEST("the process's thread echoes what blocks of kernels ask it") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  constexpr int kBlocks = 3;
  tasuki::MessagesOptions options;
  options.path = "mpi";
  options.by_host = 2;  // fewer than blocks
  const tasuki::Messages messages(ctx, options);
  const Buffer<Word> errors(2);
  tasuki::launch_resident(ctx, widths(kBlocks)[1], echoes, messages.device(), 200, errors.get()).wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == kBlocks);
}
