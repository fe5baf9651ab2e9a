// Shared memory: allocated by one rank alone, mapped by those that are told of it, used again only when nobody can
// still store into it, and errors that say how much there is.
#include "memory/shared_memory.hpp"

#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "memory/spare_regions.hpp"
#include "session/reach.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Shared = std::shared_ptr<std::byte>;

template <class T>
std::vector<T> gather(const Context& ctx, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(ctx.size()));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, ctx.comm());
  return all;
}

bool filled(const std::byte* p, std::int64_t bytes, int value) {
  return std::all_of(p, p + bytes, [value](std::byte b) { return b == std::byte(value); });
}

bool aligned(const void* p, std::uintptr_t to) {
  return reinterpret_cast<std::uintptr_t>(p) % to == 0;
}

}  // namespace

TEST_CASE("blocks of any size are zero, aligned, and readable by the other ranks of the island") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  std::vector<Shared> kept;
  int value = 0;
  for (const std::int64_t base : {0, 1, 64, 5000, 65536, 300000, 3000000}) {
    ++value;
    const auto bytes_of = [base](int rank) { return base == 0 ? 0 : base + 100 * rank; };
    const std::int64_t bytes = bytes_of(ctx.rank());
    const Shared block = kept.emplace_back(memory.allocate(bytes));
    REQUIRE(block != nullptr);
    CHECK(aligned(block.get(), 64));
    if (bytes >= 65536) CHECK(aligned(block.get(), 4096));
    CHECK(filled(block.get(), bytes, 0));
    std::memset(block.get(), ctx.rank() + value, static_cast<std::size_t>(bytes));
    const SharedAddress own = memory.find(block.get(), bytes);
    CHECK(own.valid());
    const auto addresses = gather(ctx, own);
    for (int rank = 0; rank < ctx.size(); ++rank) {
      const Shared seen = memory.map(rank, addresses[static_cast<std::size_t>(rank)]);
      CHECK((seen != nullptr) == memory.why_not(rank).empty());
      if (seen) CHECK(filled(seen.get(), bytes_of(rank), rank + value));
    }
    CHECK(memory.map(ctx.rank(), own).get() == block.get());
    ctx.barrier();
  }
}

TEST_CASE("a region stays mapped after its last use, and shows what its owner has there later") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  constexpr std::int64_t kBytes = 600001;
  const int next = (ctx.rank() + 1) % ctx.size();
  const std::byte* before = nullptr;
  for (int round = 1; round <= 4; ++round) {
    // With so large a block the other one's memory goes back to the system before the last round.
    const Shared large = round == 3 ? memory.allocate(SpareRegions::kMost, false) : nullptr;
    const Shared block = memory.allocate(kBytes);
    CHECK(filled(block.get(), kBytes, 0));
    std::memset(block.get(), 10 * round + ctx.rank(), static_cast<std::size_t>(kBytes));
    const auto addresses = gather(ctx, memory.find(block.get(), kBytes));
    Shared seen = memory.map(next, addresses[static_cast<std::size_t>(next)]);
    if (seen && next != ctx.rank()) {
      CHECK(filled(seen.get(), kBytes, 10 * round + next));
      if (round > 1) CHECK(seen.get() == before);
      before = seen.get();
      seen.reset();
      unsigned char resident = 0;
      CHECK(mincore(const_cast<std::byte*>(before), 1, &resident) == 0);  // else no mapping is there
    }
    MPI_Barrier(ctx.comm());  // nobody uses the block any more, so its owner can use the region again
  }
}

TEST_CASE("one rank allocates, stores and gives back alone while the others do nothing") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());
  bool done = false;
  if (ctx.rank() == 0) {
    SharedMemory& memory = runtime_of(ctx).memory();
    for (int i = 0; i < 200; ++i) {
      const std::int64_t bytes = i % 10 == 9 ? 700001 : 977 * i;
      const Shared block = memory.allocate(bytes);
      CHECK(filled(block.get(), bytes, 0));
      std::memset(block.get(), i + 1, static_cast<std::size_t>(bytes));
    }
    CHECK(memory.regions() <= 2);
    CHECK(shared_alloc(ctx, 12345) != nullptr);
    done = true;
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  CHECK(done == (ctx.rank() == 0));
  MPI_Barrier(ctx.comm());
}

TEST_CASE("find knows what lies inside a block, and nothing else") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  const std::int64_t bytes = 1 << 20;
  const Shared block = memory.allocate(bytes);
  const SharedAddress begin = memory.find(block.get(), bytes);
  const SharedAddress middle = memory.find(block.get() + 100, 8);
  CHECK(middle.region == begin.region);
  CHECK(middle.offset == begin.offset + 100);
  CHECK(memory.map(ctx.rank(), middle).get() == block.get() + 100);
  CHECK_FALSE(memory.find(block.get(), bytes + 1).valid());
  CHECK_FALSE(memory.find(block.get(), -1).valid());
  CHECK_FALSE(memory.find(&begin, sizeof begin).valid());
  CHECK_FALSE(memory.find(nullptr, 1).valid());
  CHECK(memory.map(0, SharedAddress{}) == nullptr);
  CHECK(error_of([&] { memory.map(ctx.size(), begin); }).find("there is no rank") != std::string::npos);
  SharedAddress outside = begin;
  outside.offset = bytes * 2;
  CHECK(error_of([&] { memory.map(ctx.rank(), outside); }).find("lies outside") != std::string::npos);
  SharedAddress older = begin;
  ++older.generation;
  CHECK(error_of([&] { memory.map(ctx.rank(), older); }).find("has given that block back already") !=
        std::string::npos);
  ctx.barrier();
}

