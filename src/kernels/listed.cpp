// Listing what the warps of a group move: see listed.hpp.
#include "kernels/listed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "engines/gpu/row_places.hpp"
#include "kernels/jobs.hpp"

namespace tasuki {
namespace {

// The limit of a part's list. Reading a list costs as much as reading data, so computing the places is cheaper than
// reading a long list.
constexpr std::size_t kMostBytes = 1 << 20;

MoveKind kind_of(const Job& job) {
  return job.ll_side == kLLTarget ? MoveKind::fill : job.ll_side == kLLSource ? MoveKind::unpack : MoveKind::copy;
}

Listed listed_by(MoveKind kind) {
  return kind == MoveKind::fill ? Listed::source : kind == MoveKind::unpack ? Listed::destination : Listed::both;
}

std::int64_t unit_of(const Job& job) {
  return job.ll_side != 0 ? sizeof(std::uint32_t) : std::int64_t{1} << job.log_unit;
}

// The distance in bytes; the two may lie in different buffers.
std::int64_t between(const std::byte* from, const std::byte* to) {
  return reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(from);
}

// Whether the distance of two places is the same in every epoch, and a whole number of units.
bool lie_alike(const GpuPlace& one, const GpuPlace& other, std::int64_t unit) {
  constexpr std::int64_t kMost = 1 << 28;
  const std::int64_t distance = between(one.base, other.base);
  return one.copies == other.copies &&
         (one.copies == 1 ||
          (one.stride == other.stride && one.pair == other.pair && one.takes_turns == other.takes_turns)) &&
         distance % unit == 0 && distance >= -kMost && distance <= kMost;
}

// A move has one place for all its rows.
bool joins(const Bundle& bundle, const PlanRow& row) {
  const Job& one = bundle.front().move->job;
  const Job& other = row.move->job;
  return one.ll_side == other.ll_side && one.log_unit == other.log_unit &&
         lie_alike(one.src, other.src, unit_of(one)) && lie_alike(one.dst, other.dst, unit_of(one));
}

// Leaves out of a line's places those of words that have no cell which a block reads.
void keep_own(LanePlaces& places, const std::byte* base, const BlockCells& cells, int block) {
  constexpr std::int64_t kWord = sizeof(std::uint32_t);
  const auto reads = [&](const std::byte* word) {
    bool any = false;
    cells.each_in(word, kWord, [&](const std::optional<BlockCells::Cell>& cell) {
      any = any || (cell && cells.reads(block, *cell));
      return !any;
    });
    return any;
  };
  for (RowPlaces& lane : places) {
    for (std::int32_t& at : lane.at) {
      if (at != kNowhere && !reads(base + at * kWord)) at = kOthers;
    }
  }
}

// The places of a row, from the first row's base on. False if one is too far away.
bool shift(LanePlaces& places, Listed what, std::int64_t src, std::int64_t dst) {
  for (RowPlaces& lane : places) {
    for (std::size_t k = 0; k < 4; ++k) {
      if (lane.at[k] == kNowhere) continue;
      const bool of_source = what == Listed::source || (what == Listed::both && k % 2 == 0);
      const std::int64_t place = lane.at[k] + (of_source ? src : dst);
      if (place <= kOthers || place > std::numeric_limits<std::int32_t>::max()) return false;
      lane.at[k] = static_cast<std::int32_t>(place);
    }
  }
  return true;
}

// A bundle's move and the places of its rows, added to those of the part. False if there is no place for one.
bool add(const Bundle& bundle, std::size_t rows, const BlockCells* cells, int block, DealtMoves& made) {
  ListedMove move;
  if (!bundle.empty()) {
    const Job& first = bundle.front().move->job;
    move.kind = kind_of(first);
    move.src = first.src;
    move.dst = first.dst;
    move.command = first.command;
    move.log_unit = first.log_unit;
    move.rows = static_cast<std::int8_t>(bundle.size());
    if (first.ll_side != 0)
      (move.kind == MoveKind::fill ? move.dst : move.src).base += bundle.front().row * kLLLineBytes;
  }
  const Listed what = listed_by(move.kind);
  for (std::size_t n = 0; n < rows; ++n) {
    LanePlaces all = no_places();
    if (n < bundle.size()) {
      const PlanRow& row = bundle[n];
      const Job& job = row.move->job;
      const auto found =
          places_of(what, job.dims, static_cast<std::size_t>(job.ndims), row.move->lists, row.begin, row.end);
      if (!found) return false;
      all = *found;
      if (!shift(all, what, between(move.src.base, job.src.base) / unit_of(job),
                 between(move.dst.base, job.dst.base) / unit_of(job)))
        return false;
      if (move.kind != MoveKind::copy) {
        const bool fills = move.kind == MoveKind::fill;
        const std::byte* const line = (fills ? job.dst : job.src).base + row.row * kLLLineBytes;
        move.lines[n] = static_cast<std::int32_t>(between((fills ? move.dst : move.src).base, line));
      }
      if (cells != nullptr && move.kind == MoveKind::unpack) keep_own(all, move.dst.base, *cells, block);
    }
    made.places.insert(made.places.end(), all.begin(), all.end());
  }
  made.moves.push_back(move);
  return true;
}

// `cells`: of a barrier-free group.
std::optional<DealtMoves> list(const DealtBundles& dealt, int warps, const BlockCells* cells = nullptr) {
  DealtMoves made;
  made.turns = dealt.turns;
  made.blocks = dealt.blocks;
  std::size_t rows = 1;
  std::size_t listed = 0;  // fillers are not read
  for (const Bundle& bundle : dealt.bundles) {
    rows = std::max(rows, bundle.size());
    listed += bundle.size();
  }
  if (listed * sizeof(LanePlaces) > kMostBytes) return std::nullopt;
  made.rows = static_cast<int>(rows);
  made.moves.reserve(dealt.bundles.size());
  made.places.reserve(dealt.bundles.size() * rows * kLanes);
  const auto turns = static_cast<std::size_t>(dealt.turns);
  for (std::size_t n = 0; n < dealt.bundles.size(); ++n) {
    const auto block = static_cast<int>(n / (static_cast<std::size_t>(warps) * turns));
    if (!add(dealt.bundles[n], rows, cells, block, made)) return std::nullopt;
    if ((n + 1) % turns != 0)  // the warp may have another
      made.moves[n].next_rows = static_cast<std::int8_t>(dealt.bundles[n + 1].size());
  }
  for (int warp = 0; made.blocks == 0 && warp < warps; ++warp)  // they load a move before they know that they have none
    (void)add({}, rows, nullptr, 0, made);
  return made;
}

std::string too_long() {
  return fmt::format("the list of what they move would take more than {} bytes", kMostBytes);
}

}  // namespace

std::optional<ListedParts> listed_of(const GpuProgram& program, int blocks, int warps) {
  const auto moves = moves_of(program, listed_units(Listed::both));
  if (!moves) return std::nullopt;
  ListedParts all;
  for (std::size_t part = 0; part < all.size(); ++part) {
    const auto dealt = deal_out((*moves)[part], blocks, warps, kMoveRows, joins);
    if (!dealt) return std::nullopt;
    auto listed = list(*dealt, warps);
    if (!listed) return std::nullopt;
    all[part] = std::move(*listed);
  }
  return all;
}

std::variant<ListedByCells, std::string> listed_by_cells(const Plan& plan, const GpuProgram& program,
                                                         const BlockCells& cells, int warps) {
  const auto moves = moves_of(program, listed_units(Listed::both));
  if (!moves) return "the plan waits, signals or combines: only what moves data in LL lines or within the rank can";
  std::size_t rows = 0;
  for (const auto& kind : (*moves)[kRunPart]) rows += rows_of(kind).size();
  if (rows * sizeof(LanePlaces) > kMostBytes) return too_long();
  auto dealt = deal_by_cells(plan, *moves, cells, warps, kMoveRows, joins);
  if (auto* const why = std::get_if<std::string>(&dealt)) return std::move(*why);
  auto& by_cells = std::get<DealtByCells>(dealt);
  ListedByCells all;
  all.lines = std::move(by_cells.lines);
  for (std::size_t part = 0; part < all.parts.size(); ++part) {
    auto listed = list(by_cells.parts[part], warps, &cells);
    if (!listed) return too_long();
    all.parts[part] = std::move(*listed);
  }
  return all;
}

}  // namespace tasuki
