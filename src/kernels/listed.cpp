// Listing what the warps of a group move: see listed.hpp.
#include "kernels/listed.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engines/gpu/row_places.hpp"
#include "kernels/jobs.hpp"

namespace tasuki {
namespace {

// Of a part. Reading the list costs as much as reading the data: where there is much of it, computing is cheaper.
constexpr std::size_t kMostBytes = 1 << 20;

MoveKind kind_of(const Job& job) {
  if (job.rows == 0) return MoveKind::none;
  return job.stamped == kStampedTarget   ? MoveKind::fill
         : job.stamped == kStampedSource ? MoveKind::take
                                         : MoveKind::copy;
}

Listed listed_by(MoveKind kind) {
  return kind == MoveKind::fill ? Listed::source : kind == MoveKind::take ? Listed::destination : Listed::both;
}

std::optional<DealtMoves> list(const DealtJobs& dealt) {
  DealtMoves made;
  made.turns = dealt.turns;
  made.blocks = dealt.blocks;
  for (const Job& job : dealt.jobs) made.rows = std::max(made.rows, static_cast<int>(job.rows));
  const auto rows = static_cast<std::size_t>(made.rows);
  if (dealt.jobs.size() * rows * sizeof(LanePlaces) > kMostBytes) return std::nullopt;
  made.moves.reserve(dealt.jobs.size());
  made.places.reserve(dealt.jobs.size() * rows * kLanes);
  for (const Job& job : dealt.jobs) {
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
      }
      made.places.insert(made.places.end(), all.begin(), all.end());
    }
  }
  return made;
}

}  // namespace

std::optional<std::array<DealtMoves, kPartsOfHandle>> listed_of(const GpuProgram& program, int blocks, int warps) {
  const auto jobs = jobs_of(program, blocks, warps, {kMoveRows, listed_units(Listed::both)});
  if (!jobs) return std::nullopt;
  std::array<DealtMoves, kPartsOfHandle> all;
  for (std::size_t part = 0; part < all.size(); ++part) {
    auto listed = list((*jobs)[part]);
    if (!listed) return std::nullopt;
    all[part] = std::move(*listed);
  }
  return all;
}

}  // namespace tasuki
