// Packets, all-to-all and allreduce of kernels: data change at every epoch, sizes are odd, and sums are bitwise those
// of one loop over the ranks.
#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr Word kPacket = 4000;  // bytes

TASUKI_DEVICE Word packet_bytes(Word epoch, int from, Word block) {
  const Word chance = mixed(epoch, static_cast<Word>(from), block);
  return chance % 5 == 0 ? 0 : chance / 8 % (chance % 2 == 0 ? 70 : kPacket + 1);
}

// Every group sends to the right, waits for the left, and says so.
template <class Group>
TASUKI_DEVICE void packets_around(const device::Team& team, const Group& group, int slot, Byte* memory, Word epochs,
                                  Word* errors) {
  const int left = (team.rank + team.ranks - 1) % team.ranks;
  const int right = (team.rank + 1) % team.ranks;
  const auto block = static_cast<Word>(slot);
  Byte* const sent = memory + block * 2 * (kPacket + 16);
  Byte* const got = sent + kPacket + 16;
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    Byte* const from = sent + epoch % 16;
    const Word out = packet_bytes(epoch, team.rank, block);
    const Word in = packet_bytes(epoch, left, block);
    fill(group, from, out, mixed(epoch, static_cast<Word>(team.rank), block, 1));
    if (!device::put_packet(team, group, right, slot, epoch, from, out)) return;
    fill(group, from, out, 5);  // it may be changed
    if (!device::wait_packet(team, group, left, slot, epoch, got + epoch % 4, in)) return;
    count(errors, differences(group, got + epoch % 4, in, mixed(epoch, static_cast<Word>(left), block, 1)));
    if (!device::signal(team, group, left, slot, epoch)) return;
    if (!device::wait_signal(team, group, right, slot, epoch)) return;
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

TASUKI_KERNEL void packets_by_blocks(TASUKI_PARAMETER device::Team team, Byte* memory, Word epochs, Word* errors) {
  packets_around(team, device::this_block(), device::this_block().block(), memory, epochs, errors);
}
TASUKI_KERNEL void packets_by_warps(TASUKI_PARAMETER device::Team team, Byte* memory, Word epochs, Word* errors) {
  const auto block = device::this_block();
  const auto warp = device::this_warp();
  if (warp.warp() < 2) packets_around(team, warp, block.block() * 2 + warp.warp(), memory, epochs, errors);
}

constexpr int kWords = 7;

template <class Group>
TASUKI_DEVICE void words_to_all(const device::Team& team, const Group& group, int which, Word* memory, Word epochs,
                                Word* errors) {
  Word* const mine = memory + static_cast<Word>(which) * 2 * kWords * device::kMostRanks;
  Word* const other = mine + kWords * device::kMostRanks;
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    const int words = static_cast<int>(epoch % (kWords + 1));
    Word* const theirs = epoch % 3 == 0 ? mine : other;
    for (int i = group.thread(); i < words * team.ranks; i += group.threads())
      mine[i] = mixed(epoch, static_cast<Word>(team.rank), static_cast<Word>(i / words), static_cast<Word>(i % words));
    if (!device::all_to_all(team, group, mine, theirs, words, which)) return;
    for (int i = group.thread(); i < words * team.ranks; i += group.threads())
      count(errors, theirs[i] == mixed(epoch, static_cast<Word>(i / words), static_cast<Word>(team.rank),
                                       static_cast<Word>(i % words))
                        ? 0
                        : 1);
    group.sync();
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

TASUKI_KERNEL void all_to_alls(TASUKI_PARAMETER device::Team team, Word* memory, Word epochs, Word* errors) {
  const auto block = device::this_block();
  words_to_all(team, block, block.block(), memory, epochs, errors);
  block.sync();
  const auto warp = device::this_warp();
  if (warp.warp() == warp.warps() - 1) words_to_all(team, warp, block.block(), memory, epochs, errors);
}

// Sums that depend on the order.
TASUKI_DEVICE double summand(Word epoch, int rank, int i) {
  const Word chance = mixed(epoch, static_cast<Word>(rank), static_cast<Word>(i), 3);
  return static_cast<double>(static_cast<long long>(chance)) * (chance % 3 == 0 ? 1e-19 : 1e-3);
}
TASUKI_DEVICE double sum_of(Word epoch, int ranks, int i) {
  double sum = summand(epoch, 0, i);
  for (int rank = 1; rank < ranks; ++rank) sum = sum + summand(epoch, rank, i);
  return sum;
}
struct Farther {  // of two numbers from 100; the first if both are as far
  TASUKI_DEVICE int operator()(int a, int b) const { return (b - 100) * (b - 100) > (a - 100) * (a - 100) ? b : a; }
};

template <class Group>
TASUKI_DEVICE void sums(const device::Team& team, const Group& group, double* memory, Word epochs, Word* errors) {
  constexpr int kMost = 11;
  for (Word epoch = 1; epoch <= epochs; ++epoch) {
    double sum = 0;
    if (!device::allreduce(team, group, summand(epoch, team.rank, 0), device::Sum(), sum)) return;
    count(errors, sum == sum_of(epoch, team.ranks, 0) ? 0 : 1);
    const auto chance = [&](int rank) { return static_cast<int>(mixed(epoch, static_cast<Word>(rank)) % 201); };
    int farthest = 0;
    if (!device::allreduce(team, group, chance(team.rank), Farther(), farthest)) return;
    int greatest = 0;
    if (!device::allreduce(team, group, chance(team.rank), device::Greatest(), greatest)) return;
    float least = 0;
    if (!device::allreduce(team, group, static_cast<float>(chance(team.rank)), device::Least(), least)) return;
    int expected[3] = {chance(0), chance(0), chance(0)};
    for (int rank = 1; rank < team.ranks; ++rank) {
      expected[0] = Farther()(expected[0], chance(rank));
      expected[1] = device::Greatest()(expected[1], chance(rank));
      expected[2] = device::Least()(expected[2], chance(rank));
    }
    count(errors, farthest == expected[0] && greatest == expected[1] && static_cast<int>(least) == expected[2] ? 0 : 1);
    const int values = static_cast<int>(epoch % (kMost + 1));
    double* const result = epoch % 2 == 0 ? memory : memory + kMost;
    for (int i = group.thread(); i < values; i += group.threads()) memory[i] = summand(epoch, team.rank, i + 1);
    if (!device::allreduce(team, group, memory, result, values, device::Sum())) return;
    for (int i = group.thread(); i < values; i += group.threads())
      count(errors, result[i] == sum_of(epoch, team.ranks, i + 1) ? 0 : 1);
    group.sync();
  }
  if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
}

TASUKI_KERNEL void all_sums(TASUKI_PARAMETER device::Team team, double* memory, Word epochs, Word* errors) {
  sums(team, device::this_block(), memory, epochs, errors);
  device::this_block().sync();
  if (device::this_block().thread() == 0) sums(team, device::this_thread(), memory, epochs, errors);
}

}  // namespace

RANK_TEST("kernels on threads pass packets around, by several blocks and warps") {
  prepare(ctx);
  constexpr int kBlocks = 3;
  tasuki::KernelTeamOptions options;
  options.packets = 2 * kBlocks;
  options.packet = kPacket;
  for (const auto& width : widths(kBlocks)) {
    const Buffer<Byte> memory(2 * kBlocks * 2 * (kPacket + 16));
    const bool warps = width.threads > 32;
    const Buffer<Word> errors(2);
    const tasuki::KernelTeam blocks(ctx, options);
    tasuki::launch_resident(ctx, width, packets_by_blocks, blocks.device(), memory.get(), 30, errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == kBlocks);
    if (!warps) continue;
    const tasuki::KernelTeam by_warp(ctx, options);
    tasuki::launch_resident(ctx, width, packets_by_warps, by_warp.device(), memory.get(), 30, errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == 3 * kBlocks);
  }
}

RANK_TEST("kernels on threads give words to all, in several exchanges at once and several launches") {
  prepare(ctx);
  tasuki::KernelTeamOptions options;
  options.exchanges = 2;
  options.exchange_words = kWords;
  const tasuki::KernelTeam team(ctx, options);
  const Buffer<Word> memory(2 * 2 * kWords * device::kMostRanks);
  const Buffer<Word> errors(2);
  Word ended = 0;
  for (const auto& width : widths(2))
    for (const Word epochs : {Word{33}, Word{1}}) {
      tasuki::launch_resident(ctx, width, all_to_alls, team.device(), memory.get(), epochs, errors.get()).wait();
      ended += 4;
      CHECK(errors[0] == 0);
      CHECK(errors[1] == ended);
    }
}

RANK_TEST("sums of kernels on threads are those of a loop over the ranks, bit by bit") {
  prepare(ctx);
  const tasuki::KernelTeam team(ctx);
  const Buffer<double> memory(22);
  const Buffer<Word> errors(2);
  Word ended = 0;
  for (const auto& width : widths()) {
    tasuki::launch_resident(ctx, width, all_sums, team.device(), memory.get(), 40, errors.get()).wait();
    ended += 2;
    CHECK(errors[0] == 0);
    CHECK(errors[1] == ended);
  }
}

namespace {

enum class Misuse { overrun, absent, packet_size, packet_slot, words, exchange_slot, exchange_absent };

TASUKI_KERNEL void misusing(TASUKI_PARAMETER device::Team team, Misuse misuse, Byte* memory, Word* yes) {
  const auto group = device::this_block();
  const int right = (team.rank + 1) % team.ranks;
  const int left = (team.rank + team.ranks - 1) % team.ranks;
  auto* const words = reinterpret_cast<Word*>(memory);
  bool good = true;
  Word sum = 0;
  switch (misuse) {
    case Misuse::overrun:
      good = device::put_packet(team, group, right, 1, 1, memory, 100) &&
             device::put_packet(team, group, right, 1, 2, memory, 100) && device::barrier(team, group) &&
             device::wait_packet(team, group, left, 1, 1, memory, 100);
      break;
    case Misuse::absent:
      good = device::put_packet(team, group, right, 0, 4, memory, 16) && device::barrier(team, group) &&
             device::wait_packet(team, group, left, 0, 4, memory, 17);
      break;
    case Misuse::packet_size:
      good = device::put_packet(team, group, right, 0, 1, memory, 129);
      break;
    case Misuse::packet_slot:
      good = device::put_packet(team, group, right, 2, 1, memory, 1);
      break;
    case Misuse::words:
      good = device::all_to_all(team, group, words, words, 33);
      break;
    case Misuse::exchange_slot:
      good = device::allreduce(team, group, sum, device::Sum(), sum, 1);
      break;
    case Misuse::exchange_absent:
      if (team.rank == 0) good = device::allreduce(team, group, sum, device::Sum(), sum);
      break;
  }
  if (good) return;
  count(yes, device::put_packet(team, group, right, 0, 9, memory, 1) ? 1 : 0);
  count(yes, device::wait_packet(team, group, left, 0, 9, memory, 1) ? 1 : 0);
  count(yes, device::all_to_all(team, group, words, words, 1) ? 1 : 0);
  count(yes, device::allreduce(team, group, sum, device::Sum(), sum) ? 1 : 0);
}

Misuse next_misuse{};  // what all ranks do next

}  // namespace

TEST_CASE("kernels on threads that misuse packets and exchanges say how") {
  const auto run = [](Misuse misuse) {
    next_misuse = misuse;
    on_ranks([](const tasuki::Context& shared) {
      tasuki::Context ctx = shared;
      prepare(ctx);
      tasuki::KernelTeamOptions options;
      options.packets = 2;
      options.packet = 128;
      const tasuki::KernelTeam team(ctx, options);
      const Buffer<Byte> memory(33 * device::kMostRanks * sizeof(Word));
      const Buffer<Word> yes(1);
      ctx.barrier();
      ctx.set_deadline(0.7);
      if (next_misuse == Misuse::exchange_absent && ctx.size() == 1) return;
      auto running =
          tasuki::launch_resident(ctx, widths()[1], misusing, team.device(), next_misuse, memory.get(), yes.get());
      const std::string error = error_of([&] { running.wait(); });
      INFO(error);
      CHECK(yes[0] == 0);
      const std::string left = "rank " + std::to_string((ctx.rank() + ctx.size() - 1) % ctx.size());
      const std::string right = "rank " + std::to_string((ctx.rank() + 1) % ctx.size());
      std::string expected;
      switch (next_misuse) {
        case Misuse::overrun:
          expected = "wait_packet: packet 1 of " + left + " has number 2 before number 1 was taken";
          break;
        case Misuse::absent:
          expected =
              "wait_packet: packet 0 of " + left + " did not come: the number of a line of it is 0, 4 was waited for";
          break;
        case Misuse::packet_size:
          expected = "put_packet: packet 0 to " + right + ": 129 bytes; raise 'packet' of the options, which takes 128";
          break;
        case Misuse::packet_slot:
          expected = ": argument 'slot' is 2, but there are 2 packets; raise 'packets' of the options";
          break;
        case Misuse::words:
          expected =
              "all_to_all by exchange 0: 33 words for each rank; raise 'exchange_words' of the options, which is 32";
          break;
        case Misuse::exchange_slot:
          expected = "allreduce: argument 'which' is 1, but there are 1 exchanges; raise 'exchanges' of the options";
          break;
        case Misuse::exchange_absent:
          if (ctx.rank() == 0)
            expected = "allreduce by exchange 0: the words of rank 1 did not come: their number is 0, this is time 1";
          break;
      }
      if (expected.empty()) {
        CHECK(error == "no error");
      } else {
        CHECK(error.find(expected) != std::string::npos);
      }
    });
  };
  for (int misuse = 0; misuse <= static_cast<int>(Misuse::exchange_absent); ++misuse) run(static_cast<Misuse>(misuse));
}
