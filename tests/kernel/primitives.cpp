// put, signal, word and barrier: data change at every epoch, sizes and offsets are odd.
#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr Word kArea = 1 << 13;  // of a window, for what one rank puts there
constexpr int kArrived = 0;
constexpr int kRead = 1;

struct Piece {
  Word offset;
  Word bytes;
};
TASUKI_DEVICE Piece piece_of(Word epoch, int from, int to) {
  const Word chance = mixed(epoch, static_cast<Word>(from), static_cast<Word>(to));
  const Word bytes = chance % 7 == 0 ? 0 : chance / 7 % (chance % 2 == 0 ? 40 : kArea);
  return {static_cast<Word>(from) * kArea + (kArea - bytes) / 16 * (chance >> 40 & 15), bytes};
}

// Everybody puts to everybody, itself too, once the last epoch's bytes have been looked at.
template <class Group>
TASUKI_DEVICE void put_to_all(const device::Team& team, const Group& group, Byte* source, Word epochs, Word* errors) {
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    for (int to = 0; to < team.ranks; ++to) {
      const Piece piece = piece_of(epoch, team.rank, to);
      Byte* const from = source + epoch % 16;
      fill(group, from, piece.bytes, mixed(epoch, static_cast<Word>(team.rank), static_cast<Word>(to), 1));
      if (!device::wait_signal(team, group, to, kRead, epoch - 1)) return;
      if (!device::put_with_signal(team, group, to, piece.offset, from, piece.bytes, kArrived, epoch)) return;
    }
    for (int from = 0; from < team.ranks; ++from) {
      const Piece piece = piece_of(epoch, from, team.rank);
      if (!device::wait_signal(team, group, from, kArrived, epoch)) return;
      const auto* const at = static_cast<const Byte*>(device::window(team, team.rank)) + piece.offset;
      count(errors, differences(group, at, piece.bytes,
                                mixed(epoch, static_cast<Word>(from), static_cast<Word>(team.rank), 1)));
      if (!device::signal(team, group, from, kRead, epoch)) return;
    }
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);  // it came to its end
}

TASUKI_KERNEL void puts_by_block(device::Team team, Byte* source, Word epochs, Word* errors) {
  put_to_all(team, device::this_block(), source, epochs, errors);
}
TASUKI_KERNEL void puts_by_warp(device::Team team, Byte* source, Word epochs, Word* errors) {
  if (device::this_warp().warp() == device::this_warp().warps() - 1)
    put_to_all(team, device::this_warp(), source, epochs, errors);
}
TASUKI_KERNEL void puts_by_thread(device::Team team, Byte* source, Word epochs, Word* errors) {
  if (device::this_block().thread() == device::this_block().threads() - 1)
    put_to_all(team, device::this_thread(), source, epochs, errors);
}