TEST_CASE("a late store does not land in memory that has a new owner") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  for (const std::int64_t bytes : {64, 4096, 70000, 900000}) {
    Shared first = memory.allocate(bytes);
    std::byte* const place = first.get();
    const auto addresses = gather(ctx, memory.find(place, bytes));
    const int next = (ctx.rank() + 1) % ctx.size();
    Shared held =
        memory.map(next, addresses[static_cast<std::size_t>(next)]);  // the next rank's block, which it gives back now
    const auto who = gather(ctx, held ? 1 : 0);
    const bool mapped = who[static_cast<std::size_t>((ctx.rank() + ctx.size() - 1) % ctx.size())] != 0;
    CHECK(memory.mappers(place) == (mapped ? 1 : 0));
    first.reset();
    const Shared second = memory.allocate(bytes);
    const Shared third = memory.allocate(bytes);
    std::memset(second.get(), 1, static_cast<std::size_t>(bytes));
    std::memset(third.get(), 2, static_cast<std::size_t>(bytes));
    MPI_Barrier(ctx.comm());
    if (held) std::memset(held.get(), 255, static_cast<std::size_t>(bytes));  // late
    MPI_Barrier(ctx.comm());
    CHECK(filled(second.get(), bytes, 1));
    CHECK(filled(third.get(), bytes, 2));
    if (mapped) CHECK(second.get() != place);
    held.reset();
    MPI_Barrier(ctx.comm());
    const Shared fourth = memory.allocate(bytes);
    CHECK(filled(fourth.get(), bytes, 0));
    if (mapped && bytes < 256 << 10) CHECK(fourth.get() == place);
    MPI_Barrier(ctx.comm());
    if (memory.why_not(next).empty())
      CHECK(error_of([&] {
              memory.map(next, addresses[static_cast<std::size_t>(next)]);
            }).find("has given that block back already") != std::string::npos);
    MPI_Barrier(ctx.comm());
  }
}

TEST_CASE("a block can be retired when nobody has it mapped, and not before") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  Shared block = memory.allocate(64);
  const SharedAddress address = memory.find(block.get(), 64);
  Shared copy = block;
  CHECK_FALSE(memory.retire(block));
  copy = memory.map(ctx.rank(), address);
  CHECK(memory.mappers(block.get()) == 1);
  CHECK_FALSE(memory.retire(block));
  CHECK(block != nullptr);
  copy.reset();
  CHECK(memory.mappers(block.get()) == 0);
  CHECK(memory.retire(block));
  CHECK(block == nullptr);
  CHECK(error_of([&] { memory.map(ctx.rank(), address); }).find("has given that block back") != std::string::npos);
}

TEST_CASE("large blocks go back to the system inside a later allocation, in whatever order they are let go") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  const int before = memory.regions();
  std::vector<Shared> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(memory.allocate(400000 + 5000 * i));
  CHECK(memory.regions() == before + 6);
  std::mt19937 random(static_cast<unsigned>(ctx.rank()));
  std::shuffle(blocks.begin(), blocks.end(), random);
  blocks.resize(3);
  const Shared small = memory.allocate(64);
  CHECK(memory.regions() == before + 3);
  blocks.clear();
  const Shared last = memory.allocate(64);
  CHECK(memory.regions() == before);
  for (int i = 0; i < 20; ++i) {
    const Shared block = memory.allocate((1 << 20) + i);
    CHECK(filled(block.get(), (1 << 20) + i, 0));
    std::memset(block.get(), 1, 1 << 20);
  }
  CHECK(memory.regions() <= before + 1);
}

TEST_CASE("many blocks, let go at random, never overlap and always begin as zeros") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  struct Held {
    Shared block;
    std::int64_t bytes;
    int value;
  };
  std::vector<Held> held;
  std::mt19937 random(static_cast<unsigned>(ctx.rank() + 1));
  for (int step = 0; step < 400; ++step) {
    const auto bytes = static_cast<std::int64_t>(random() % (step % 40 == 0 ? 500000 : 9000));
    Held fresh{memory.allocate(bytes), bytes, step % 255 + 1};
    CHECK(filled(fresh.block.get(), bytes, 0));
    std::memset(fresh.block.get(), fresh.value, static_cast<std::size_t>(bytes));
    held.push_back(std::move(fresh));
    while (held.size() > 20 || (!held.empty() && random() % 3 == 0)) {
      std::swap(held[random() % held.size()], held.back());
      const Held& h = held.back();
      CHECK(filled(h.block.get(), h.bytes, h.value));
      held.pop_back();
    }
  }
}

