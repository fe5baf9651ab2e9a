// See barrier_free.hpp.
#include "kernels/barrier_free.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "engines/gpu/row_places.hpp"

namespace tasuki {
namespace {

bool has(const Box& box, const Index& at, const Width& around = 0) {
  for (int d = 0; d < box.ndims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (at[i] < box.lo[i] - around.lo[i] || at[i] >= box.hi[i] + around.hi[i]) return false;
  }
  return true;
}

std::string text_of(const Box& box) {
  std::string text;
  for (std::size_t d = 0; d < static_cast<std::size_t>(box.ndims); ++d)
    text += fmt::format("{}[{}, {})", d == 0 ? "" : " x ", box.lo[d], box.hi[d]);
  return text;
}

// Where the words or units of a job's row lie on one side.
struct RowBytes {
  const PlanMove& move;
  std::int64_t first;  // unit
  std::int64_t end;
  bool of_source;

  std::int64_t unit_bytes() const {
    return move.job.ll_side != 0 ? sizeof(std::uint32_t) : std::int64_t{1} << move.job.log_unit;
  }
  const std::byte* unit(std::int64_t number) const {
    const Job& job = move.job;
    const UnitPlace place = place_of(job.dims, static_cast<std::size_t>(job.ndims), number, move.lists);
    return of_source ? job.src.base + place.src * unit_bytes() : job.dst.base + place.dst * unit_bytes();
  }
};

class Dealer {
 public:
  Dealer(const Plan& plan, const BlockCells& cells, int warps, std::int64_t most_rows, Joins joins)
      : plan_(plan),
        cells_(cells),
        warps_(static_cast<std::size_t>(warps)),
        movers_(static_cast<std::size_t>(std::max(1, warps - 1))),
        most_rows_(most_rows),
        joins_(joins) {}

  // False if the group needs barriers: then `why()` says why.
  bool deal(const PlanMoves& moves, DealtBundles& dealt) {
    std::vector<std::vector<Bundle>> by_warp(static_cast<std::size_t>(cells_.blocks()) * warps_);
    std::vector<std::size_t> next(static_cast<std::size_t>(cells_.blocks()));
    int blocks = 0;
    for (const int kind : {kSent, kLocal, kUnpacked}) {
      std::vector<std::vector<PlanRow>> rows(static_cast<std::size_t>(cells_.blocks()));
      for (const PlanRow& whole : rows_of(moves[static_cast<std::size_t>(kind)])) {
        std::vector<PlanRow> parts{whole};
        if (kind == kLocal && !cut_by_owner(whole, parts)) return false;
        for (const PlanRow& row : parts) {
          const auto* const who = blocks_for(kind, row);
          if (who == nullptr) return false;
          for (const int block : *who) rows[static_cast<std::size_t>(block)].push_back(row);
        }
      }
      for (std::size_t b = 0; b < rows.size(); ++b) {
        for (const Bundle& bundle : bundles_of(rows[b], static_cast<std::int64_t>(movers_), most_rows_, joins_)) {
          by_warp[b * warps_ + next[b]].push_back(bundle);
          next[b] = (next[b] + 1) % movers_;
          blocks = std::max(blocks, static_cast<int>(b) + 1);
        }
      }
    }
    by_warp.resize(static_cast<std::size_t>(blocks) * warps_);
    dealt = dealt_to(std::move(by_warp), blocks);
    return true;
  }

  const std::string& why() const { return why_; }
  std::vector<LineOfBlock> lines_of(const PlanMoves& moves) const {
    std::vector<LineOfBlock> lines;
    for (const int kind : {kSent, kUnpacked}) {
      for (const PlanMove& move : moves[static_cast<std::size_t>(kind)]) {
        const Command& c = plan_.commands[static_cast<std::size_t>(move.job.command)];
        const std::int32_t ring = kind == kSent ? c.dst : c.src;
        for (std::int64_t row = 0; row < move.rows; ++row)
          for (const int block : known_.at({&move, row * move.job.row_units}))
            lines.push_back({c.peer, plan_.buffers[static_cast<std::size_t>(ring)].link,
                             move.in_ring + row * kLLLineBytes, block, kind == kUnpacked ? 1 : 0});
      }
    }
    return lines;
  }

