// How the apps deal out tiles to the blocks of a resident kernel: every tile once, all blocks alike, and who is whose
// neighbour, against all pairs of cells.
#include "common/deal.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using tasuki::Box;

Box box_of(const std::vector<std::pair<std::int64_t, std::int64_t>>& range) {
  Box box;
  box.ndims = static_cast<int>(range.size());
  for (std::size_t d = 0; d < range.size(); ++d) std::tie(box.lo[d], box.hi[d]) = range[d];
  return box;
}

// A box cut into tiles of at most that extent, each in `pieces` pieces at most.
void add_tiles(apps::Tiling& tiling, const Box& box, const std::vector<std::int64_t>& extent, std::mt19937& chance) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(box.ndims));
  for (std::size_t d = 0; d < at.size(); ++d) at[d] = box.lo[d];
  if (box.empty()) return;
  for (;;) {
    Box tile;
    tile.ndims = box.ndims;
    for (std::size_t d = 0; d < at.size(); ++d) {
      tile.lo[d] = at[d];
      tile.hi[d] = std::min(box.hi[d], at[d] + extent[d]);
    }
    const auto number = static_cast<std::uint32_t>(tiling.work.size());
    const std::int64_t half = tile.lo[0] + tile.extent(0) / 2;
    if (chance() % 2 == 0 && half > tile.lo[0]) {
      Box first = tile;
      first.hi[0] = half;
      tiling.pieces.push_back({number, first});
      tile.lo[0] = half;
    }
    tiling.pieces.push_back({number, tile});
    tiling.work.push_back(1);
    auto d = static_cast<std::size_t>(box.ndims) - 1;
    for (; (at[d] += extent[d]) >= box.hi[d]; --d) {
      at[d] = box.lo[d];
      if (d == 0) return;
    }
  }
}

std::vector<int> owners(const apps::Tiling& tiling, const apps::Deal& deal) {
  std::vector<int> owner(tiling.work.size(), -1);
  for (std::size_t b = 0; b < deal.shares.size(); ++b) {
    const apps::Share& share = deal.shares[b];
    CHECK(share.side <= share.side_end);
    CHECK(share.side_end <= tiling.sides);
    if (share.rest < share.rest_end) CHECK(share.rest >= tiling.sides);
    for (std::uint32_t tile = share.side; tile < share.side_end; ++tile) {
      CHECK(owner.at(tile) == -1);
      owner.at(tile) = static_cast<int>(b);
    }
    for (std::uint32_t tile = share.rest; tile < share.rest_end; tile += share.step) {
      CHECK(owner.at(tile) == -1);
      owner.at(tile) = static_cast<int>(b);
    }
  }
  CHECK(std::count(owner.begin(), owner.end(), -1) == 0);
  return owner;
}

// Pairs of blocks of which one reads a cell of the other. In the group also pairs with at most one cell between them.
std::set<std::pair<int, int>> readers(const apps::Tiling& tiling, const std::vector<int>& owner, int group) {
  std::set<std::pair<int, int>> pairs;
  for (const auto& a : tiling.pieces)
    for (const auto& b : tiling.pieces) {
      const int reader = owner[a.tile];
      const int writer = owner[b.tile];
      const int reach = std::max(reader, writer) < group ? 2 : 1;
      Box wide = a.cells;
      for (int d = 0; d < wide.ndims; ++d) {
        wide.lo[d] -= reach;
        wide.hi[d] += reach;
      }
      if (reader != writer && !tasuki::intersect(wide, b.cells).empty()) pairs.emplace(reader, writer);
    }
  return pairs;
}

std::set<std::pair<int, int>> pairs_of(const std::vector<std::vector<int>>& lists) {
  std::set<std::pair<int, int>> pairs;
  for (std::size_t b = 0; b < lists.size(); ++b)
    for (const int other : lists[b]) pairs.emplace(static_cast<int>(b), other);
  return pairs;
}

}  // namespace

