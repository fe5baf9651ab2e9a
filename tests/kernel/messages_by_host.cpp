// Messages with tags that the process's thread carries: across islands and where that is asked for; large ones in
// slices, which the groups of a rank copy; more messages than places.
#include "random_messages.hpp"

using namespace kernel_tests;

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

RANK_TEST("kernels of subsets of the ranks send through the host at the same time") {
  if (ranks_are_threads()) return;
  prepare(ctx);
  std::vector<int> alike;  // even ranks, or odd ones, the last first
  for (int rank = ctx.size() - 1; rank >= 0; --rank)
    if (rank % 2 == ctx.rank() % 2) alike.push_back(rank);
  const tasuki::Context part = ctx.subset(alike);
  prepare(part);
  exchange(part, by_block, widths()[1], 6, 81, 20000, true, "mpi", 4096);
  exchange(part, by_block, widths()[0], 6, 82, 20000, false, "mpi", 4096);
  std::vector<int> but_first;
  for (int rank = ctx.size() - 1; rank > 0; --rank) but_first.push_back(rank);
  if (ctx.rank() > 0) {
    const tasuki::Context rest = ctx.subset(but_first);
    prepare(rest);
    exchange(rest, by_block, widths()[1], 6, 83, 20000, true, "mpi", 4096);
  }
  exchange(ctx, by_block, widths()[1], 4, 84, 20000, true, "mpi", 4096);
}

RANK_TEST("blocks of kernels copy slices of each other's messages through the host") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  constexpr int kBlocks = 3;
  tasuki::MessagesOptions options;
  options.path = "mpi";
  options.staging = 800;
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
  options.staging = 1 << 12;
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