 private:
  // The blocks that move a row, worked out once: a row is known by its move and its first unit.
  const std::vector<int>* blocks_for(int kind, const PlanRow& row) {
    const auto [at, is_new] = known_.try_emplace({row.move, row.begin});
    if (!is_new) return &at->second;
    auto& blocks = at->second;
    if (kind != kUnpacked) {
      const auto owner = owner_of(row);
      if (!owner) return nullptr;
      if (*owner >= 0) blocks.push_back(*owner);
    }
    if (kind == kSent) {
      if (!blocks.empty()) return &blocks;
      // No block changes these cells. A block with cells beside them sends them, as such a block unpacks them there.
      const auto near = readers_of(bytes_of(row, true));
      if (!near) return nullptr;
      blocks.push_back(near->empty() ? 0 : *near->begin());
      return &blocks;
    }
    if (kind == kLocal && !blocks.empty()) return readers_know(blocks.front(), row) ? &blocks : nullptr;
    // Each block stores for itself what comes from a peer, and copies of cells that no block changes.
    const auto readers = readers_of(bytes_of(row, false));
    if (!readers) return nullptr;
    blocks.assign(readers->begin(), readers->end());
    return &blocks;
  }

  // A unit may have cells of the block that copies it, and cells that no block computes. A block that reads copies of
  // the latter waits for the copying block only if it also reads copies of that block's cells, or is that block.
  bool readers_know(int owner, const PlanRow& row) {
    std::vector<bool> owned;
    std::vector<BlockCells::Cell> its;
    std::vector<BlockCells::Cell> nobodys;
    const bool good = each_cell(bytes_of(row, true),
                                [&](const BlockCells::Cell& cell, std::int64_t) {
                                  owned.push_back(cells_.owner(cell).has_value());
                                  return true;
                                }) &&
                      each_cell(bytes_of(row, false), [&](const BlockCells::Cell& cell, std::int64_t) {
                        (owned[its.size() + nobodys.size()] ? its : nobodys).push_back(cell);
                        return true;
                      });
    if (!good) return false;
    if (nobodys.empty()) return true;
    const std::set<int> know = readers_of(its);
    for (const int reader : readers_of(nobodys)) {
      if (reader == owner || know.contains(reader)) continue;
      why_ = fmt::format(
          "a unit of {} bytes that is copied within the rank has cells of block {} and cells of no block, which block "
          "{} reads: let blocks begin and end at multiples of {} bytes",
          bytes_of(row, true).unit_bytes(), owner, reader, bytes_of(row, true).unit_bytes());
      return false;
    }
    return true;
  }

  static RowBytes bytes_of(const PlanRow& row, bool of_source) { return {*row.move, row.begin, row.end, of_source}; }

  // Calls f(cell, unit) for each cell in each unit of the row.
  template <class F>
  bool each_cell(const RowBytes& row, const F& f) {
    for (std::int64_t unit = row.first; unit < row.end; ++unit) {
      const bool all =
          cells_.each_in(row.unit(unit), row.unit_bytes(), [&](const std::optional<BlockCells::Cell>& cell) {
            if (!cell) why_ = "what it moves is not a field's";
            return cell && f(*cell, unit);
          });
      if (!all) return false;
    }
    return true;
  }

  // Cuts a row that is copied within the rank, so that the source of each part is one block's, or nobody's. A unit that
  // has cells of both goes to the block; `owner_of` finds one that has cells of two blocks. `parts`: at first the
  // whole.
  bool cut_by_owner(const PlanRow& whole, std::vector<PlanRow>& parts) {
    std::vector<int> owners(static_cast<std::size_t>(whole.end - whole.begin), -1);  // of units
    const auto owner_at = [&](std::int64_t unit) -> int& {
      return owners[static_cast<std::size_t>(unit - whole.begin)];
    };
    if (!each_cell(bytes_of(whole, true), [&](const BlockCells::Cell& cell, std::int64_t unit) {
          owner_at(unit) = std::max(owner_at(unit), cells_.owner(cell).value_or(-1));
          return true;
        }))
      return false;
    for (std::int64_t unit = whole.begin + 1; unit < whole.end; ++unit) {
      if (owner_at(unit) == owner_at(unit - 1)) continue;
      parts.back().end = unit;
      parts.push_back({whole.move, whole.row, unit, whole.end});
    }
    return true;
  }

