// Tiles of many copies: which copy each of them belongs to.
#include <cstdint>
#include <random>
#include <vector>

#include "kernel_test.hpp"

TEST_CASE("a warp finds the copy of each tile, of any number of copies") {
  using tasuki::device::lowered::copy_of;
  std::mt19937 random(20);
  for (const std::int32_t count : {1, 2, 31, 32, 33, 63, 64, 65, 1000, 1023, 1024, 1025, 1957, 33000}) {
    std::vector<tasuki::device::lowered::GpuCopy> copies(static_cast<std::size_t>(count));
    std::vector<std::int32_t> owner;  // of each tile
    for (std::int32_t n = 0; n < count; ++n) {
      copies[static_cast<std::size_t>(n)].first_tile = static_cast<std::uint32_t>(owner.size());
      owner.insert(owner.end(), 1 + random() % (count < 2000 ? 5 : 2), n);
    }
    std::vector<std::int32_t> found;
    for (std::uint32_t tile = 0; tile < owner.size(); ++tile) found.push_back(copy_of(copies.data(), count, tile));
    CAPTURE(count);
    CHECK(found == owner);
  }
}
