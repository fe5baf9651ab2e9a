// Blocks that wait for their neighbours alone, step by step (tasuki/kernel/steps.cuh): what they read from each other
// with two copies that take turns, beside a halo that some of them run, and what happens when one does not come.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

using Lists = std::vector<std::vector<int>>;

Lists random_neighbours(std::mt19937& chance, int blocks) {
  Lists of(static_cast<std::size_t>(blocks));
  for (int a = 0; a < blocks; ++a)
    for (int b = a + 1; b < blocks; ++b)
      if (chance() % 3 != 0) {
        of[static_cast<std::size_t>(a)].push_back(b);
        of[static_cast<std::size_t>(b)].push_back(a);
      }
  for (auto& list : of) std::shuffle(list.begin(), list.end(), chance);
  return of;
}

/// Words of each block in two copies, of which a step makes one from the other: from the block's own and from its
/// neighbours' words.
struct Cells {
  Word* copies[2];
  const int* first;  // by block, of its list
  const int* lists;
  int words;  // of a block
};

// For the kernel, and for the host, which computes the same.
TASUKI_BOTH Word stirred(Word a, Word b, Word c) {
  Word x = (a + 1) * 0x9e3779b97f4a7c15ull + b;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull + c;
  return x ^ x >> 29;
}

TASUKI_BOTH Word next_word(const Cells& c, const Word* from, int block, int i, Word step) {
  Word value = stirred(from[block * c.words + i], step, 0);
  for (int n = c.first[block]; n < c.first[block + 1]; ++n)
    value += stirred(from[c.lists[n] * c.words + (i + 1) % c.words], step, 1);
  return value;
}

/// Some blocks dawdle in some steps, so that others get as far ahead as they may.
TASUKI_DEVICE void dawdle(Word seed, int block, Word step) {
  if (mixed(seed, static_cast<Word>(block), step) % 4 != 0) return;
  const Word begin = device::detail::now_ns();
  while (device::detail::now_ns() - begin < 20000) {
  }
}

TASUKI_KERNEL void steps_of_cells(device::Handle halo, device::Neighbours neighbours, Cells c, int group, Word before,
                                  int count, Word seed, Word* wrong) {
  const auto block = device::this_block();
  const auto some = device::blocks(0, group);
  const device::Steps mine(neighbours);
  for (int n = 0; n < count; ++n) {
    const Word step = before + static_cast<Word>(n);
    const bool good = mine.wait(halo, step);
    kernel_tests::count(wrong, good ? 0 : 1);
    if (!good) return;
    if (block.thread() == 0) dawdle(seed, block.block(), step);
    const Word* const from = c.copies[step % 2];
    Word* const to = c.copies[(step + 1) % 2];
    for (int i = block.thread(); i < c.words; i += block.threads())
      to[block.block() * c.words + i] = next_word(c, from, block.block(), i, step);
    if (some.has_this_block()) {
      const bool ran = device::run(halo, some);
      kernel_tests::count(wrong, ran ? 0 : 1);
      if (!ran) return;
    }
    mine.end(step + 1);
  }
}

void compare_steps(const tasuki::Context& ctx, Ring& ring, const tasuki::ResidentOptions& launch, unsigned seed) {
  std::mt19937 chance(seed);
  const int blocks = launch.blocks;
  const int words = 1 + static_cast<int>(chance() % 9);
  const Lists of = random_neighbours(chance, blocks);
  const tasuki::BlockNeighbours neighbours(ctx, of);
  std::vector<int> first;
  std::vector<int> lists;
  for (const auto& list : of) {
    first.push_back(static_cast<int>(lists.size()));
    lists.insert(lists.end(), list.begin(), list.end());
  }
  first.push_back(static_cast<int>(lists.size()));
  lists.push_back(-1);
  const Buffer<int> kept_first(first);
  const Buffer<int> kept_lists(lists);
  const auto all = static_cast<std::size_t>(blocks) * static_cast<std::size_t>(words);
  const Buffer<Word> a(all);
  const Buffer<Word> b(all);
  const Buffer<Word> wrong(1);
  std::vector<Word> expected(all);
  for (std::size_t i = 0; i < all; ++i) expected[i] = a[i] = stirred(seed, i, static_cast<Word>(ctx.rank()));
  const Cells cells{{a.get(), b.get()}, kept_first.get(), kept_lists.get(), words};
  tasuki::KernelGroup group;
  group.blocks = 1 + static_cast<int>(seed) % blocks;
  group.threads = launch.threads;
  group.cpu_threads = launch.cpu_threads;
  Word before = 0;
  for (const int count : {1, 6, 13}) {
    tasuki::launch_resident(ctx, launch, steps_of_cells, ring.halo.device(group), neighbours.device(), cells,
                            group.blocks, before, count, Word{seed}, wrong.get())
        .wait();
    for (int n = 0; n < count; ++n, ++before) {
      const Cells serial{{}, first.data(), lists.data(), words};
      const std::vector<Word> old = expected;
      for (int block = 0; block < blocks; ++block)
        for (int i = 0; i < words; ++i)
          expected[static_cast<std::size_t>(block * words + i)] = next_word(serial, old.data(), block, i, before);
    }
    const Word* const found = before % 2 == 0 ? a.get() : b.get();
    CHECK(wrong[0] == 0);
    CHECK(std::equal(expected.begin(), expected.end(), found));
  }
}

