// The free space of a range: first fit, alignment of addresses, merging.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "memory/gaps.hpp"

using tasuki::Gaps;

TEST_CASE("gaps are taken from the front and merge again in any order") {
  alignas(4096) static std::byte memory[8192];
  Gaps gaps(memory, sizeof memory);
  CHECK(gaps.take(64, 64) == 0);
  CHECK(gaps.take(128, 64) == 64);
  CHECK(gaps.take(64, 4096) == 4096);
  CHECK(gaps.take(64, 64) == 192);  // before the aligned one
  CHECK_FALSE(gaps.fits(8192, 64));
  gaps.give_back(64, 128);
  gaps.give_back(192, 64);
  gaps.give_back(0, 64);
  gaps.give_back(4096, 64);
  CHECK(gaps.fits(8192, 64));
}

TEST_CASE("alignment is that of the address, not of the offset") {
  alignas(4096) static std::byte memory[8192];
  Gaps gaps(memory + 8, sizeof memory - 8);
  CHECK(gaps.take(64, 64) == 56);
  CHECK_FALSE(gaps.fits(4097, 4096));
  CHECK(gaps.take(4096, 4096) == 4096 - 8);
}

TEST_CASE("blocks in use never overlap, and all of the space comes back") {
  std::mt19937 random(3);
  constexpr std::int64_t kBytes = 1 << 16;
  alignas(4096) static std::byte memory[kBytes];
  std::vector<int> owner(kBytes / 64, 0);
  Gaps gaps(memory, kBytes);
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;
  for (int step = 0; step < 3000; ++step) {
    const std::int64_t bytes = 64 * (1 + static_cast<std::int64_t>(random() % 40));
    if (random() % 2 == 0 && gaps.fits(bytes, 64)) {
      const std::int64_t offset = gaps.take(bytes, 64);
      for (std::int64_t i = offset / 64; i < (offset + bytes) / 64; ++i) CHECK(owner[i]++ == 0);
      blocks.emplace_back(offset, bytes);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto [offset, size] = blocks.back();
      blocks.pop_back();
      for (std::int64_t i = offset / 64; i < (offset + size) / 64; ++i) --owner[i];
      gaps.give_back(offset, size);
    }
  }
  for (const auto& [offset, size] : blocks) gaps.give_back(offset, size);
  CHECK(gaps.fits(kBytes, 64));
}
