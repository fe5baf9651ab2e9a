// How the tiles of a field are dealt out to the blocks of one kernel that computes all steps, and which blocks are then
// neighbours. Plain data, worked out on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tasuki/tasuki.hpp"

namespace apps {

/// Tiles of the cells that a step computes, numbered from 0: first those at the sides, which are computed before the
/// halo starts, then the rest.
struct Tiling {
  /// Cells of a tile; a tile may have several pieces, which together are all its cells, or more.
  struct Piece {
    std::uint32_t tile;
    tasuki::Box cells;
  };
  std::vector<Piece> pieces;       // in the order of tiles
  std::vector<std::int64_t> work;  // by tile: what it takes
  std::uint32_t sides = 0;         // tiles
};

/// A block's tiles: some that follow each other of the sides; of the rest every `step`-th.
struct Share {
  std::uint32_t side;
  std::uint32_t side_end;
  std::uint32_t rest;
  std::uint32_t rest_end;
  std::uint32_t step;
};
inline std::uint32_t tiles_of(const Share& share) {
  const std::uint32_t rest = share.rest < share.rest_end ? share.rest_end - share.rest : 0;
  return share.side_end - share.side + (rest + share.step - 1) / share.step;
}

enum class Dealt {
  /// Sides to many blocks, so that they are computed at once. The rest in turns: blocks that work at the same time are
  /// close to each other in memory, so that what several of them read comes from a cache that they share.
  in_turns,
  /// Sides to few blocks, so that few have to wait for each other when the halo starts and ends. The rest in runs with
  /// equal work:
  /// what
  /// a block reads twice comes from a cache of its own.
  in_runs,
};

struct Deal {
  std::vector<Share> shares;                    // by block
  int group = 0;                                // blocks that run the halo, the first ones: they have the sides
  bool beside = false;                          // one of them has tiles of the rest, too
  std::vector<std::vector<tasuki::Box>> cells;  // of the group's blocks, in local indices
  /// By block, which others read what it computes, because cells of theirs lie beside cells of its own; in the group
  /// also those that read the same cells of the shadow, which are at most two cells away.
  std::vector<std::vector<int>> neighbours;
};

/// `exchanges`: there is a halo to run. Every cell reads those at most one cell away in each dimension.
Deal deal(const Tiling& tiling, int blocks, bool exchanges, Dealt dealt);

/// Whether cuts leave so few pieces of each face of a rank that packing them separately can pay. `split`: ranks by
/// dimension.
bool few_pieces(const std::vector<std::vector<std::int64_t>>& cuts, const std::vector<int>& split);

/// Where the halo of a field must be cut (HaloOptions::cuts) so that each piece is of one tile of the sides. The same
/// on all ranks. Nowhere, if that would make many pieces. Collective.
std::vector<std::vector<std::int64_t>> side_cuts(const tasuki::FieldBase& field, const Tiling& tiling);

/// A box in local indices, in those of the grid.
tasuki::Box in_grid(const tasuki::FieldBase& field, const tasuki::Box& box);

/// The boxes of a field that a step computes: before it starts the halo, and the others.
struct StepBoxes {
  std::vector<tasuki::Box> sides;
  std::vector<tasuki::Box> rest;
  bool exchanges = false;

  std::vector<tasuki::Box> all() const;
};
StepBoxes step_boxes(const tasuki::FieldBase& field, const tasuki::Halo& halo, bool overlap);

/// The cells of `box` (local indices) that are not fixed, which those on the faces of the whole grid are.
tasuki::Box not_fixed(const tasuki::FieldBase& field, const tasuki::Box& box);

}  // namespace apps
