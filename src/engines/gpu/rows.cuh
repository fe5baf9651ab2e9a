// The kernel that runs an epoch in rows (rows.hpp). A warp has one row and meets no other. Only for stream.cu.
//
// The code is short on purpose: a launch finds little of it in the instruction caches. So there is a kernel for each
// common adder, and one without.
#pragma once

#include <type_traits>

#include "engines/gpu/launch.cuh"
#include "engines/gpu/rows.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/kernel/interpret.cuh"
#include "tasuki/kernel/lines.cuh"
#include "tasuki/kernel/reduce.cuh"

namespace tasuki {
namespace {

struct RowLaunch : Counting {
  const Row* rows;
  const RowPlaces* places;
  const RowOperand* operands;
  DType type;
  ReduceOp op;
};

struct NoAdder {};

// By a whole warp: loads a piece of a line again and again until it has come. False, to all lanes, if it has not.
__device__ bool await_piece(uint4& piece, const std::byte* from, bool has, std::uint32_t stamp, Patience& patience,
                            std::uint64_t epoch) {
  bool given_up = false;
  while (!given_up && has && !came(piece, stamp)) {
    given_up = !patience.more((epoch - 1) * kShares, epoch * kShares);
    piece = load_piece(from);
  }
  return __any_sync(~0u, given_up) == 0;
}

// By a whole warp: its first lane waits for a signal. False, to all lanes, if it does not come.
__device__ bool await_signal(const PlanRun& l, const RowSignal& signal, std::uint64_t epoch) {
  bool good = true;
  if (lane() == 0)
    good = Steadily().await(l, signal.counter, target_of(signal, epoch), signal.command, epoch) == Came::yes;
  __syncwarp();
  return __all_sync(~0u, good) != 0;
}

__device__ void load_words(const std::byte* from, const RowPlaces& at, std::uint32_t (&word)[kLineParts]) {
#pragma unroll
  for (int k = 0; k < kLineParts; ++k) {
    word[k] = 0;
    if (at.at[k] != kNowhere) word[k] = reinterpret_cast<const std::uint32_t*>(from)[at.at[k]];
  }
}

__device__ void store_words(std::byte* to, const RowPlaces& at, const std::uint32_t (&word)[kLineParts]) {
#pragma unroll
  for (int k = 0; k < kLineParts; ++k) {
    if (at.at[k] != kNowhere) reinterpret_cast<std::uint32_t*>(to)[at.at[k]] = word[k];
  }
}

template <class Unit>
__device__ void copy_units(const std::byte* src, std::byte* dst, const RowPlaces& at) {
  const auto* from = reinterpret_cast<const Unit*>(src);
  auto* to = reinterpret_cast<Unit*>(dst);
  const bool both = at.at[2] != kNowhere;  // the second never without the first
  if (at.at[0] == kNowhere) return;
  const Unit one = from[at.at[0]];
  const Unit two = from[both ? at.at[2] : at.at[0]];
  to[at.at[1]] = one;
  if (both) to[at.at[3]] = two;
}

// All operands are on their way before any is combined.
template <class Add>
__device__ void combine_row(const RowLaunch& l, const Row& row, const RowPlaces& at, std::byte* dst,
                            std::uint64_t epoch) {
  const auto stamp = static_cast<std::uint32_t>(epoch);
  const std::int64_t piece_at = static_cast<std::int64_t>(row.line) * kStampedLine + lane() * 16;
  const bool has = at.at[0] != kNowhere;
  const RowOperand* operands = l.operands + row.first_operand;
  const std::byte* from[kRowOperands];
  std::uint32_t word[kRowOperands][kLineParts];
  bool stamped[kRowOperands];
#pragma unroll
  for (int k = 0; k < kRowOperands; ++k) {
    if (k >= row.operands) break;
    from[k] = base_of(l.selection, operands[k].place, epoch);
    stamped[k] = operands[k].stamped != 0;
    if (stamped[k]) {
      from[k] += piece_at;
      const uint4 piece = load_piece(from[k]);
      word[k][0] = piece.x;
      word[k][1] = piece.y;
      word[k][2] = piece.z;
      word[k][3] = piece.w;
    } else {
      load_words(from[k], at, word[k]);
    }
  }
  std::uint32_t here[1][kLineParts] = {};
  if (row.begins == 0) load_words(dst, at, here[0]);
  const Add add{l.type, l.op};
  Patience patience(l, row.command, epoch);
#pragma unroll
  for (int k = 0; k < kRowOperands; ++k) {
    if (k >= row.operands) break;
    std::uint32_t there[1][kLineParts];
    if (stamped[k]) {
      uint4 piece = make_uint4(word[k][0], word[k][1], word[k][2], word[k][3]);
      if (!await_piece(piece, from[k], has, stamp, patience, epoch)) return;
      words_of(piece, there[0]);
    } else {
#pragma unroll
      for (int p = 0; p < kLineParts; ++p) there[0][p] = word[k][p];
    }
    if (k == 0 && row.begins != 0) {
#pragma unroll
      for (int p = 0; p < kLineParts; ++p) here[0][p] = there[0][p];
    } else {
      combine_words<1>(add, 1, here, there);
    }
  }
  store_words(dst, at, here[0]);
}

__device__ void move_row(const PlanRun& l, const Row& row, const RowPlaces& at, std::byte* dst, std::uint64_t epoch) {
  const std::byte* src = base_of(l.selection, row.src, epoch);
  const auto stamp = static_cast<std::uint32_t>(epoch);
  const std::int64_t piece_at = static_cast<std::int64_t>(row.line) * kStampedLine + lane() * 16;
  const bool has = at.at[0] != kNowhere;
  std::uint32_t word[kLineParts];
  if (row.kind == RowKind::fill) {
    load_words(src, at, word);
    if (row.signal.counter != nullptr && !await_signal(l, row.signal, epoch)) return;
    const uint4 piece = piece_of(word, stamp);
    if (has) store_piece(dst + piece_at, piece);
    return;
  }
  if (row.kind == RowKind::take) {
    uint4 piece = load_piece(src + piece_at);
    Patience patience(l, row.command, epoch);
    if (!await_piece(piece, src + piece_at, has, stamp, patience, epoch)) return;
    words_of(piece, word);
    store_words(dst, at, word);
    return;
  }
  switch (row.log_unit) {
    case 4:
      return copy_units<Unit16>(src, dst, at);
    case 3:
      return copy_units<Unit8>(src, dst, at);
    case 2:
      return copy_units<std::uint32_t>(src, dst, at);
    case 1:
      return copy_units<std::uint16_t>(src, dst, at);
    default:
      return copy_units<std::uint8_t>(src, dst, at);
  }
}

template <class Add>
__global__ void __launch_bounds__(kGpuThreads, 2) run_rows(const __grid_constant__ RowLaunch l) {
  __shared__ std::uint64_t shared_epoch;
  if (threadIdx.x == 0) {
    std::uint64_t by_kernels = 0;
    shared_epoch = l.epoch != 0 ? l.epoch : own_epoch(l, by_kernels);
  }
  const std::uint32_t number = blockIdx.x * kGpuWarps + threadIdx.x / 32;
  const Row row = l.rows[number];
  const RowPlaces at = l.places[number * kLanes + lane()];
  const bool dead = failed(l);  // then nothing is touched any more, and the host is told
  // As in launch.cuh: what comes before was written when the operation was made, or by its own earlier kernels.
  wait_for_stream();
  if (!device::this_block().all(!dead)) return;
  const std::uint64_t epoch = shared_epoch;
  switch (row.kind) {
    case RowKind::none:
      return;
    case RowKind::tell: {
      if (lane() != 0) return;
      const std::uint64_t target = target_of(row.signal, epoch);
      row.signal.alone != 0 ? store_relaxed(row.signal.counter, target) : store_release(row.signal.counter, target);
      return;
    }
    case RowKind::await:
      await_signal(l, row.signal, epoch);
      return;
    case RowKind::combine:
      if constexpr (!std::is_same_v<Add, NoAdder>)
        combine_row<Add>(l, row, at, base_of(l.selection, row.dst, epoch), epoch);
      return;
    default:
      move_row(l, row, at, base_of(l.selection, row.dst, epoch), epoch);
  }
}

inline void (*row_kernel(const RowProgram& program))(RowLaunch) {
  using element::Sum;
  if (!program.reduces) return run_rows<NoAdder>;
  switch (adder_of(program.type, program.op)) {
    case AdderKind::f32:
      return run_rows<Adder<float, Sum>>;
    case AdderKind::f64:
      return run_rows<Adder<double, Sum>>;
    case AdderKind::u32:
      return run_rows<Adder<std::uint32_t, Sum>>;
    case AdderKind::u64:
      return run_rows<Adder<std::uint64_t, Sum>>;
    default:
      return run_rows<AnyAdder>;
  }
}

}  // namespace
}  // namespace tasuki
