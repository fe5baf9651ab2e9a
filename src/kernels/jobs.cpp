// Making and dealing out jobs: see jobs.hpp.
#include "kernels/jobs.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tasuki {
namespace {

constexpr std::int64_t kMostJobs = 1 << 16;  // of a part; they take 128 bytes each

template <class T>
T at(const GpuProgram& program, const GpuTask& task, std::int32_t list, std::int32_t index) {
  T value;
  std::memcpy(&value,
              program.bytes.data() + task.offset + static_cast<std::size_t>(list) +
                  static_cast<std::size_t>(index) * sizeof value,
              sizeof value);
  return value;
}

bool only_moves(const GpuStep& step) {
  return (step.verb == Verb::copy || step.verb == Verb::put) && step.deps == 0 && step.follows == 0 &&
         step.awaited == 0 && step.joined == 0;
}

// Adds the moves of a task. False if it has others.
bool add_moves(const GpuProgram& program, const GpuTask& task, std::int64_t copied, PlanMoves& moves) {
  const auto header = at<GpuTaskHeader>(program, task, 0, 0);
  const std::int32_t steps = header.lanes == 0 ? 0 : at<std::int32_t>(program, task, header.ends, header.lanes - 1);
  for (std::int32_t s = 0; s < steps; ++s) {
    const auto step = at<GpuStep>(program, task, header.steps, s);
    if (!only_moves(step)) return false;
    for (std::int32_t c = step.first_copy; c < step.first_copy + step.copies; ++c) {
      const auto copy = at<GpuCopy>(program, task, header.copies, c);
      if (copy.dims > kJobDims || copy.units == 0) return false;
      PlanMove move;
      Job& job = move.job;
      job.src = step.src;
      job.dst = step.dst;
      job.src.base += copy.src_offset;
      job.dst.base += copy.dst_offset;
      job.units = copy.units;
      job.row_units = step.ll_side == 0 && copied != 0 ? static_cast<std::uint16_t>(copied) : copy.row_units;
      job.log_unit = copy.log_unit;
      job.ll_side = step.ll_side;
      job.command = step.command;
      job.ndims = copy.dims;
      for (int d = 0; d < copy.dims; ++d) {
        const auto dim = at<GpuDim>(program, task, header.dims, copy.first_dim + d);
        job.dims[d] = {dim.count, dim.magic, dim.shift, dim.src_stride, dim.dst_stride};
      }
      move.lists =
          lists_of(copy, [&](std::int32_t n) { return at<GpuDim>(program, task, header.dims, copy.first_dim + n); });
      move.rows = (std::int64_t{job.units} + job.row_units - 1) / job.row_units;
      const JobKind kind = step.ll_side == kLLTarget ? kSent : step.ll_side == kLLSource ? kUnpacked : kLocal;
      move.in_ring = kind == kSent ? copy.dst_offset : copy.src_offset;
      moves[kind].push_back(move);
    }
  }
  return true;
}

std::int64_t count_of(const std::vector<PlanMove>& moves) {
  std::int64_t rows = 0;
  for (const PlanMove& move : moves) rows += move.rows;
  return rows;
}

// Whether the row comes right after the bundle's last one, in the same strided copy.
bool follows(const Bundle& bundle, const PlanRow& row) {
  return row.move == bundle.back().move && row.row == bundle.back().row + 1;
}

}  // namespace

std::vector<PlanRow> rows_of(const std::vector<PlanMove>& moves) {
  std::vector<PlanRow> rows;
  for (const PlanMove& move : moves) {
    const std::int64_t units = move.job.row_units;
    for (std::int64_t row = 0; row < move.rows; ++row)
      rows.push_back({&move, row, row * units, std::min<std::int64_t>((row + 1) * units, move.job.units)});
  }
  return rows;
}

