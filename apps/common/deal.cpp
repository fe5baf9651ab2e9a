// See deal.hpp.
#include "common/deal.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace apps {
namespace {

// The box that two make together, if they make one.
std::optional<tasuki::Box> joined(const tasuki::Box& a, const tasuki::Box& b) {
  int along = -1;
  for (int d = 0; d < a.ndims; ++d) {
    if (a.lo[d] == b.lo[d] && a.hi[d] == b.hi[d]) continue;
    if (along >= 0 || (a.hi[d] != b.lo[d] && b.hi[d] != a.lo[d])) return {};
    along = d;
  }
  tasuki::Box both = a;
  if (along >= 0) {
    both.lo[along] = std::min(a.lo[along], b.lo[along]);
    both.hi[along] = std::max(a.hi[along], b.hi[along]);
  }
  return both;
}

// Some of a block's cells.
struct Cells {
  int block;
  tasuki::Box box;
};

// The cells of all blocks, in few boxes: tiles that follow each other make rows, and rows make planes.
std::vector<Cells> cells_of_blocks(const Tiling& tiling, const std::vector<Share>& shares) {
  std::vector<int> block_of(tiling.work.size());
  for (std::size_t b = 0; b < shares.size(); ++b) {
    for (std::uint32_t tile = shares[b].side; tile < shares[b].side_end; ++tile) block_of[tile] = static_cast<int>(b);
    for (std::uint32_t tile = shares[b].rest; tile < shares[b].rest_end; ++tile) block_of[tile] = static_cast<int>(b);
  }
  std::vector<Cells> all;
  for (const Tiling::Piece& piece : tiling.pieces) {
    if (piece.cells.empty()) continue;
    const int block = block_of[piece.tile];
    all.push_back({block, piece.cells});
    while (all.size() > 1 && all[all.size() - 2].block == block) {
      const auto both = joined(all[all.size() - 2].box, all.back().box);
      if (!both) break;
      all.pop_back();
      all.back().box = *both;
    }
  }
  return all;
}

bool beside(const tasuki::Box& a, const tasuki::Box& b) {
  for (int d = 0; d < a.ndims; ++d) {
    if (a.lo[d] > b.hi[d] || b.lo[d] > a.hi[d]) return false;
  }
  return true;
}

std::vector<std::vector<int>> neighbours_of(const Tiling& tiling, const std::vector<Share>& shares) {
  std::vector<Cells> all = cells_of_blocks(tiling, shares);
  std::sort(all.begin(), all.end(), [](const Cells& a, const Cells& b) { return a.box.lo[0] < b.box.lo[0]; });
  std::vector<std::vector<int>> neighbours(shares.size());
  const auto add = [&](int block, int other) { neighbours[static_cast<std::size_t>(block)].push_back(other); };
  for (std::size_t n = 0; n < all.size(); ++n) {
    for (std::size_t m = n + 1; m < all.size() && all[m].box.lo[0] <= all[n].box.hi[0]; ++m) {
      if (all[n].block == all[m].block || !beside(all[n].box, all[m].box)) continue;
      add(all[n].block, all[m].block);
      add(all[m].block, all[n].block);
    }
  }
  for (auto& list : neighbours) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return neighbours;
}

// Cuts the tiles from `first` on, with this work, into runs, one for each block, which has room for so much. Returns
// where they begin, and the end.
std::vector<std::uint32_t> runs(const std::vector<std::int64_t>& work, std::uint32_t first, std::uint32_t end,
                                const std::vector<double>& room) {
  const double all = std::accumulate(work.begin() + first, work.begin() + end, 0.0);
  const double rooms = std::accumulate(room.begin(), room.end(), 0.0);
  std::vector<std::uint32_t> begins{first};
  std::uint32_t tile = first;
  double done = 0;
  double until = 0;
  for (std::size_t b = 0; b + 1 < room.size(); ++b) {
    until += room[b];
    // A tile is the block's in whose part its middle lies.
    while (tile < end && (done + 0.5 * static_cast<double>(work[tile])) * rooms < until * all)
      done += static_cast<double>(work[tile++]);
    begins.push_back(tile);
  }
  begins.push_back(end);
  return begins;
}

// Blocks that run the halo.
int group_of(const Tiling& tiling, int blocks, double each, Sides spread) {
  const double sides = std::accumulate(tiling.work.begin(), tiling.work.begin() + tiling.sides, 0.0);
  const double enough = spread == Sides::over_many ? tiling.sides : each > 0 ? sides / each : 0;
  const int most = std::min(blocks, std::max(1, static_cast<int>(tiling.sides)));
  return std::clamp(static_cast<int>(std::min<double>(most, enough + 0.999)), 1, most);
}

}  // namespace

Deal deal(const Tiling& tiling, int blocks, bool exchanges, Sides sides) {
  const auto count = static_cast<std::uint32_t>(tiling.work.size());
  const double all = std::accumulate(tiling.work.begin(), tiling.work.end(), 0.0);
  const double each = all / blocks;
  Deal deal;
  deal.shares.resize(static_cast<std::size_t>(blocks));
  deal.group = exchanges ? group_of(tiling, blocks, each, sides) : 0;

  std::vector<double> room(static_cast<std::size_t>(blocks), each);
  const std::vector<double> alike(static_cast<std::size_t>(std::max(1, deal.group)), 1);
  const auto side = runs(tiling.work, 0, tiling.sides, alike);
  for (std::size_t b = 0; b < alike.size(); ++b) {
    const double has = std::accumulate(tiling.work.begin() + side[b], tiling.work.begin() + side[b + 1], 0.0);
    room[b] = std::max(0.0, each - has);
    deal.shares[b].side = side[b];
    deal.shares[b].side_end = side[b + 1];
  }
  const auto rest = runs(tiling.work, tiling.sides, count, room);
  for (std::size_t b = 0; b < deal.shares.size(); ++b) {
    deal.shares[b].rest = rest[b];
    deal.shares[b].rest_end = rest[b + 1];
    if (static_cast<int>(b) < deal.group && rest[b] < rest[b + 1]) deal.beside = true;
  }
  if (deal.group < blocks) {
    deal.neighbours = neighbours_of(tiling, deal.shares);
  } else {
    deal.neighbours.resize(deal.shares.size());
  }
  return deal;
}

StepBoxes step_boxes(const tasuki::FieldBase& field, const tasuki::Halo& halo, bool overlap) {
  StepBoxes all;
  all.exchanges = !halo.plan().commands.empty();
  if (all.exchanges && overlap) all.boxes = field.boundary(1);
  if (all.exchanges && !overlap) all.boxes = {field.local_owned()};
  all.sides = all.boxes.size();
  if (!all.exchanges) all.boxes.push_back(field.local_owned());
  if (all.exchanges && overlap) all.boxes.push_back(field.interior(1));
  return all;
}

}  // namespace apps
