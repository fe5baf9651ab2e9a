// What the tests of messages share: random rounds of messages, which receive gets which message the host has worked
// out, and blocks that all send at once. Of a program for GPUs one file includes this.
#pragma once

#include <algorithm>
#include <random>

#include "kernel_test.hpp"

namespace kernel_tests {

namespace device = tasuki::device;

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
inline std::vector<std::size_t> matched(const std::vector<Message>& messages, const std::vector<int>& wanted) {
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
inline Part part_of(int me, int ranks, int rounds, int seed, Word largest, Word outside, bool receives_first) {
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

inline void exchange(const tasuki::Context& ctx, Kernel kernel, const tasuki::ResidentOptions& width, int rounds,
                     int seed, Word largest, bool concurrent = true, const std::string& path = "auto",
                     std::int64_t staging = tasuki::MessagesOptions().staging) {
  CAPTURE(seed);
  CAPTURE(staging);
  const bool tight = seed % 3 == 0;  // isend has to wait, and takes meanwhile what comes for receives that are open
  const std::int64_t outside = path == "mpi" ? staging : tasuki::MessagesOptions().largest;
  const Part part = part_of(ctx.rank(), ctx.size(), rounds, seed, largest, static_cast<Word>(outside), tight);
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
  options.staging = staging;
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

}  // namespace kernel_tests
