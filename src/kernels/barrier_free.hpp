// Barrier-free groups (KernelGroup::cells): a halo's moves dealt out to the blocks whose cells they move.
//
// A block sends the lines whose words are its own cells, which its threads have written. It unpacks every line that has
// cells of the shadow within the halo's width of its own cells, and stores those: other blocks may unpack the same
// line. Within the rank, a block copies its own cells for all blocks that read the copy: they are its neighbours, and
// wait until it has ended the step. Cells that no block computes are copied by each block that reads the copy. So a
// line must not have cells of two blocks of the sender: HaloOptions::cuts sees to that. Rows that are copied within the
// rank are cut here where the cells of a block begin and end.
//
// Whether a ring's slot may be written again. An eager ring of two epochs has no credit between ranks that both send:
// what has come from the peer says that it has unpacked what was sent before. In a barrier-free group this holds
// block by block. Let block b send a line that the peer's block d unpacks. In epoch e it writes the slot of epoch e -
// 2, which d must have unpacked. If d sends a line to b, too, then b has unpacked that of epoch e - 1, before which d
// has ended epoch e - 2. So each block that unpacks a line must send one to the block which that line comes from:
// `unanswered` looks for one that does not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engines/bind.hpp"
#include "grid/field_cells.hpp"
#include "kernels/jobs.hpp"

namespace tasuki {

/// Which cells the blocks of a group compute, and where they lie.
class BlockCells {
 public:
  /// `cells` as KernelGroup has them; one field a buffer.
  BlockCells(const std::vector<FieldCells>& fields, const std::vector<UserBuffer>& buffers,
             const std::vector<std::vector<Box>>& cells);

  /// What is wrong with the boxes; empty: nothing.
  std::string complaint() const;

  /// A cell of a field; in the shadow its index may lie beyond the grid.
  struct Cell {
    std::size_t field = 0;
    Index at{};
    std::int64_t left = 0;  ///< of its bytes, from the byte that was asked for on
  };
  /// The cell that has this byte. None if it is in no field.
  std::optional<Cell> find(const std::byte* byte) const;
  /// The block that computes it; none if no block does.
  std::optional<int> owner(const Cell& cell) const;
  /// Whether it lies within the halo's width of cells of the block.
  bool reads(int block, const Cell& cell) const;
  /// Calls f(cell) for each cell of some bytes, without one for a byte that no field has, until f returns false.
  /// Returns false then.
  template <class F>
  bool each_in(const std::byte* at, std::int64_t bytes, const F& f) const {
    for (std::int64_t byte = 0; byte < bytes;) {
      const std::optional<Cell> cell = find(at + byte);
      if (!f(cell)) return false;
      byte += cell ? cell->left : 1;
    }
    return true;
  }
  /// False only if it reads none of a box.
  bool is_near(int block, std::size_t field, const Box& cells) const;
  /// Whether all fields have two copies that take turns.
  bool take_turns() const;
  int blocks() const { return static_cast<int>(cells_.size()); }

 private:
  const std::vector<FieldCells>& fields_;
  const std::vector<UserBuffer>& buffers_;
  const std::vector<std::vector<Box>>& cells_;
  mutable const Box* last_ = nullptr;  // in which a cell was found
  mutable int last_block_ = 0;
};

/// A line that a block sends to a peer or unpacks from it, found by its link and its place in the ring.
struct LineOfBlock {
  std::int32_t peer = 0;
  std::int32_t link = 0;
  std::int64_t at = 0;
  std::int32_t block = 0;
  std::int32_t unpacked = 0;
};

/// What a barrier-free group does.
struct DealtByCells {
  std::array<DealtBundles, kPartsOfHandle> parts;
  std::vector<LineOfBlock> lines;
};

/// Deals out a plan's moves (`moves_of`) to blocks of so many warps. Of several warps the last stays free. Returns why,
/// if the group needs barriers.
std::variant<DealtByCells, std::string> deal_by_cells(const Plan& plan,
                                                      const std::array<PlanMoves, kPartsOfHandle>& moves,
                                                      const BlockCells& cells, int warps, std::int64_t most_rows,
                                                      Joins joins);

/// Says which line is not answered, as above; empty: none. `mine`: lines of this rank's blocks. `theirs`: those of a
/// peer's blocks that send to this rank or unpack from it.
std::string unanswered(const std::vector<LineOfBlock>& mine, int rank, const std::vector<LineOfBlock>& theirs,
                       int peer);

}  // namespace tasuki