  // The block that owns the row's source; below 0: none.
  std::optional<int> owner_of(const PlanRow& row) {
    int owner = -1;
    const bool good = each_cell(bytes_of(row, true), [&](const BlockCells::Cell& cell, std::int64_t) {
      const auto its = cells_.owner(cell);
      if (!its || *its == owner) return true;
      if (owner >= 0) {
        const std::string who = fmt::format("cells of blocks {} and {} are ", owner, *its);
        why_ = row.move->job.ll_side != 0
                   ? who + "sent in one line: cut the halo between them (option 'cuts')"
                   : who + fmt::format(
                               "copied within the rank in one unit of {} bytes: let blocks begin and end at "
                               "multiples of {} bytes",
                               bytes_of(row, true).unit_bytes(), bytes_of(row, true).unit_bytes());
        return false;
      }
      owner = *its;
      return true;
    });
    if (!good) return std::nullopt;
    return owner;
  }

  static Box box_of(const std::vector<BlockCells::Cell>& cells) {
    Box box;
    box.ndims = static_cast<int>(kMaxDims);
    box.lo = box.hi = cells[0].at;
    for (const BlockCells::Cell& cell : cells) {
      for (std::size_t d = 0; d < kMaxDims; ++d) {
        box.lo[d] = std::min(box.lo[d], cell.at[d]);
        box.hi[d] = std::max(box.hi[d], cell.at[d] + 1);
      }
    }
    return box;
  }

  // Blocks that read one of its cells.
  std::optional<std::set<int>> readers_of(const RowBytes& row) {
    std::vector<BlockCells::Cell> cells;
    if (!each_cell(row, [&](const BlockCells::Cell& cell, std::int64_t) {
          cells.push_back(cell);
          return true;
        }))
      return std::nullopt;
    return readers_of(cells);
  }

  std::set<int> readers_of(const std::vector<BlockCells::Cell>& cells) const {
    std::set<int> readers;
    if (cells.empty()) return readers;
    const Box around = box_of(cells);
    for (int block = 0; block < cells_.blocks(); ++block) {
      if (!cells_.is_near(block, cells[0].field, around)) continue;
      if (std::any_of(cells.begin(), cells.end(),
                      [&](const BlockCells::Cell& cell) { return cells_.reads(block, cell); }))
        readers.insert(block);
    }
    return readers;
  }

  const Plan& plan_;
  const BlockCells& cells_;
  std::size_t warps_;
  std::size_t movers_;  // warps that move: all but the last one, if there are others
  std::int64_t most_rows_;
  Joins joins_;
  std::string why_;
  std::map<std::pair<const PlanMove*, std::int64_t>, std::vector<int>> known_;
};

}  // namespace

BlockCells::BlockCells(const std::vector<FieldCells>& fields, const std::vector<UserBuffer>& buffers,
                       const std::vector<std::vector<Box>>& cells)
    : fields_(fields), buffers_(buffers), cells_(cells) {}

std::string BlockCells::complaint() const {
  if (fields_.empty()) return "argument 'cells' is given, but only a halo of fields has cells";
  const Box& owned = fields_[0].owned;
  for (const FieldCells& field : fields_) {
    if (!(field.owned == owned)) return "argument 'cells' is given, but the halo's fields are on different grids";
  }
  struct Of {
    std::size_t block;
    const Box* box;
  };
  std::vector<Of> all;
  for (std::size_t block = 0; block < cells_.size(); ++block) {
    for (const Box& box : cells_[block]) {
      if (box.ndims != owned.ndims)
        return fmt::format("argument 'cells': a box of block {} has {} dimensions; the grid has {}", block, box.ndims,
                           owned.ndims);
      if (box.empty()) continue;
      if (!(intersect(box, owned) == box))
        return fmt::format("argument 'cells': block {} has {}, but this rank's cells are {} (global indices)", block,
                           text_of(box), text_of(owned));
      all.push_back({block, &box});
    }
  }
  std::sort(all.begin(), all.end(), [](const Of& a, const Of& b) { return a.box->lo[0] < b.box->lo[0]; });
  for (std::size_t n = 0; n < all.size(); ++n) {
    for (std::size_t m = n + 1; m < all.size() && all[m].box->lo[0] < all[n].box->hi[0]; ++m) {
      if (!intersect(*all[n].box, *all[m].box).empty())
        return fmt::format("argument 'cells': {} of block {} and {} of block {} have cells in common",
                           text_of(*all[n].box), all[n].block, text_of(*all[m].box), all[m].block);
    }
  }
  return {};
}

std::optional<BlockCells::Cell> BlockCells::find(const std::byte* byte) const {
  for (std::size_t f = 0; f < buffers_.size(); ++f) {
    for (const std::byte* memory : buffers_[f].memory) {
      if (byte < memory || byte >= memory + buffers_[f].bytes) continue;
      const FieldCells& field = fields_[f];
      std::int64_t cell = (byte - memory) / field.element_bytes;
      Cell found{f, {}, field.element_bytes - (byte - memory) % field.element_bytes};
      for (std::size_t d = field.extents.size(); d-- > 0;) {
        found.at[d] = cell % field.extents[d] - field.shadow.lo[d] + field.owned.lo[d];
        cell /= field.extents[d];
      }
      return found;
    }
  }
  return std::nullopt;
}

// Cells that follow each other in memory lie in one box, mostly.
std::optional<int> BlockCells::owner(const Cell& cell) const {
  if (last_ != nullptr && has(*last_, cell.at)) return last_block_;
  for (std::size_t block = 0; block < cells_.size(); ++block)
    for (const Box& box : cells_[block])
      if (has(box, cell.at)) {
        last_ = &box;
        last_block_ = static_cast<int>(block);
        return last_block_;
      }
  return std::nullopt;
}

bool BlockCells::is_near(int block, std::size_t field, const Box& cells) const {
  const Width& width = fields_[field].width;
  const auto& boxes = cells_[static_cast<std::size_t>(block)];
  return std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
    for (std::size_t d = 0; d < static_cast<std::size_t>(box.ndims); ++d) {
      if (cells.hi[d] <= box.lo[d] - width.lo[d] || cells.lo[d] >= box.hi[d] + width.hi[d]) return false;
    }
    return !box.empty();
  });
}

