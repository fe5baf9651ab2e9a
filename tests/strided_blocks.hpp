// Blocks that do not lie in one piece: random layouts for tests of collectives, and where each of their elements is,
// found without the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace strided_blocks {

using tasuki::Layout;

struct Strided {
  std::vector<Layout> layouts;   // of each block, from the base
  std::vector<std::int64_t> at;  // of each element, block after block: bytes from the beginning of the memory
  std::int64_t base = 0;         // where the base lies in the memory
  std::int64_t bytes = 0;        // of the memory
  /// All blocks as one.
  Layout whole() const {
    const std::vector<std::int64_t> ones(layouts.size(), 1), zeros(layouts.size(), 0);
    return Layout::structure(ones, zeros, layouts);
  }
};

/// Blocks of `counts` elements of `element` bytes, each in a random pattern, which lie in random order with gaps.
inline Strided random_blocks(std::mt19937& random, const std::vector<std::int64_t>& counts, std::int64_t element) {
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  Strided all;
  all.base = below(5) * element;
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::vector<std::int64_t>> places(counts.size());  // of the elements of each block
  all.layouts.resize(counts.size());
  std::int64_t free = 0;  // in elements
  const Layout one = Layout::bytes(element);
  for (const std::size_t b : order) {
    const std::int64_t n = counts[b];
    free += below(3);
    const std::int64_t begin = free;
    const std::int64_t from_base = begin * element - all.base;
    std::vector<std::int64_t>& place = places[b];
    const std::int64_t stride = 2 + below(3);
    switch (below(4)) {
      case 0:  // in one piece
        all.layouts[b] = Layout::hindexed(std::vector{n}, std::vector{from_base}, one);
        for (std::int64_t i = 0; i < n; ++i) place.push_back(begin + i);
        free += n;
        break;
      case 1: {  // a stride, and runs of one or two elements
        const std::int64_t run = n % 2 == 0 ? 2 : 1;
        const Layout rows = Layout::vector(n / run, run, stride + 1, one);
        all.layouts[b] = Layout::hindexed(std::vector<std::int64_t>{1}, std::vector{from_base}, rows);
        for (std::int64_t i = 0; i < n; ++i) place.push_back(begin + i / run * (stride + 1) + i % run);
        free += (n / run) * (stride + 1);
        break;
      }
      case 2: {  // backwards
        const std::int64_t last = from_base + (n - 1) * stride * element;
        const Layout rows = Layout::hvector(n, 1, -stride * element, one);
        all.layouts[b] = Layout::hindexed(std::vector<std::int64_t>{1}, std::vector{n == 0 ? 0 : last}, rows);
        for (std::int64_t i = 0; i < n; ++i) place.push_back(begin + (n - 1 - i) * stride);
        free += n * stride;
        break;
      }
      default: {  // pieces of uneven length, the last ones first in memory
        std::vector<std::int64_t> lengths, displacements;
        for (std::int64_t left = n; left > 0; left -= lengths.back())
          lengths.push_back(std::min<std::int64_t>(left, std::max<std::int64_t>(1 + below(7), n / 9)));
        std::int64_t at = begin;
        for (std::size_t i = lengths.size(); i-- > 0; at += lengths[i] + 1)
          displacements.insert(displacements.begin(), at);
        for (std::size_t i = 0; i < lengths.size(); ++i)
          for (std::int64_t k = 0; k < lengths[i]; ++k) place.push_back(displacements[i] + k);
        for (std::int64_t& displacement : displacements) displacement = displacement * element - all.base;
        all.layouts[b] = Layout::hindexed(lengths, displacements, one);
        free = at;
        break;
      }
    }
  }
  all.bytes = (free + 2) * element + all.base;
  for (const auto& block : places)
    for (const std::int64_t place : block) all.at.push_back(place * element);
  return all;
}

/// Elements of the blocks that a rank's `in` or `out` has; of a broadcast `out` is the data, and so it is in place.
inline std::vector<std::int64_t> blocks_of_side(const tasuki::CollectiveShape& shape, int ranks, int rank, bool of_in) {
  using Kind = tasuki::CollectiveKind;
  using Counts = std::vector<std::int64_t>;
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const Kind kind = shape.kind;
  const bool root = rank == shape.root;
  const bool rooted = kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
  const bool here = kind == Kind::broadcast || (shape.in_place && (!rooted || root));
  const Counts blocks = shape.counts.empty() ? Counts(n, shape.count) : shape.counts;
  switch (kind) {
    case Kind::barrier:
      return {};
    case Kind::reduce_scatter:
      if (here) return of_in ? Counts() : blocks;
      return of_in ? blocks : Counts{blocks[r]};
    case Kind::allgather:
    case Kind::gather:
      if (of_in) return here ? Counts() : Counts{blocks[r]};
      return root || kind == Kind::allgather ? blocks : Counts();
    case Kind::scatter:
      if (of_in) return root ? blocks : Counts();
      return here ? Counts() : Counts{blocks[r]};
    case Kind::alltoall: {
      Counts mine;
      for (std::size_t other = 0; other < n; ++other)
        mine.push_back(shape.counts.empty() ? shape.count : shape.counts[of_in ? r * n + other : other * n + r]);
      return of_in && here ? Counts() : mine;
    }
    case Kind::reduce:
      if (!of_in) return root ? Counts{shape.count} : Counts();
      [[fallthrough]];
    default:
      return of_in && here ? Counts() : Counts{shape.count};
  }
}

/// Counts of what is only moved as live collectives count it: in the largest numbers that all pieces consist of.
inline void count_in_units(tasuki::CollectiveShape& shape) {
  using Kind = tasuki::CollectiveKind;
  const Kind kind = shape.kind;
  if (kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::reduce_scatter || kind == Kind::scan ||
      kind == Kind::exscan)
    return;
  using tasuki::DType;
  std::int64_t element = 0;
  for (const DType type : {DType::u8, DType::u16, DType::u32, DType::u64, DType::c128}) {
    const std::int64_t bytes = size_of(type);
    bool fits = true;
    for (const auto* layouts : {&shape.in_layouts, &shape.out_layouts})
      for (const Layout& layout : *layouts)
        for (const tasuki::Block& nest : layout.blocks()) fits = fits && nest.bytes % bytes == 0;
    if (!fits) break;
    const std::int64_t before = element == 0 ? size_of(shape.type) : element;
    shape.count = shape.count * before / bytes;
    for (std::int64_t& count : shape.counts) count = count * before / bytes;
    shape.type = type;
    element = bytes;
  }
}

/// Gives the shape the layouts that `laid(rank, of_in)` says.
template <class Laid>
void add_layouts(tasuki::CollectiveShape& shape, int ranks, Laid&& laid) {
  if (shape.kind == tasuki::CollectiveKind::barrier) return;
  const bool one = shape.kind == tasuki::CollectiveKind::broadcast;
  for (int rank = 0; rank < ranks; ++rank) {
    shape.in_layouts.push_back(laid(rank, !one).whole());
    shape.out_layouts.push_back(one ? Layout() : laid(rank, false).whole());
  }
}

}  // namespace strided_blocks
