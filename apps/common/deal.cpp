// See deal.hpp.
#include "common/deal.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
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
    for (std::uint32_t tile = shares[b].rest; tile < shares[b].rest_end; tile += shares[b].step)
      block_of[tile] = static_cast<int>(b);
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

// Cells between two of them, at most.
bool within(std::int64_t gap, const tasuki::Box& a, const tasuki::Box& b) {
  for (int d = 0; d < a.ndims; ++d) {
    if (a.lo[d] > b.hi[d] + gap || b.lo[d] > a.hi[d] + gap) return false;
  }
  return true;
}

// Two blocks of the group are neighbours also if both read a cell of the shadow, which lies beside cells of either.
constexpr std::int64_t kGapInGroup = 1;

// Looks for what lies beside a box only where it can: among those that begin in planes beside its own, in rows beside
// its own.
std::vector<std::vector<int>> neighbours_of(std::vector<Cells> all, std::size_t blocks, int group) {
  const auto at = [](const Cells& cells) { return std::pair(cells.box.lo[0], cells.box.lo[1]); };
  std::sort(all.begin(), all.end(), [&](const Cells& a, const Cells& b) { return at(a) < at(b); });
  std::int64_t widest = 0;
  for (const Cells& cells : all) widest = std::max(widest, cells.box.hi[1] - cells.box.lo[1]);
  std::vector<std::vector<int>> neighbours(blocks);
  const auto add = [&](int block, int other) { neighbours[static_cast<std::size_t>(block)].push_back(other); };
  const auto from = [&](std::int64_t plane, std::int64_t row) {
    return std::lower_bound(all.begin(), all.end(), std::pair(plane, row),
                            [&](const Cells& cells, const auto& place) { return at(cells) < place; });
  };
  for (auto one = all.begin(); one != all.end(); ++one) {
    for (auto other = one; other != all.end() && other->box.lo[0] <= one->box.hi[0] + kGapInGroup;) {
      const std::int64_t plane = other->box.lo[0];
      other = std::max(one, from(plane, one->box.lo[1] - widest - kGapInGroup));
      for (; other != all.end() && other->box.lo[0] == plane && other->box.lo[1] <= one->box.hi[1] + kGapInGroup;
           ++other) {
        if (one->block == other->block) continue;
        const bool in_group = std::max(one->block, other->block) < group;
        if (!within(in_group ? kGapInGroup : 0, one->box, other->box)) continue;
        add(one->block, other->block);
        add(other->block, one->block);
      }
      other = std::max(other, from(plane + 1, std::numeric_limits<std::int64_t>::min()));
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

double work_of(const Tiling& tiling, std::uint32_t first, std::uint32_t end) {
  return std::accumulate(tiling.work.begin() + first, tiling.work.begin() + end, 0.0);
}

// Blocks that run the halo; a block has `each` to do.
int group_of(const Tiling& tiling, int blocks, double each, Dealt dealt) {
  double enough = tiling.sides;
  if (dealt == Dealt::in_runs) enough = each > 0 ? std::ceil(work_of(tiling, 0, tiling.sides) / each) : 0;
  return std::max(
      1, static_cast<int>(std::min<double>({static_cast<double>(blocks), static_cast<double>(tiling.sides), enough})));
}

}  // namespace

Deal deal(const Tiling& tiling, int blocks, bool exchanges, Dealt dealt) {
  const auto count = static_cast<std::uint32_t>(tiling.work.size());
  const double each = work_of(tiling, 0, count) / blocks;
  Deal deal;
  deal.shares.resize(static_cast<std::size_t>(blocks));
  deal.group = exchanges ? group_of(tiling, blocks, each, dealt) : 0;

  std::vector<double> room(static_cast<std::size_t>(blocks), each);
  const std::vector<double> alike(static_cast<std::size_t>(std::max(1, deal.group)), 1);
  const auto side = runs(tiling.work, 0, tiling.sides, alike);
  for (std::size_t b = 0; b < alike.size(); ++b) {
    deal.shares[b].side = side[b];
    deal.shares[b].side_end = side[b + 1];
    room[b] = std::max(0.0, each - work_of(tiling, side[b], side[b + 1]));
  }
  const auto rest = runs(tiling.work, tiling.sides, count, room);
  for (std::size_t b = 0; b < deal.shares.size(); ++b) {
    Share& share = deal.shares[b];
    if (dealt == Dealt::in_runs) {
      share.rest = rest[b];
      share.rest_end = rest[b + 1];
      share.step = 1;
    } else {  // from the last block to the first ones, which have the sides
      share.rest = tiling.sides + static_cast<std::uint32_t>(deal.shares.size() - 1 - b);
      share.rest_end = count;
      share.step = static_cast<std::uint32_t>(blocks);
    }
    if (static_cast<int>(b) < deal.group && share.rest < share.rest_end) deal.beside = true;
  }
  std::vector<Cells> cells = cells_of_blocks(tiling, deal.shares);
  deal.cells.resize(static_cast<std::size_t>(deal.group));
  for (const Cells& some : cells)
    if (some.block < deal.group) deal.cells[static_cast<std::size_t>(some.block)].push_back(some.box);
  deal.neighbours = neighbours_of(std::move(cells), deal.shares.size(), deal.group);
  return deal;
}

bool few_pieces(const std::vector<std::vector<std::int64_t>>& cuts, const std::vector<int>& split) {
  constexpr double kMost = 1024;  // each fills a line or more, and barrier-free groups have some 2,000 lines
  for (std::size_t face = 0; face < cuts.size(); ++face) {
    if (split[face] == 1) continue;  // nothing is sent
    double pieces = 1;
    for (std::size_t d = 0; d < cuts.size(); ++d)
      if (d != face) pieces *= static_cast<double>(cuts[d].size()) / split[d] + 1;
    if (pieces > kMost) return false;
  }
  return true;
}

std::vector<std::vector<std::int64_t>> side_cuts(const tasuki::FieldBase& field, const Tiling& tiling) {
  const auto dims = static_cast<std::size_t>(field.grid().ndims());
  std::vector<std::set<std::int64_t>> begins(dims);
  std::vector<std::set<std::int64_t>> ends(dims);
  for (const Tiling::Piece& piece : tiling.pieces) {
    if (piece.tile >= tiling.sides || piece.cells.empty()) continue;
    const tasuki::Box cells = in_grid(field, piece.cells);
    for (std::size_t d = 0; d < dims; ++d) {
      begins[d].insert(cells.lo[d]);
      ends[d].insert(cells.hi[d]);
    }
  }
  std::string mine;  // pairs of a dimension and an index
  for (std::size_t d = 0; d < dims; ++d) {
    for (const std::int64_t at : begins[d]) {
      const std::int64_t pair[] = {static_cast<std::int64_t>(d), at};
      if (ends[d].contains(at)) mine.append(reinterpret_cast<const char*>(pair), sizeof pair);
    }
  }
  std::vector<std::set<std::int64_t>> all(dims);
  for (const std::string& theirs : field.grid().context().allgather(mine)) {
    for (std::size_t n = 0; n < theirs.size(); n += 2 * sizeof(std::int64_t)) {
      std::int64_t pair[2];
      std::memcpy(pair, theirs.data() + n, sizeof pair);
      all[static_cast<std::size_t>(pair[0])].insert(pair[1]);
    }
  }
  std::vector<std::vector<std::int64_t>> cuts;
  std::vector<int> split;
  for (const auto& one : all) {
    split.push_back(field.grid().split(static_cast<int>(cuts.size())));
    cuts.emplace_back(one.begin(), one.end());
  }
  return few_pieces(cuts, split) ? cuts : std::vector<std::vector<std::int64_t>>();
}

tasuki::Box in_grid(const tasuki::FieldBase& field, const tasuki::Box& box) {
  tasuki::Box cells = box;
  for (std::size_t d = 0; d < static_cast<std::size_t>(box.ndims); ++d) {
    const std::int64_t to_global = field.owned().lo[d] - field.local_owned().lo[d];
    cells.lo[d] += to_global;
    cells.hi[d] += to_global;
  }
  return cells;
}

std::vector<tasuki::Box> StepBoxes::all() const {
  std::vector<tasuki::Box> boxes = sides;
  boxes.insert(boxes.end(), rest.begin(), rest.end());
  return boxes;
}

StepBoxes step_boxes(const tasuki::FieldBase& field, const tasuki::Halo& halo, bool overlap) {
  StepBoxes boxes;
  boxes.exchanges = !halo.plan().commands.empty();
  if (boxes.exchanges && overlap) {
    boxes.sides = field.boundary(1);
    boxes.rest = {field.interior(1)};
  } else {
    (boxes.exchanges ? boxes.sides : boxes.rest).push_back(field.local_owned());
  }
  return boxes;
}

tasuki::Box not_fixed(const tasuki::FieldBase& field, const tasuki::Box& box) {
  tasuki::Box cells = box;
  for (int d = 0; d < box.ndims; ++d) {
    const std::int64_t to_local = field.local_owned().lo[d] - field.owned().lo[d];
    cells.lo[d] = std::max(box.lo[d], 1 + to_local);
    cells.hi[d] = std::min(box.hi[d], field.grid().extent(d) - 1 + to_local);
  }
  return cells;
}

}  // namespace apps