TEST_CASE("deals of tiles: each once, and neighbours are those that read each other's cells") {
  std::mt19937 chance(7);
  const auto up_to = [&](int most) { return static_cast<std::int64_t>(1 + chance() % static_cast<unsigned>(most)); };
  for (int turn = 0; turn < 60; ++turn) {
    const auto dims = static_cast<std::size_t>(2 + chance() % 2);
    std::vector<std::pair<std::int64_t, std::int64_t>> range(dims);
    std::vector<std::int64_t> extent(dims);
    for (std::size_t d = 0; d < dims; ++d) {
      range[d] = {1, 1 + up_to(13)};
      extent[d] = up_to(5);
    }
    apps::Tiling tiling;
    const bool exchanges = turn % 4 != 0;
    auto inner = range;
    if (exchanges) {
      auto side = range;
      side[0].second = side[0].first + 1;
      add_tiles(tiling, box_of(side), extent, chance);
      ++inner[0].first;
    }
    tiling.sides = static_cast<std::uint32_t>(tiling.work.size());
    add_tiles(tiling, box_of(inner), extent, chance);
    const auto spread = turn % 2 == 0 ? apps::Dealt::in_turns : apps::Dealt::in_runs;
    const int blocks = static_cast<int>(up_to(9));
    CAPTURE(turn);
    CAPTURE(blocks);
    const apps::Deal deal = apps::deal(tiling, blocks, exchanges, spread);
    CHECK(static_cast<int>(deal.shares.size()) == blocks);
    CHECK((deal.group > 0) == exchanges);
    CHECK(deal.group <= blocks);
    const std::vector<int> owner = owners(tiling, deal);
    for (std::uint32_t tile = 0; tile < tiling.sides; ++tile) CHECK(owner[tile] < deal.group);
    bool beside = false;
    for (int b = 0; b < deal.group; ++b) {
      const apps::Share& share = deal.shares[static_cast<std::size_t>(b)];
      beside = beside || share.rest < share.rest_end;
    }
    CHECK(deal.beside == beside);
    CHECK(pairs_of(deal.neighbours) == readers(tiling, owner, deal.group));
    std::int64_t cells = 0;  // of the group
    for (const auto& piece : tiling.pieces) cells += owner[piece.tile] < deal.group ? piece.cells.cells() : 0;
    for (const auto& boxes : deal.cells)
      for (const Box& box : boxes) cells -= box.cells();
    CHECK(cells == 0);
  }
}

TEST_CASE("deals of tiles: no block has more than its part, rounded up") {
  for (const int tiles : {1, 7, 247, 496, 500}) {
    for (const int sides : {0, 1, 5}) {
      for (const int blocks : {1, 3, 132, 264}) {
        if (sides > tiles) continue;
        apps::Tiling tiling;
        tiling.sides = static_cast<std::uint32_t>(sides);
        for (int n = 0; n < tiles; ++n) {
          tiling.work.push_back(1);
          tiling.pieces.push_back({static_cast<std::uint32_t>(n), box_of({{n, n + 1}, {0, 4}})});
        }
        const apps::Deal deal = apps::deal(tiling, blocks, sides > 0, apps::Dealt::in_turns);
        for (const apps::Share& share : deal.shares) {
          CHECK(static_cast<int>(apps::tiles_of(share)) <= (tiles + blocks - 1) / blocks);
        }
      }
    }
  }
}

TEST_CASE("deals of tiles: sides over few blocks fill these, and uneven tiles weigh what they take") {
  apps::Tiling tiling;
  tiling.sides = 3;
  for (int n = 0; n < 11; ++n) {
    tiling.work.push_back(n < 3 ? 2 : 10);
    tiling.pieces.push_back({static_cast<std::uint32_t>(n), box_of({{n, n + 1}, {0, 4}})});
  }
  const apps::Deal few = apps::deal(tiling, 2, true, apps::Dealt::in_runs);
  CHECK(few.group == 1);
  CHECK(few.shares[0].side_end == 3);
  CHECK(few.shares[0].rest_end == 7);
  CHECK(few.shares[1].rest_end == 11);
  CHECK(few.beside);
  const apps::Deal many = apps::deal(tiling, 4, true, apps::Dealt::in_turns);
  CHECK(many.group == 3);
}

TEST_CASE("cuts of a halo that would make many pieces of a face are none") {
  const auto cuts = [](std::size_t count) { return std::vector<std::int64_t>(count, 1); };
  CHECK(apps::few_pieces({{}, cuts(15), cuts(1)}, {2, 1, 1}));
  CHECK(apps::few_pieces({cuts(255), cuts(63), cuts(7)}, {2, 1, 1}));         // the other faces are not sent
  CHECK(!apps::few_pieces({cuts(255), cuts(63), cuts(7)}, {2, 1, 2}));        // 128 * 64
  CHECK(apps::few_pieces({cuts(4 * 15), cuts(4 * 15), cuts(3)}, {4, 4, 1}));  // 16 * 4 of a rank
  CHECK(apps::few_pieces({}, {}));
}