/// Block 1 ends no step after the second; its neighbours wait for it.
TASUKI_KERNEL void one_stays_away(device::Handle halo, device::Neighbours neighbours, Word* yes) {
  const device::Steps mine(neighbours);
  const bool stays = device::this_block().block() == 1;
  for (Word step = 0; step < 5; ++step) {
    if (stays && step == 2) return;
    if (!mine.wait(halo, step)) {
      kernel_tests::count(yes, mine.wait(halo, step) ? 1 : 0);
      kernel_tests::count(yes, device::failed(halo) ? 0 : 1);
      return;
    }
    mine.end(step + 1);
  }
}

/// Block 0 waits for other ranks, which do not come, and the others for block 0.
TASUKI_KERNEL void others_stay_away(device::Handle halo, device::Neighbours neighbours, int rank, Word* ended) {
  if (rank != 0) return;
  const device::Steps mine(neighbours);
  const auto first = device::blocks(0, 1);
  for (Word step = 0; step < 3; ++step) {
    if (!mine.wait(halo, step)) return;
    if (first.has_this_block() && !device::run(halo, first)) return;
    mine.end(step + 1);
  }
  kernel_tests::count(ended, 1);
}

TASUKI_KERNEL void only_launched(device::Handle, device::Neighbours) {}

tasuki::KernelGroup group_of(const tasuki::ResidentOptions& launch, int blocks) {
  tasuki::KernelGroup group;
  group.blocks = blocks;
  group.threads = launch.threads;
  group.cpu_threads = launch.cpu_threads;
  return group;
}

}  // namespace

RANK_TEST("steps: neighbouring blocks see what the others wrote, and overwrite nothing too early") {
  prepare(ctx);
  Ring ring(ctx);
  unsigned seed = 1;
  for (const int blocks : {1, 2, 5, 9})
    for (const auto& launch : widths(blocks)) compare_steps(ctx, ring, launch, seed++);
}

RANK_TEST("steps: neighbours that cannot be are errors on the host") {
  prepare(ctx);
  const std::string who = "rank " + std::to_string(ctx.rank()) + ": ";
  const auto making = [&](const Lists& of) { return error_of([&] { const tasuki::BlockNeighbours made(ctx, of); }); };
  CHECK(contains(making({}), who + "BlockNeighbours: argument 'of' has 0 lists"));
  CHECK(contains(making({{1}, {0, 2}}), "the list of block 1 names block 2; blocks are numbered from 0 to 1"));
  CHECK(contains(making({{-1}}), "the list of block 0 names block -1"));
  CHECK(contains(making({{0}}), "the list of block 0 names the block itself"));
  CHECK(contains(making({{1, 1}, {0}}), "the list of block 0 names block 1 twice"));
  CHECK(contains(making({{1}, {}}), "the list of block 0 names block 1, whose list does not name block 0"));

  Ring ring(ctx);
  const tasuki::BlockNeighbours two(ctx, {{1}, {0}});
  tasuki::ResidentOptions launch;
  launch.blocks = 3;
  const auto handle = ring.halo.device(group_of(launch, 1));
  CHECK(contains(error_of([&] { tasuki::launch_resident(ctx, launch, only_launched, handle, two.device()).wait(); }),
                 who + "launch_resident: an argument has the neighbours of 2 blocks, but the launch has 3"));
  launch.blocks = 2;
  CHECK(error_of([&] { tasuki::launch_resident(ctx, launch, only_launched, handle, two.device()).wait(); }) ==
        "no error");
}

RANK_TEST("steps: a block that waits for one which stays away ends at the deadline, and says so") {
  tasuki::Context mine = ctx;
  prepare(mine);
  Ring ring(ctx);
  const tasuki::BlockNeighbours neighbours(ctx, {{1}, {0, 2}, {1}});
  const Buffer<Word> yes(1);
  tasuki::ResidentOptions launch;
  launch.blocks = 3;
  ctx.barrier();
  mine.set_deadline(4);
  auto running = tasuki::launch_resident(ctx, launch, one_stays_away, ring.halo.device(group_of(launch, 1)),
                                         neighbours.device(), yes.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  CHECK(contains(error, "rank " + std::to_string(ctx.rank()) + ": halo u: in block "));
  CHECK(contains(error, "step 3 did not end: it waited for block 1, which has ended step 2: nine tenths"));
  CHECK(yes[0] == 0);
}

RANK_TEST("steps: a block that waits for a rank in vain ends at the deadline, and its neighbours with it") {
  if (ctx.size() == 1) return;
  tasuki::Context mine = ctx;
  prepare(mine);
  Ring ring(ctx);
  const tasuki::BlockNeighbours neighbours(ctx, {{1, 2}, {0}, {0}});
  const Buffer<Word> ended(1);
  tasuki::ResidentOptions launch;
  launch.blocks = 3;
  ctx.barrier();
  mine.set_deadline(4);
  auto running = tasuki::launch_resident(ctx, launch, others_stay_away, ring.halo.device(group_of(launch, 1)),
                                         neighbours.device(), ctx.rank(), ended.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  if (ctx.rank() == 0) {
    CHECK(contains(error, "rank 0: halo u: in block 0 of a kernel, epoch 1 did not end: it waited for "));
    CHECK(contains(error, " with rank "));
  } else {
    const bool none = error == "no error" || contains(error, "rank 0 gave up");  // it may be noticed in time
    CHECK(none);
  }
  CHECK(ended[0] == 0);
}
