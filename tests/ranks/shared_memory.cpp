// Shared memory: what one rank writes the others of its host read; local freeing, reuse only when nobody can still
// store, windows collected, and errors on every rank.
#include "memory/shared_memory.hpp"

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Shared = std::shared_ptr<std::byte>;

std::vector<SharedAddress> gather(const Context& ctx, SharedAddress own) {
  std::vector<SharedAddress> all(static_cast<std::size_t>(ctx.size()));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, ctx.comm());
  return all;
}

bool all_zero(const std::byte* p, std::int64_t bytes) {
  return std::all_of(p, p + bytes, [](std::byte b) { return b == std::byte{0}; });
}

bool aligned(const void* p, std::uintptr_t to) {
  return reinterpret_cast<std::uintptr_t>(p) % to == 0;
}

}  // namespace

TEST_CASE("blocks of any size are zero, aligned, and readable by the other ranks of the host") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  std::vector<Shared> kept;
  for (const std::int64_t base : {0, 1, 64, 5000, 65536, 300000, 3000000}) {
    const std::int64_t bytes = base == 0 ? 0 : base + 100 * ctx.rank();  // differs per rank
    const Shared block = kept.emplace_back(memory.allocate(bytes));
    REQUIRE(block != nullptr);
    CHECK(aligned(block.get(), 64));
    if (bytes >= 65536) CHECK(aligned(block.get(), 4096));
    CHECK(all_zero(block.get(), bytes));
    std::memset(block.get(), ctx.rank() + 1, static_cast<std::size_t>(bytes));
    const SharedAddress own = memory.find(block.get(), bytes);
    CHECK(own.valid());
    const auto addresses = gather(ctx, own);
    ctx.barrier();
    for (int rank = 0; rank < ctx.size(); ++rank) {
      const std::byte* seen = memory.map(rank, addresses[rank]);
      if (!runtime_of(ctx).topology().same_host(rank, ctx.rank())) {
        CHECK(seen == nullptr);
        continue;
      }
      const std::int64_t theirs = base == 0 ? 0 : base + 100 * rank;
      CHECK(std::all_of(seen, seen + theirs, [&](std::byte b) { return b == std::byte(rank + 1); }));
    }
    CHECK(memory.map(ctx.rank(), own) == block.get());
    ctx.barrier();
  }
}

TEST_CASE("find knows what lies inside a window, and nothing else") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  const std::int64_t bytes = 1 << 20;
  const Shared block = memory.allocate(bytes);
  const SharedAddress begin = memory.find(block.get(), bytes);
  const SharedAddress middle = memory.find(block.get() + 100, 8);
  CHECK(middle.window == begin.window);
  CHECK(middle.offset == begin.offset + 100);
  CHECK(memory.map(ctx.rank(), middle) == block.get() + 100);
  CHECK_FALSE(memory.find(block.get(), bytes + (1 << 20)).valid());
  CHECK_FALSE(memory.find(block.get(), -1).valid());
  CHECK_FALSE(memory.find(&begin, sizeof begin).valid());
  CHECK_FALSE(memory.find(nullptr, 1).valid());
  CHECK(memory.map(0, SharedAddress{}) == nullptr);
  CHECK(error_of([&] { memory.map(ctx.size(), begin); }).find("there is no rank") != std::string::npos);
  CHECK(error_of([&] {
          memory.map(ctx.rank(), {begin.window, bytes * 2});
        }).find("lies outside rank") != std::string::npos);
  CHECK(error_of([&] {
          memory.map(ctx.rank(), {begin.window + 1, 0});
        }).find("there is no window") != std::string::npos);
}

TEST_CASE("memory gets a new owner only when all ranks have given the old block back") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  Shared first = memory.allocate(4096);
  std::byte* const place = first.get();
  std::memset(place, 255, 4096);
  const bool late = ctx.size() > 1 && ctx.rank() == ctx.size() - 1;
  if (!late) first.reset();
  const Shared second = memory.allocate(4096);
  const Shared third = memory.allocate(4096);
  if (ctx.size() > 1) {
    CHECK(second.get() != place);
    CHECK(third.get() != place);  // the last rank may still write into its peers' first blocks
  }
  first.reset();
  const Shared fourth = memory.allocate(4096);
  if (ctx.size() > 1) CHECK(fourth.get() == place);
  CHECK(all_zero(fourth.get(), 4096));
}

TEST_CASE("windows of large blocks are freed inside a later allocation, in whatever order the ranks let go") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  const int before = memory.windows();
  std::vector<Shared> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(memory.allocate(400000));
  const SharedAddress address = memory.find(blocks[2].get(), 8);
  CHECK(memory.windows() == before + 6);
  std::mt19937 random(static_cast<unsigned>(ctx.rank()));
  std::shuffle(blocks.begin(), blocks.end(), random);
  blocks.resize(3);  // different ones on each rank
  blocks.push_back(memory.allocate(64));
  CHECK(memory.windows() >= before + 3);
  blocks.clear();
  CHECK(memory.windows() >= before + 3);
  const Shared last = memory.allocate(64);
  CHECK(memory.windows() == before);
  CHECK(error_of([&] { memory.map(ctx.rank(), address); }).find("there is no window") != std::string::npos);
}

TEST_CASE("a large block can be replaced again and again without piling up") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  const int before = memory.windows();
  for (int i = 0; i < 20; ++i) {
    const Shared block = memory.allocate(1 << 20);
    CHECK(all_zero(block.get(), 1 << 20));
    std::memset(block.get(), 1, 1 << 20);
  }
  CHECK(memory.windows() <= before + 1);
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
    CHECK(all_zero(fresh.block.get(), bytes));
    std::memset(fresh.block.get(), fresh.value, static_cast<std::size_t>(bytes));
    held.push_back(std::move(fresh));
    while (held.size() > 20 || (!held.empty() && random() % 3 == 0)) {
      std::swap(held[random() % held.size()], held.back());
      const Held& h = held.back();
      CHECK(std::all_of(h.block.get(), h.block.get() + h.bytes, [&](std::byte b) { return b == std::byte(h.value); }));
      held.pop_back();
    }
  }
}

TEST_CASE("an impossible size on one rank is an error on all, and allocation goes on") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  const int last = ctx.size() - 1;
  const bool odd = ctx.rank() == last;
  CHECK(error_of([&] { (void)memory.allocate(odd ? -5 : 64); }) ==
        "SharedMemory: rank " + std::to_string(last) +
            " could not get -5 bytes: a size cannot be negative or above 1 PiB");
  const std::string error = error_of([&] { (void)memory.allocate(odd ? std::int64_t{1} << 45 : 64); });
  CHECK(error.find("SharedMemory: rank ") == 0);
  CHECK(error.find(" could not get ") != std::string::npos);
  CHECK(error.find("the ranks of its host asked for ") != std::string::npos);
  const Shared block = memory.allocate(100);
  CHECK(all_zero(block.get(), 100));
}

TEST_CASE("shared_alloc keeps its context, and its copies keep the memory") {
  std::shared_ptr<std::byte> memory;
  {
    Context ctx(MPI_COMM_WORLD);
    memory = shared_alloc(ctx, 100000);
    CHECK(runtime_of(ctx).memory().find(memory.get(), 100000).valid());
    CHECK(error_of([&] { shared_alloc(ctx, ctx.is_root() ? -1 : 1); }) ==
          "shared_alloc: rank 0: argument 'bytes' is -1; it must be 0 or more");
    CHECK(shared_alloc(ctx, 0) != nullptr);
  }
  const auto copy = memory;
  memory.reset();
  CHECK(all_zero(copy.get(), 100000));
}
