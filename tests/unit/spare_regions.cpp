// Regions that are kept for the next block: which one is taken, and which ones go back to the system. Mappings of other
// ranks' regions that are kept: which ones go.
#include "memory/spare_regions.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "memory/kept_mappings.hpp"
#include "memory/memory_left.hpp"
#include "memory/shared_memory.hpp"

using namespace tasuki;

TEST_CASE("the nearest region in size is taken, and the oldest go back when there are too many") {
  SpareRegions spares;
  std::vector<std::int64_t> given_back;
  const auto give_back = [&](SpareRegion& region) { given_back.push_back(region.begin); };
  CHECK(!spares.take(1, 1 << 30));
  spares.keep({1, 4096, nullptr}, give_back);
  spares.keep({2, 12288, nullptr}, give_back);
  spares.keep({3, 8192, nullptr}, give_back);
  CHECK(!spares.take(4097, 4094));
  CHECK(spares.take(4097, 8192)->begin == 3);
  CHECK(spares.take(4097, 8192)->begin == 2);
  CHECK(!spares.take(4097, 8192));
  CHECK(spares.take(4096, 0)->begin == 1);
  CHECK(given_back.empty());
  const std::int64_t third = SpareRegions::kMost / 3;
  for (int i = 0; i < 5; ++i) spares.keep({i, third, nullptr}, give_back);
  CHECK(given_back == std::vector<std::int64_t>{0, 1});
  spares.keep({7, SpareRegions::kMost + 1, nullptr}, give_back);
  CHECK(given_back == std::vector<std::int64_t>{0, 1, 7});
  CHECK(spares.clear(give_back));
  CHECK(given_back == std::vector<std::int64_t>{0, 1, 7, 2, 3, 4});
  CHECK(!spares.clear(give_back));
  CHECK(!spares.take(1, 1 << 30));
}

TEST_CASE("mappings are kept until there are too many, and the one used longest ago goes first") {
  KeptMappings kept;
  const auto region = [] { return std::make_shared<std::byte>(); };
  CHECK(!kept.clear());
  std::vector<std::shared_ptr<std::byte>> regions;
  for (std::ptrdiff_t i = 0; i < KeptMappings::kMostRegions; ++i) kept.keep(regions.emplace_back(region()), 1);
  kept.keep(regions[0], 1);  // used again
  kept.keep(regions.emplace_back(region()), 1);
  CHECK(regions[0].use_count() == 2);
  CHECK(regions[1].use_count() == 1);
  CHECK(regions[2].use_count() == 2);
  const auto huge = region();
  kept.keep(huge, KeptMappings::kMost + 1);
  CHECK(huge.use_count() == 1);
  CHECK(regions[2].use_count() == 2);
  kept.keep(huge, KeptMappings::kMost);
  CHECK(huge.use_count() == 2);
  for (const auto& one : regions) CHECK(one.use_count() == 1);
  CHECK(kept.clear());
  CHECK(huge.use_count() == 1);
  CHECK(!kept.clear());
}

TEST_CASE("a large block gets the memory of an earlier one, as zeros unless nobody needs them") {
  SharedMemory memory(0, 1);
  constexpr std::int64_t kBytes = (3 << 20) + 17;
  for (int round = 1; round <= 6; ++round) {
    const bool zeros = round % 2 == 1;
    const auto block = memory.allocate(kBytes + 64 * round, zeros);
    const SharedAddress address = memory.find(block.get(), kBytes);
    CHECK(address.valid());
    CHECK(memory.regions() == 2);
    if (zeros || round == 1) {
      bool clean = true;
      for (std::int64_t i = 0; i < kBytes; ++i) clean = clean && block.get()[i] == std::byte{0};
      CHECK(clean);
    } else {
      CHECK((block.get()[kBytes - 1] == static_cast<std::byte>(round - 1)));
    }
    std::memset(block.get(), round, static_cast<std::size_t>(kBytes));
  }
  // Blocks of one size that are held together have memory of their own.
  const auto first = memory.allocate(kBytes);
  const auto second = memory.allocate(kBytes);
  CHECK(first.get() != second.get());
  std::memset(first.get(), 1, static_cast<std::size_t>(kBytes));
  CHECK((second.get()[kBytes / 2] == std::byte{0}));
}

TEST_CASE("scratch gets what room a slab has, whose pages are there, before it gets new memory") {
  SharedMemory memory(0, 1);
  constexpr std::int64_t kBytes = (512 << 10) + 64;  // a ring of 16 epochs and a counter
  {
    const auto scratch = memory.allocate(kBytes, /*zeros=*/false);
    CHECK(memory.regions() == 1);
    std::memset(scratch.get(), 7, kBytes);
    const auto small = memory.allocate(64);
    CHECK(memory.regions() == 1);
    const auto second = memory.allocate(kBytes, /*zeros=*/false);
    CHECK(memory.regions() == 2);
    const auto with_zeros = memory.allocate(kBytes);
    CHECK(memory.regions() == 3);
    std::memset(second.get(), 8, kBytes);
    CHECK((scratch.get()[kBytes - 1] == std::byte{7}));
    CHECK((small.get()[0] == std::byte{0}));
  }
  bool clean = true;
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(memory.allocate(200 << 10));
    for (std::int64_t at = 0; at < (200 << 10); ++at) clean = clean && blocks.back().get()[at] == std::byte{0};
  }
  CHECK(clean);
}

TEST_CASE("what is left is looked at again by who wants much of it") {
  const MemoryLeft now = memory_left();
  const MemoryLeft little = memory_left_for(4096);
  CHECK(little.bytes > now.bytes / 2);
  CHECK(little.text.find(" left ") != std::string::npos);
  CHECK(memory_left_for(now.bytes * 2).bytes < now.bytes * 2);
}

TEST_CASE("large blocks go back to the system when they are freed, not when the next one is allocated") {
  SharedMemory memory(0, 1);
  const auto held = [&] {
    struct stat facts {};
    REQUIRE(fstat(memory.identity().fd, &facts) == 0);
    return static_cast<std::int64_t>(facts.st_blocks) * 512;
  };
  const std::int64_t before = held();
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(memory.allocate((20 << 20) + 4096 * i));
  CHECK(held() >= before + (120 << 20));
  blocks.clear();
  CHECK(held() <= before + SpareRegions::kMost + (17 << 20));
}