TEST_CASE("tens of thousands of small blocks at once") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  std::vector<Shared> blocks;
  for (int i = 0; i < 20000; ++i) {
    blocks.push_back(memory.allocate(i % 65));
    std::memset(blocks.back().get(), i % 256, static_cast<std::size_t>(i % 65));
  }
  for (int i = 0; i < 20000; ++i) REQUIRE(filled(blocks[static_cast<std::size_t>(i)].get(), i % 65, i % 256));
  blocks.clear();
  const Shared one = memory.allocate(1);
  CHECK(memory.regions() == 1);
}

TEST_CASE("an impossible size is an error of the rank that asks, with what is there, and allocation goes on") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.rank() == ctx.size() - 1) {
    SharedMemory& memory = runtime_of(ctx).memory();
    const std::string who = "SharedMemory: rank " + std::to_string(ctx.rank()) + " could not get ";
    CHECK(error_of([&] { (void)memory.allocate(-5); }) == who + "-5 bytes: a size cannot be negative or above 1 PiB");
    const std::string error = error_of([&] { (void)memory.allocate(std::int64_t{1} << 45); });
    CHECK(error.find(who + "32.0 TiB: ") == 0);
    CHECK(error.find(" left ") != std::string::npos);
    const Shared block = memory.allocate(100);
    CHECK(filled(block.get(), 100, 0));
  }
  ctx.barrier();
}

TEST_CASE("files are handed over where /proc does not show them") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory memory(ctx.rank(), ctx.size());
  SharedIdentity told = memory.identity();
  // As seen from among other process numbers. A rank's own says where it really is.
  const bool hidden = ctx.rank() % 2 == 0;
  if (hidden) told.pid = 0;
  const auto identities = gather(ctx, told);
  std::vector<int> neighbours;
  std::vector<SharedIdentity> theirs;
  for (int rank = 0; rank < ctx.size(); ++rank) {
    if (!runtime_of(ctx).topology().same_host(rank, ctx.rank())) continue;
    neighbours.push_back(rank);
    theirs.push_back(identities[static_cast<std::size_t>(rank)]);
  }
  const auto groups = open_neighbours(runtime_of(ctx).communicator(), memory, neighbours, theirs);
  for (const int group : groups) CHECK(group == neighbours.front());
  Shared block = memory.allocate(3001);
  std::memset(block.get(), ctx.rank() + 5, 3001);
  const auto addresses = gather(ctx, memory.find(block.get(), 3001));
  for (const int rank : neighbours) {
    CHECK(memory.why_not(rank).empty());
    const Shared seen = memory.map(rank, addresses[static_cast<std::size_t>(rank)]);
    REQUIRE(seen != nullptr);
    CHECK(filled(seen.get(), 3001, rank + 5));
  }
  ctx.barrier();
}

TEST_CASE("who cannot be reached at all is in a group of its own, and says why") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory memory(ctx.rank(), ctx.size());
  SharedIdentity told = memory.identity();
  const int lost = ctx.size() - 1;
  if (ctx.rank() == lost) told.token ^= 1;  // nobody takes its file for what was told
  auto identities = gather(ctx, told);
  std::vector<int> neighbours;
  std::vector<SharedIdentity> theirs;
  for (int rank = 0; rank < ctx.size(); ++rank) {
    if (!runtime_of(ctx).topology().same_host(rank, ctx.rank())) continue;
    neighbours.push_back(rank);
    theirs.push_back(identities[static_cast<std::size_t>(rank)]);
  }
  const auto groups = open_neighbours(runtime_of(ctx).communicator(), memory, neighbours, theirs);
  for (std::size_t i = 0; i < groups.size(); ++i) CHECK(groups[i] == (neighbours[i] == lost ? lost : neighbours[0]));
  for (const int rank : neighbours) {
    const bool apart = (rank == lost) != (ctx.rank() == lost);
    CHECK(memory.why_not(rank).empty() == !apart);
    if (apart) CHECK(memory.map(rank, SharedAddress{1 << 24, 64, 0, 0, 0}) == nullptr);
  }
  ctx.barrier();
}

TEST_CASE("shared_alloc keeps its context, and its copies keep the memory") {
  std::shared_ptr<std::byte> memory;
  {
    Context ctx(MPI_COMM_WORLD);
    memory = shared_alloc(ctx, 100000);
    CHECK(runtime_of(ctx).memory().find(memory.get(), 100000).valid());
    if (ctx.rank() == 0)
      CHECK(error_of([&] { shared_alloc(ctx, -1); }) ==
            "shared_alloc: rank 0: argument 'bytes' is -1; it must be 0 or more");
    CHECK(shared_alloc(ctx, 0) != nullptr);
  }
  const auto copy = memory;
  memory.reset();
  CHECK(filled(copy.get(), 100000, 0));
}
