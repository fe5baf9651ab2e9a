// Listing what the warps of a group move: see listed.hpp.
#include "kernels/listed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engines/gpu/row_places.hpp"
#include "kernels/jobs.hpp"

namespace tasuki {
namespace {

// Of a part. Reading the list costs as much as reading the data: where there is much of it, computing is cheaper.
constexpr std::size_t kMostBytes = 1 << 20;
constexpr JobSize kSize{kMoveRows, listed_units(Listed::both)};

MoveKind kind_of(const Job& job) {
  if (job.rows == 0) return MoveKind::none;
  return job.stamped == kStampedTarget   ? MoveKind::fill
         : job.stamped == kStampedSource ? MoveKind::take
                                         : MoveKind::copy;
}

Listed listed_by(MoveKind kind) {
  return kind == MoveKind::fill ? Listed::source : kind == MoveKind::take ? Listed::destination : Listed::both;
}

// Leaves out of a line's places those of cells that a block does not read.
void keep_own(LanePlaces& places, const Job& job, const BlockCells& cells, int block) {
  for (RowPlaces& lane : places) {
    for (std::int32_t& at : lane.at) {
      if (at == kNowhere) continue;
      const auto cell = cells.find(job.dst.base + at * std::int64_t{sizeof(std::uint32_t)});
      if (!cell || !cells.reads(block, *cell)) at = kOthers;
    }
  }
}

// `cells`: of blocks that do not meet.
std::optional<DealtMoves> list(const DealtJobs& dealt, int warps, const BlockCells* cells = nullptr) {
  DealtMoves made;
  made.turns = dealt.turns;
  made.blocks = dealt.blocks;
  for (const Job& job : dealt.jobs) made.rows = std::max(made.rows, static_cast<int>(job.rows));
  const auto rows = static_cast<std::size_t>(made.rows);
  std::size_t listed = 0;  // fillers are not read
  for (const Job& job : dealt.jobs) listed += job.rows;
  if (listed * sizeof(LanePlaces) > kMostBytes) return std::nullopt;
  made.moves.reserve(dealt.jobs.size());
  made.places.reserve(dealt.jobs.size() * rows * kLanes);
  for (std::size_t n = 0; n < dealt.jobs.size(); ++n) {
    const Job& job = dealt.jobs[n];
    ListedMove move;
    move.kind = kind_of(job);
    move.src = job.src;
    move.dst = job.dst;
    move.command = job.command;
    move.log_unit = job.log_unit;
    move.rows = static_cast<std::int8_t>(job.rows);
    const std::int64_t lines_before = std::int64_t{job.first} * kStampedLine;
    if (move.kind == MoveKind::fill) move.dst.base += lines_before;
    if (move.kind == MoveKind::take) move.src.base += lines_before;
    made.moves.push_back(move);
    const Listed what = listed_by(move.kind);
    for (std::uint32_t row = 0; row < rows; ++row) {
      LanePlaces all = no_places();
      if (row < job.rows) {
        const auto found = places_of(what, job.dims, static_cast<std::size_t>(job.ndims),
                                     (job.first + row) * listed_units(what), job.units);
        if (!found) return std::nullopt;
        all = *found;
        const std::size_t of_block = static_cast<std::size_t>(warps) * static_cast<std::size_t>(dealt.turns);
        if (cells != nullptr && move.kind == MoveKind::take) keep_own(all, job, *cells, static_cast<int>(n / of_block));
      }
      made.places.insert(made.places.end(), all.begin(), all.end());
    }
  }
  if (made.moves.empty()) {  // warps load a move before they know that they have none
    made.moves.resize(static_cast<std::size_t>(warps));
    const LanePlaces none = no_places();
    for (int warp = 0; warp < warps; ++warp) made.places.insert(made.places.end(), none.begin(), none.end());
  }
  return made;
}

std::string too_long() {
  return fmt::format("the list of what they move would take more than {} bytes", kMostBytes);
}

}  // namespace

std::optional<ListedParts> listed_of(const GpuProgram& program, int blocks, int warps) {
  const auto jobs = jobs_of(program, blocks, warps, kSize);
  if (!jobs) return std::nullopt;
  ListedParts all;
  for (std::size_t part = 0; part < all.size(); ++part) {
    auto listed = list((*jobs)[part], warps);
    if (!listed) return std::nullopt;
    all[part] = std::move(*listed);
  }
  return all;
}

std::variant<ListedApart, std::string> listed_apart(const Plan& plan, const GpuProgram& program,
                                                    const BlockCells& cells, int warps) {
  const auto moves = moves_of(program, kSize);
  if (!moves)
    return "the plan waits, signals or combines: only what moves data in stamped lines or within the rank can";
  std::size_t rows = 0;
  for (const auto& kind : (*moves)[kRunPart]) rows += rows_of(kind).size();
  if (rows * sizeof(LanePlaces) > kMostBytes) return too_long();
  auto dealt = deal_apart(plan, *moves, cells, warps, kSize);
  if (auto* const why = std::get_if<std::string>(&dealt)) return std::move(*why);
  auto& jobs = std::get<ApartJobs>(dealt);
  ListedApart all;
  all.lines = std::move(jobs.lines);
  for (std::size_t part = 0; part < all.parts.size(); ++part) {
    auto listed = list(jobs.parts[part], warps, &cells);
    if (!listed) return too_long();
    all.parts[part] = std::move(*listed);
  }
  return all;
}

}  // namespace tasuki