TASUKI_KERNEL void words_around(device::Team team, Word epochs, Word* errors) {
  const auto group = device::this_block();
  const int left = (team.rank + team.ranks - 1) % team.ranks;
  const int right = (team.rank + 1) % team.ranks;
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    const int slot = static_cast<int>(epoch % 3);  // nobody is two epochs ahead of a neighbour
    Word word = 0;
    if (!device::put_word(team, group, right, slot, epoch, mixed(epoch, static_cast<Word>(team.rank)))) return;
    if (!device::wait_word(team, group, left, slot, epoch, word)) return;
    count(errors, word == mixed(epoch, static_cast<Word>(left)) ? 0 : 1);
    if (!device::put_word(team, group, left, 4, epoch, epoch) || !device::wait_word(team, group, right, 4, epoch, word))
      return;
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

// One block of each rank; what a rank has written before a barrier all see after it.
TASUKI_KERNEL void barriers(device::Team team, Word epochs, Word* errors) {
  const auto group = device::this_block();
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    if (group.thread() == 0)
      for (int rank = 0; rank < team.ranks; ++rank)
        static_cast<Word*>(device::window(team, rank))[team.rank] = epoch * 1000 + static_cast<Word>(rank);
    if (!device::barrier(team, group, 1)) return;
    for (int rank = group.thread(); rank < team.ranks; rank += group.threads())
      count(errors,
            static_cast<Word*>(device::window(team, team.rank))[rank] == epoch * 1000 + static_cast<Word>(team.rank)
                ? 0
                : 1);
    if (!device::barrier(team, group, 0)) return;
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

// All blocks of all ranks: every block writes a cell of every rank, and looks at those of all blocks.
TASUKI_KERNEL void grid_barriers(device::Team team, Word epochs, Word* errors) {
  const auto block = device::this_block();
  const auto blocks = static_cast<Word>(block.blocks());
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    for (int rank = block.thread(); rank < team.ranks; rank += block.threads()) {
      auto* const cells = static_cast<Word*>(device::window(team, rank));
      cells[static_cast<Word>(team.rank) * blocks + static_cast<Word>(block.block())] = epoch;
    }
    if (!device::barrier(team, device::this_grid())) return;
    const auto* const cells = static_cast<const Word*>(device::window(team, team.rank));
    for (Word i = static_cast<Word>(block.thread()); i < blocks * static_cast<Word>(team.ranks);
         i += static_cast<Word>(block.threads()))
      count(errors, cells[i] == epoch ? 0 : 1);
    if (!device::barrier(team, device::this_grid())) return;
  }
  if (block.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

}  // namespace

RANK_TEST("kernels on threads put to all ranks and signal, by block, warp and thread") {
  prepare(ctx);
  tasuki::KernelTeamOptions options;
  options.window = static_cast<std::int64_t>(kArea) * ctx.size();
  const tasuki::KernelTeam team(ctx, options);
  CHECK(team.memory() == (tasuki::uses_gpu(ctx) ? tasuki::Memory::device : tasuki::Memory::host));
  const Buffer<Byte> source(kArea + 16);
  for (auto* const kernel : {puts_by_block, puts_by_warp, puts_by_thread}) {
    for (const auto& width : widths()) {
      CAPTURE(width.cpu_threads);
      // Signals only grow: a team a launch.
      const tasuki::KernelTeam fresh(ctx, options);
      const Buffer<Word> errors(2);
      auto running = tasuki::launch_resident(ctx, width, kernel, fresh.device(), source.get(), 40, errors.get());
      running.wait();
      CHECK(errors[0] == 0);
      CHECK(errors[1] == 1);
    }
  }
}

RANK_TEST("kernels on threads tell each other words") {
  prepare(ctx);
  const tasuki::KernelTeam team(ctx);
  const Buffer<Word> errors(2);
  auto running = tasuki::launch_resident(ctx, widths()[1], words_around, team.device(), 500, errors.get());
  running.wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 1);
}

RANK_TEST("kernels on threads pass ten thousand barriers, in several launches") {
  prepare(ctx);
  tasuki::KernelTeamOptions options;
  options.window = static_cast<std::int64_t>(sizeof(Word)) * ctx.size();
  const tasuki::KernelTeam team(ctx, options);
  const Buffer<Word> errors(2);
  for (const auto& width : {widths()[0], widths()[1]}) {
    const std::vector<int> launches =
        width.cpu_threads == 1 ? std::vector{1, 1000, 1000, 1000, 1000} : std::vector{1, 999};
    for (const int epochs : launches)
      tasuki::launch_resident(ctx, width, barriers, team.device(), static_cast<Word>(epochs), errors.get()).wait();
  }
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 7);
}

RANK_TEST("all blocks of kernels on threads pass a barrier, whatever their number") {
  prepare(ctx);
  tasuki::KernelTeamOptions options;
  options.window = static_cast<std::int64_t>(sizeof(Word)) * 8 * ctx.size();
  const tasuki::KernelTeam team(ctx, options);
  for (const int blocks : {1, 3, 2}) {
    const Buffer<Word> errors(2);
    for (const auto& width : {widths(blocks)[0], widths(blocks)[1]})
      tasuki::launch_resident(ctx, width, grid_barriers, team.device(), 60, errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == 2 * static_cast<Word>(blocks));
  }
}