bool BlockCells::reads(int block, const Cell& cell) const {
  const auto& boxes = cells_[static_cast<std::size_t>(block)];
  return std::any_of(boxes.begin(), boxes.end(),
                     [&](const Box& box) { return !box.empty() && has(box, cell.at, fields_[cell.field].width); });
}

bool BlockCells::take_turns() const {
  return std::all_of(buffers_.begin(), buffers_.end(), [](const UserBuffer& buffer) { return buffer.alternating; });
}

std::variant<DealtByCells, std::string> deal_by_cells(const Plan& plan,
                                                      const std::array<PlanMoves, kPartsOfHandle>& moves,
                                                      const BlockCells& cells, int warps, std::int64_t most_rows,
                                                      Joins joins) {
  if (!cells.take_turns())
    return "a field has one copy, or the halo is not alternating: a slow block would overwrite what a quick one reads";
  DealtByCells all;
  for (std::size_t part = 0; part < all.parts.size(); ++part) {
    Dealer dealer(plan, cells, warps, most_rows, joins);
    if (!dealer.deal(moves[part], all.parts[part])) return dealer.why();
    if (part == kRunPart) all.lines = dealer.lines_of(moves[part]);
  }
  return all;
}

std::string unanswered(const std::vector<LineOfBlock>& mine, int rank, const std::vector<LineOfBlock>& theirs,
                       int peer) {
  using Place = std::pair<std::int32_t, std::int64_t>;
  const auto find = [](const std::vector<LineOfBlock>& lines, int with, int unpacked) {
    std::map<Place, std::vector<int>> blocks;
    for (const LineOfBlock& line : lines)
      if (line.peer == with && line.unpacked == unpacked) blocks[{line.link, line.at}].push_back(line.block);
    return blocks;
  };
  const auto none = std::vector<int>();
  const auto at = [&](const std::map<Place, std::vector<int>>& blocks, const Place& place) -> const std::vector<int>& {
    const auto found = blocks.find(place);
    return found == blocks.end() ? none : found->second;
  };
  std::set<std::pair<int, int>> answers;  // their block sends to my block
  const auto sent_to_me = find(theirs, rank, 0);
  for (const auto& [place, blocks] : find(mine, peer, 1))
    for (const int block : blocks)
      for (const int other : at(sent_to_me, place)) answers.insert({other, block});
  const auto taken_from_me = find(theirs, rank, 1);
  for (const auto& [place, blocks] : find(mine, peer, 0)) {
    for (const int block : blocks)
      for (const int other : at(taken_from_me, place))
        if (!answers.contains({other, block}))
          return fmt::format(
              "block {} of rank {} sends to block {} of rank {}, which sends nothing back: its blocks must be dealt "
              "out "
              "as those on the other side are",
              block, rank, other, peer);
  }
  return {};
}

}  // namespace tasuki
