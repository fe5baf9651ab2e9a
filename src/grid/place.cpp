// Which rank gets which box of a grid, so that the heaviest faces stay inside islands.
#include <algorithm>
#include <map>
#include <numeric>

#include "grid/decompose.hpp"

namespace tasuki {
namespace {

Wide crossing_cells(std::span<const Face> faces, std::span<const int> rank_of_box,
                    std::span<const int> island_of_rank) {
  const auto island = [&](int box) { return island_of_rank[rank_of_box.empty() ? box : rank_of_box[box]]; };
  Wide crossing = 0;
  for (const Face& face : faces)
    if (island(face.box) != island(face.neighbour)) crossing += face.cells;
  return crossing;
}

/// Dimensions from the lightest faces to the heaviest (those of the thinnest boxes), as loops are nested.
std::vector<int> by_face(const Decomposition& cut) {
  std::vector<int> dims(cut.ndims());
  std::iota(dims.begin(), dims.end(), 0);
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) {
    return Wide{cut.extents[a]} * cut.split[b] > Wide{cut.extents[b]} * cut.split[a];
  });
  return dims;
}

/// Calls `use` for each coordinate below `counts`, the last of `dims` fastest.
template <class Use>
void for_each_coordinate(const std::vector<int>& counts, const std::vector<int>& dims, Use&& use) {
  std::vector<int> at(counts.size(), 0);
  for (;;) {
    use(at);
    auto d = dims.rbegin();
    for (; d != dims.rend() && ++at[*d] == counts[*d]; ++d) at[*d] = 0;
    if (d == dims.rend()) return;
  }
}

/// The boxes block after block, each block in one go.
std::vector<int> in_blocks(const Decomposition& cut, const std::vector<int>& block, const std::vector<int>& dims) {
  std::vector<int> blocks;
  for (int d = 0; d < cut.ndims(); ++d) blocks.push_back(cut.split[d] / block[d]);
  std::vector<int> boxes;
  for_each_coordinate(blocks, dims, [&](const std::vector<int>& outer) {
    for_each_coordinate(block, dims, [&](const std::vector<int>& inner) {
      std::array<int, kMaxDims> coords{};
      for (int d = 0; d < cut.ndims(); ++d) coords[d] = outer[d] * block[d] + inner[d];
      boxes.push_back(cut.box_at(coords));
    });
  });
  return boxes;
}

/// All blocks of at most `largest` boxes that tile the grid of ranks.
std::vector<std::vector<int>> tilings(const std::vector<int>& split, int largest) {
  std::vector<std::vector<int>> blocks{{}};
  for (const int parts : split) {
    std::vector<std::vector<int>> longer;
    for (const auto& block : blocks) {
      const int boxes = std::accumulate(block.begin(), block.end(), 1, std::multiplies<>());
      for (int size = 1; size <= parts && boxes * size <= largest; ++size) {
        if (parts % size != 0) continue;
        longer.push_back(block);
        longer.back().push_back(size);
      }
    }
    blocks = std::move(longer);
  }
  return blocks;
}

}  // namespace

std::vector<Face> faces_of(const Decomposition& cut) {
  std::vector<Face> faces;
  for (int number = 0; number < cut.boxes(); ++number) {
    const Box box = cut.box(number);
    const auto at = cut.coords(number);
    for (int d = 0; d < cut.ndims(); ++d) {
      auto next = at;
      const bool last = ++next[d] == cut.split[d];
      if (last && !(cut.periodic[d] && cut.split[d] > 1)) continue;
      if (last) next[d] = 0;
      const int neighbour = cut.box_at(next);
      if (box.empty() || cut.box(neighbour).empty()) continue;
      Wide cells = 1;
      for (int e = 0; e < box.ndims; ++e)
        if (e != d) cells *= box.extent(e);
      faces.push_back({number, neighbour, cells});
    }
  }
  return faces;
}

Wide crossing_cells(const Decomposition& cut, std::span<const int> rank_of_box, std::span<const int> island_of_rank) {
  return crossing_cells(faces_of(cut), rank_of_box, island_of_rank);
}

std::vector<int> place(const Decomposition& cut, std::span<const int> island_of_rank) {
  const int boxes = cut.boxes();
  std::vector<int> best(boxes);
  std::iota(best.begin(), best.end(), 0);
  std::vector<int> ranks = best;  // island after island
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return island_of_rank[a] < island_of_rank[b]; });
  std::map<int, int> island_sizes;
  int largest = 0;
  for (const int island : island_of_rank) largest = std::max(largest, ++island_sizes[island]);

  const std::vector<Face> faces = faces_of(cut);
  Wide least = crossing_cells(faces, best, island_of_rank);
  const std::vector<int> dims = by_face(cut);
  std::vector<int> trial(boxes);
  for (const auto& block : tilings(cut.split, largest)) {
    if (least == 0) break;
    const std::vector<int> order = in_blocks(cut, block, dims);
    for (int i = 0; i < boxes; ++i) trial[order[i]] = ranks[i];
    const Wide crossing = crossing_cells(faces, trial, island_of_rank);
    if (crossing < least) {
      least = crossing;
      best = trial;
    }
  }
  return best;
}

}  // namespace tasuki
