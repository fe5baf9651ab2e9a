// Blocks of collectives from datatypes, counts and displacements: see layout.hpp.
#include <fmt/format.h>

#include <array>

#include "layout/checked.hpp"
#include "layout/sequence.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr const char* kOperation = "blocks_of";

void check_equal(std::size_t counts, std::size_t displacements) {
  if (counts != displacements)
    throw Error(fmt::format("{}: {} counts but {} displacements; give one displacement to each block", kOperation,
                            counts, displacements));
}

}  // namespace

std::vector<Layout> blocks_of(const Layout& block, int count) {
  check_count(count, kOperation, "count");
  std::vector<Layout> blocks;
  for (int i = 0; i < count; ++i)
    blocks.push_back(moved(block, narrow(Wide{i} * block.extent(), kOperation, "count", count)));
  return blocks;
}

std::vector<Layout> blocks_of(const Layout& element, std::span<const std::int64_t> counts,
                              std::span<const std::int64_t> displacements) {
  check_equal(counts.size(), displacements.size());
  std::vector<Layout> blocks;
  for (std::size_t i = 0; i < counts.size(); ++i)
    blocks.push_back(
        moved(Layout::contiguous(counts[i], element),
              narrow(Wide{displacements[i]} * element.extent(), kOperation, "displacements", displacements[i])));
  return blocks;
}

std::vector<Layout> blocks_of(std::span<const Layout> elements, std::span<const std::int64_t> counts,
                              std::span<const std::int64_t> displacements) {
  check_equal(counts.size(), displacements.size());
  if (elements.size() != counts.size())
    throw Error(fmt::format("{}: {} elements but {} counts; give one element to each block", kOperation,
                            elements.size(), counts.size()));
  std::vector<Layout> blocks;
  for (std::size_t i = 0; i < counts.size(); ++i)
    blocks.push_back(moved(Layout::contiguous(counts[i], elements[i]), displacements[i]));
  return blocks;
}

}  // namespace tasuki