std::vector<Bundle> bundles_of(const std::vector<PlanRow>& rows, std::int64_t warps, std::int64_t most, Joins joins) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (count == 0) return {};  // there may be no warps either
  const std::int64_t rounds = (count + most * warps - 1) / (most * warps);
  const auto each = static_cast<std::size_t>((count + rounds * warps - 1) / (rounds * warps));
  std::vector<Bundle> bundles;
  for (const PlanRow& row : rows) {
    if (!bundles.empty() && bundles.back().size() < each && joins(bundles.back(), row)) {
      bundles.back().push_back(row);
    } else {
      bundles.push_back({row});
    }
  }
  return bundles;
}

std::optional<std::array<PlanMoves, kPartsOfHandle>> moves_of(const GpuProgram& program, std::int64_t copied) {
  std::array<PlanMoves, kPartsOfHandle> moves;
  for (const int part : {kStartPart, kWaitPart}) {
    for (const GpuTask& task : program.tasks[kPartsLowered[part]]) {
      for (const int to : {part, static_cast<int>(kRunPart)})
        if (!add_moves(program, task, copied, moves[static_cast<std::size_t>(to)])) return std::nullopt;
    }
  }
  return moves;
}

DealtBundles dealt_to(std::vector<std::vector<Bundle>> warps, int blocks) {
  DealtBundles dealt;
  dealt.blocks = blocks;
  for (const auto& mine : warps) dealt.turns = std::max(dealt.turns, static_cast<int>(mine.size()));
  for (auto& mine : warps) {
    mine.resize(static_cast<std::size_t>(dealt.turns));
    dealt.bundles.insert(dealt.bundles.end(), mine.begin(), mine.end());
  }
  return dealt;
}

// Neighbouring bundles go to one block, so that a multiprocessor touches few pages of memory; each block has as many of
// a kind as the others, or one less. Its warps take them in turns.
std::optional<DealtBundles> deal_out(const PlanMoves& moves, int blocks, int warps, std::int64_t most_rows,
                                     Joins joins) {
  std::int64_t most = 0;
  std::int64_t all = 0;
  for (const auto& kind : moves) {
    most = std::max(most, count_of(kind));
    all += count_of(kind);
  }
  if (all > kMostJobs) return std::nullopt;
  const auto used = static_cast<std::size_t>(std::min<std::int64_t>(blocks, (most + warps - 1) / warps));
  const auto of_warps = used * static_cast<std::size_t>(warps);
  std::vector<std::vector<Bundle>> by_warp(of_warps);
  std::vector<std::size_t> next(used);  // warp of the block
  for (const auto& kind : moves) {
    const std::vector<Bundle> bundles =
        bundles_of(rows_of(kind), static_cast<std::int64_t>(of_warps), most_rows, joins);
    for (std::size_t n = 0; n < bundles.size(); ++n) {
      const std::size_t block = n * used / bundles.size();
      by_warp[block * static_cast<std::size_t>(warps) + next[block]].push_back(bundles[n]);
      next[block] = (next[block] + 1) % static_cast<std::size_t>(warps);
    }
  }
  return dealt_to(std::move(by_warp), static_cast<int>(used));
}

std::optional<std::array<DealtJobs, kPartsOfHandle>> jobs_of(const GpuProgram& program, int blocks, int warps) {
  const auto moves = moves_of(program, 0);
  if (!moves) return std::nullopt;
  std::array<DealtJobs, kPartsOfHandle> all;
  for (std::size_t part = 0; part < all.size(); ++part) {
    for (const auto& kind : (*moves)[part])
      if (!std::ranges::all_of(kind, [](const PlanMove& move) { return move.lists.empty(); })) return std::nullopt;
    const auto dealt = deal_out((*moves)[part], blocks, warps, kTileRows, follows);
    if (!dealt) return std::nullopt;
    DealtJobs& jobs = all[part];
    jobs.turns = dealt->turns;
    jobs.blocks = dealt->blocks;
    for (const Bundle& bundle : dealt->bundles) {
      Job& job = jobs.jobs.emplace_back();
      if (bundle.empty()) continue;
      job = bundle.front().move->job;
      job.first = static_cast<std::uint32_t>(bundle.front().row);
      job.rows = static_cast<std::uint8_t>(bundle.size());
    }
  }
  return all;
}

}  // namespace tasuki
