// The kernel that runs an epoch in rows (rows.hpp). A warp has one row and waits for no other warp. Only for stream.cu.
//
// The code is short on purpose: a launch finds little of it in the instruction caches. So there is a kernel for each
// common adder, and one without.
#pragma once

#include <type_traits>

#include "engines/gpu/launch.cuh"
#include "engines/gpu/rows.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/kernel/impl/interpret.cuh"
#include "tasuki/kernel/impl/lines.cuh"
#include "tasuki/kernel/impl/reduce.cuh"

namespace tasuki {
namespace {

struct RowLaunch : Counting {
  const Row* rows;
  const RowPlaces* places;
  const RowOperand* operands;
  const RowSignal* signals;
  const std::int32_t* given;  // RowProgram::ends
  std::uint32_t given_count;
  DType type;
  ReduceOp op;
};

struct NoAdder {};

// A line of a row, as one lane sees it.
struct RowLine {
  RowPlaces at;
  std::int64_t piece;  // offset of the lane's piece
  __device__ bool has() const { return at.at[0] != kNowhere; }
};

// Lines that a warp moves at once, where it has several: as many as the registers hold. What is copied within the GPU's
// memory comes the sooner the more is on its way: a GiB took an H200 777 us with one line at a time.
constexpr int kLinesAtOnce = 4;
constexpr int kLinesCopied = 8;
template <class Add>
constexpr int kLinesOfMany = std::is_same_v<Add, AnyAdder> ? 1 : 2;  // of one with more operands

// By a whole warp: loads the pieces of its lines again and again until all have come: all that are missing at once, for
// one after the other each would cost a latency of its own. False, to all lanes, if one has not come.
template <int Lines>
__device__ bool await_pieces(uint4 (&piece)[Lines], const std::byte* from, const RowLine (&line)[Lines],
                             std::uint32_t flag, Deadline& deadline, std::uint64_t epoch) {
  const auto missing = [&](int j) { return line[j].has() && !came(piece[j], flag); };
  const auto any = [&] {
    bool one = false;
#pragma unroll
    for (int j = 0; j < Lines; ++j) one = one || missing(j);
    return one;
  };
  bool given_up = false;
  while (!given_up && any()) {
    given_up = !deadline.more((epoch - 1) * kShares, epoch * kShares);
#pragma unroll
    for (int j = 0; j < Lines; ++j) {
      if (missing(j)) piece[j] = load_piece(from + line[j].piece);
    }
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

template <int Lines>
__device__ void load_lines(const RowLine (&line)[Lines], const std::byte* src,
                           std::uint32_t (&word)[Lines][kLineParts]) {
#pragma unroll
  for (int j = 0; j < Lines; ++j) load_words(src, line[j].at, word[j]);
}

template <int Lines>
__device__ void store_pieces(const RowLine (&line)[Lines], const std::uint32_t (&word)[Lines][kLineParts],
                             std::byte* dst, std::uint64_t epoch) {
#pragma unroll
  for (int j = 0; j < Lines; ++j) {
    const uint4 piece = piece_of(word[j], static_cast<std::uint32_t>(epoch));
    if (line[j].has()) store_piece(dst + line[j].piece, piece);
  }
}

// Where the answer to a row comes, and the memory into which it is unpacked.
__device__ const std::byte* answer(const RowLaunch& l, const Row& row, std::uint64_t epoch) {
  return base_of(l.selection, l.operands[row.first_operand].place, epoch);
}
__device__ std::byte* taken(const RowLaunch& l, const Row& row, std::uint64_t epoch) {
  return base_of(l.selection, l.operands[row.first_operand + 1].place, epoch);
}

// Where a row is forwarded to: the k-th place.
__device__ std::byte* forward_to(const RowLaunch& l, const Row& row, int k, std::uint64_t epoch) {
  return base_of(l.selection, l.operands[row.first_operand + row.operands + k].place, epoch);
}

// What a warp has loaded of its lines before it combines them.
template <int Operands, int Lines>
struct Loaded {
  std::uint32_t word[Operands][Lines][kLineParts];
};

// All operands are on their way before any is combined.
template <int Operands, int Lines>
__device__ void load_operands(const RowLaunch& l, const Row& row, const RowLine (&line)[Lines], std::uint64_t epoch,
                              Loaded<Operands, Lines>& to) {
  const RowOperand* operands = l.operands + row.first_operand;
#pragma unroll
  for (int k = 0; k < Operands; ++k) {
    if (k >= row.operands) break;
    const std::byte* const from = base_of(l.selection, operands[k].place, epoch);
    const bool ll = operands[k].ll != 0;
#pragma unroll
    for (int j = 0; j < Lines; ++j) {
      if (ll) {
        const uint4 piece = load_piece(from + line[j].piece);
        to.word[k][j][0] = piece.x;
        to.word[k][j][1] = piece.y;
        to.word[k][j][2] = piece.z;
        to.word[k][j][3] = piece.w;
      } else {
        load_words(from, line[j].at, to.word[k][j]);
      }
    }
  }
}

// False, to all lanes, if an operand does not come.
template <class Add, bool kOn, int Operands, int Lines>
__device__ bool combine_loaded(const RowLaunch& l, const Row& row, const RowLine (&line)[Lines], std::byte* dst,
                               std::uint64_t epoch, const Loaded<Operands, Lines>& loaded) {
  const auto flag = static_cast<std::uint32_t>(epoch);
  const RowOperand* operands = l.operands + row.first_operand;
  std::uint32_t here[Lines][kLineParts] = {};
#pragma unroll
  for (int j = 0; j < Lines; ++j) {
    if (row.begins == 0) load_words(dst, line[j].at, here[j]);
  }
  const Add add{l.type, l.op};
  Deadline deadline(l, row.command, epoch);
#pragma unroll
  for (int k = 0; k < Operands; ++k) {
    if (k >= row.operands) break;
    const auto& word = loaded.word[k];
    const bool ll = operands[k].ll != 0;
    std::uint32_t there[Lines][kLineParts];
    uint4 piece[Lines];
#pragma unroll
    for (int j = 0; j < Lines; ++j) piece[j] = make_uint4(word[j][0], word[j][1], word[j][2], word[j][3]);
    if (ll && !await_pieces(piece, base_of(l.selection, operands[k].place, epoch), line, flag, deadline, epoch))
      return false;
#pragma unroll
    for (int j = 0; j < Lines; ++j) {
      if (ll) {
        words_of(piece[j], there[j]);
      } else {
#pragma unroll
        for (int p = 0; p < kLineParts; ++p) there[j][p] = word[j][p];
      }
    }
    if (k == 0 && row.begins != 0) {
#pragma unroll
      for (int j = 0; j < Lines; ++j) {
#pragma unroll
        for (int p = 0; p < kLineParts; ++p) here[j][p] = there[j][p];
      }
    } else {
      combine_words<Lines>(add, Lines, here, there);
    }
  }
  if constexpr (kOn) {
#pragma unroll 1
    for (int k = 0; k < row.sends; ++k) store_pieces(line, here, forward_to(l, row, k, epoch), epoch);
  }
#pragma unroll
  for (int j = 0; j < Lines; ++j) store_words(dst, line[j].at, here[j]);
  return true;
}

// Whether the row may fill its lines now: at once, or when it has had the permission for which it waits.
template <bool kOn>
__device__ bool may_fill(const RowLaunch& l, const Row& row, std::uint64_t epoch) {
  if (row.signal.counter == nullptr) return true;
  if (!await_signal(l, row.signal, epoch)) return false;
  if constexpr (kOn) {
#pragma unroll 1
    for (int i = 0; i < row.more; ++i) {
      if (!await_signal(l, l.signals[row.first_signal + i], epoch)) return false;
    }
  }
  return true;
}

// Takes lines of which the pieces have been loaded once.
template <bool kOn, int Lines>
__device__ bool unpack_pieces(const RowLaunch& l, const Row& row, const RowLine (&line)[Lines], uint4 (&piece)[Lines],
                              const std::byte* src, std::byte* dst, std::uint64_t epoch) {
  const auto flag = static_cast<std::uint32_t>(epoch);
  Deadline deadline(l, row.command, epoch);
  if (!await_pieces(piece, src, line, flag, deadline, epoch)) return false;
  if constexpr (kOn) {
#pragma unroll 1
    for (int k = 0; k < row.sends; ++k) {  // the flag is the same on every rank
      std::byte* const to = forward_to(l, row, k, epoch);
#pragma unroll
      for (int j = 0; j < Lines; ++j) {
        if (line[j].has()) store_piece(to + line[j].piece, piece[j]);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < Lines; ++j) {
    std::uint32_t word[kLineParts];
    words_of(piece[j], word);
    store_words(dst, line[j].at, word);
  }
  return true;
}

template <bool kOn, int Lines>
__device__ bool unpack_lines(const RowLaunch& l, const Row& row, const RowLine (&line)[Lines], const std::byte* src,
                             std::byte* dst, std::uint64_t epoch) {
  uint4 piece[Lines];
#pragma unroll
  for (int j = 0; j < Lines; ++j) piece[j] = load_piece(src + line[j].piece);
  return unpack_pieces<kOn>(l, row, line, piece, src, dst, epoch);
}

// A row of one line whose places are in the table.
template <class Add, bool kOn>
__device__ void move_line(const RowLaunch& l, const Row& row, const RowPlaces& at, std::uint64_t epoch) {
  std::byte* const dst = base_of(l.selection, row.dst, epoch);
  const RowLine line[1] = {{at, static_cast<std::int64_t>(row.line) * kLLLineBytes + lane() * 16}};
  if (kOn && row.sends != 0 && !may_fill<kOn>(l, row, epoch)) return;
  if (row.kind == RowKind::combine) {
    if constexpr (!std::is_same_v<Add, NoAdder>) {
      Loaded<kRowOperands, 1> loaded;
      load_operands(l, row, line, epoch, loaded);
      combine_loaded<Add, kOn>(l, row, line, dst, epoch, loaded);
    }
    return;
  }
  const std::byte* const src = base_of(l.selection, row.src, epoch);
  if (row.kind == RowKind::fill || (kOn && row.kind == RowKind::answer)) {
    std::uint32_t word[1][kLineParts];
    load_lines(line, src, word);
    if (!may_fill<kOn>(l, row, epoch)) return;
    store_pieces(line, word, dst, epoch);
    if constexpr (kOn) {
      if (row.kind == RowKind::answer)
        unpack_lines<kOn>(l, row, line, answer(l, row, epoch), taken(l, row, epoch), epoch);
    }
  } else if (row.kind == RowKind::unpack) {
    unpack_lines<kOn>(l, row, line, src, dst, epoch);
  } else {
    const RowPlaces one[1] = {at};
    copy_rows(row.log_unit, src, dst, one, 1);
  }
}

// The lines of a row from number `first` on.
template <int Lines>
__device__ void find_lines(const Row& row, std::uint32_t first, RowLine (&line)[Lines]) {
#pragma unroll
  for (int j = 0; j < Lines; ++j) {
    const std::uint32_t number = row.line + (first + j) * row.step;
    const bool is = first + j < row.lines;  // if not, its pieces are those of the first, which nobody waits for
    line[j].at = contiguous_places(row.kind, number, is ? row.units : 0, lane());
    line[j].piece = static_cast<std::int64_t>(is ? number : row.line) * kLLLineBytes + lane() * 16;
  }
}

// The row's lines, some at once. `move` says whether to continue.
template <int Lines, class Move>
__device__ void each_lines(const Row& row, const Move& move) {
#pragma unroll 1
  for (std::uint32_t i = 0; i < row.lines; i += Lines) {
    RowLine line[Lines];
    find_lines(row, i, line);
    if (!move(line)) return;
  }
}

// An SM carries out loads and stores in order, and stores to another GPU keep it waiting for the wire. So the next
// lines are loaded before these are stored.
template <bool kOn>
__device__ void fill_in_turn(const RowLaunch& l, const Row& row, const std::byte* src, std::byte* dst,
                             std::uint64_t epoch) {
  RowLine line[kLinesAtOnce];
  std::uint32_t word[kLinesAtOnce][kLineParts];
  find_lines(row, 0, line);
  load_lines(line, src, word);
  if (!may_fill<kOn>(l, row, epoch)) return;
#pragma unroll 1
  for (std::uint32_t i = kLinesAtOnce; i < row.lines; i += kLinesAtOnce) {
    RowLine next[kLinesAtOnce];
    std::uint32_t next_word[kLinesAtOnce][kLineParts];
    find_lines(row, i, next);
    load_lines(next, src, next_word);
    store_pieces(line, word, dst, epoch);
#pragma unroll
    for (int j = 0; j < kLinesAtOnce; ++j) {
      line[j] = next[j];
#pragma unroll
      for (int k = 0; k < kLineParts; ++k) word[j][k] = next_word[j][k];
    }
  }
  store_pieces(line, word, dst, epoch);
}

// All lines of a row that combines. An SM that forwards a line waits for the wire, so then it loads the next lines
// before it stores these. That takes 200 registers of a thread. Where nothing is forwarded it gains a
// hundredth, and the registers are left to kernels beside this one.
template <class Add, bool kOn, int Operands, int Lines>
__device__ void combine_in_turn(const RowLaunch& l, const Row& row, std::byte* dst, std::uint64_t epoch) {
  Loaded<Operands, Lines> loaded;
  RowLine line[Lines];
  if constexpr (kOn) {
    find_lines(row, 0, line);
    load_operands(l, row, line, epoch, loaded);
  }
#pragma unroll 1
  for (std::uint32_t i = 0; i < row.lines; i += Lines) {
    if constexpr (kOn) {
      Loaded<Operands, Lines> next;
      find_lines(row, i + Lines < row.lines ? i + Lines : i, line);
      load_operands(l, row, line, epoch, next);
      find_lines(row, i, line);
      if (!combine_loaded<Add, kOn>(l, row, line, dst, epoch, loaded)) return;
      loaded = next;
    } else {
      find_lines(row, i, line);
      load_operands(l, row, line, epoch, loaded);
      if (!combine_loaded<Add, kOn>(l, row, line, dst, epoch, loaded)) return;
    }
  }
}

// Fills lines as `fill_in_turn` does, and unpacks between them those of the answer that have come: line by line, so
// that none is overwritten before it is sent. Only when all are filled it waits for the others: so no two ranks wait
// for each other.
__device__ void fill_and_unpack(const RowLaunch& l, const Row& row, const std::byte* src, std::byte* dst,
                                std::uint64_t epoch) {
  const std::byte* const from = answer(l, row, epoch);
  std::byte* const to = taken(l, row, epoch);
  RowLine line[kLinesAtOnce];
  std::uint32_t word[kLinesAtOnce][kLineParts];
  uint4 piece[kLinesAtOnce];
  const auto look = [&] {
#pragma unroll
    for (int j = 0; j < kLinesAtOnce; ++j) piece[j] = load_piece(from + line[j].piece);
  };
  const auto have_come = [&] {
    bool all = true;
#pragma unroll
    for (int j = 0; j < kLinesAtOnce; ++j)
      all = all && (!line[j].has() || came(piece[j], static_cast<std::uint32_t>(epoch)));
    return __all_sync(~0u, all) != 0;
  };
  find_lines(row, 0, line);
  load_lines(line, src, word);
  if (!may_fill<true>(l, row, epoch)) return;
  std::uint32_t next_unpacked = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < row.lines; i += kLinesAtOnce) {
    find_lines(row, next_unpacked, line);
    look();
    std::uint32_t next[kLinesAtOnce][kLineParts];
    find_lines(row, i + kLinesAtOnce < row.lines ? i + kLinesAtOnce : i, line);
    load_lines(line, src, next);
    find_lines(row, i, line);
    store_pieces(line, word, dst, epoch);
    find_lines(row, next_unpacked, line);
    if (have_come()) {
      if (!unpack_pieces<true>(l, row, line, piece, from, to, epoch)) return;
      next_unpacked += kLinesAtOnce;
    }
#pragma unroll
    for (int j = 0; j < kLinesAtOnce; ++j) {
#pragma unroll
      for (int k = 0; k < kLineParts; ++k) word[j][k] = next[j][k];
    }
  }
#pragma unroll 1
  for (; next_unpacked < row.lines; next_unpacked += kLinesAtOnce) {
    find_lines(row, next_unpacked, line);
    if (!unpack_lines<true>(l, row, line, from, to, epoch)) return;
  }
}

template <class Add, bool kOn>
__device__ void move_lines(const RowLaunch& l, const Row& row, std::uint64_t epoch) {
  std::byte* const dst = base_of(l.selection, row.dst, epoch);
  if (kOn && row.sends != 0 && !may_fill<kOn>(l, row, epoch)) return;
  if (row.kind == RowKind::combine) {
    if constexpr (!std::is_same_v<Add, NoAdder>) {
      constexpr int kMany = kLinesOfMany<Add>;
      constexpr int kFew = kMany > 1 ? kLinesAtOnce : 1;
      if (row.operands <= kFewOperands) {
        combine_in_turn<Add, kOn, kFewOperands, kFew>(l, row, dst, epoch);
      } else {
        combine_in_turn<Add, kOn, kRowOperands, kMany>(l, row, dst, epoch);
      }
    }
    return;
  }
  const std::byte* const src = base_of(l.selection, row.src, epoch);
  if (row.kind == RowKind::copy) {
    return each_lines<kLinesCopied>(row, [&](const RowLine(&line)[kLinesCopied]) {
      RowPlaces at[kLinesCopied];
#pragma unroll
      for (int j = 0; j < kLinesCopied; ++j) at[j] = line[j].at;
      copy_rows(row.log_unit, src, dst, at, kLinesCopied);
      return true;
    });
  }
  if (row.kind == RowKind::fill) return fill_in_turn<kOn>(l, row, src, dst, epoch);
  if constexpr (kOn) {
    if (row.kind == RowKind::answer) return fill_and_unpack(l, row, src, dst, epoch);
  }
  each_lines<kLinesAtOnce>(
      row, [&](const RowLine(&line)[kLinesAtOnce]) { return unpack_lines<kOn>(l, row, line, src, dst, epoch); });
}

// `kOn`: rows that forward, unpack answers or wait for several signals. Others have a kernel without all that.
template <class Add, bool kTable, bool kOn>
__global__ void __launch_bounds__(kGpuThreads, kTable || !kOn ? 2 : 1) run_rows(const __grid_constant__ RowLaunch l) {
  __shared__ std::uint64_t shared_epoch;
  if (threadIdx.x == 0) {
    std::uint64_t by_kernels = 0;
    shared_epoch = l.epoch != 0 ? l.epoch : own_epoch(l, by_kernels);
  }
  const std::uint32_t number = blockIdx.x * kGpuWarps + threadIdx.x / 32;
  const Row row = l.rows[number];
  RowPlaces at{};
  if constexpr (kTable) at = l.places[number * kLanes + lane()];
  const bool dead = failed(l);  // then nothing is touched any more, and the host gets to know
  // As in launch.cuh: what comes before was written when the operation was made, or by its own earlier kernels.
  wait_for_stream();
  if (!device::this_block().all(!dead)) return;
  const std::uint64_t epoch = shared_epoch;
  if constexpr (kOn) {
    if (blockIdx.x == 0) {
      for (std::uint32_t i = threadIdx.x; i < l.given_count; i += kGpuThreads)
        atomicAdd(reinterpret_cast<unsigned long long*>(&l.ends[l.given[i]]), static_cast<unsigned long long>(kShares));
    }
  }
  switch (row.kind) {
    case RowKind::none:
      return;
    case RowKind::signal: {
      if (lane() != 0) return;
      const std::uint64_t target = target_of(row.signal, epoch);
      row.signal.alone != 0 ? store_relaxed(row.signal.counter, target) : store_release(row.signal.counter, target);
      return;
    }
    case RowKind::await:
      await_signal(l, row.signal, epoch);
      return;
    default:
      if constexpr (kTable) {
        move_line<Add, kOn>(l, row, at, epoch);
      } else {
        move_lines<Add, kOn>(l, row, epoch);
      }
  }
}

template <class Add>
auto row_kernel_of(const RowProgram& program) -> void (*)(RowLaunch) {
  if (program.forwards) return program.places.empty() ? run_rows<Add, false, true> : run_rows<Add, true, true>;
  return program.places.empty() ? run_rows<Add, false, false> : run_rows<Add, true, false>;
}

inline void (*row_kernel(const RowProgram& program))(RowLaunch) {
  using element::Sum;
  if (!program.reduces) return row_kernel_of<NoAdder>(program);
  switch (adder_of(program.type, program.op)) {
    case AdderKind::f32:
      return row_kernel_of<Adder<float, Sum>>(program);
    case AdderKind::f64:
      return row_kernel_of<Adder<double, Sum>>(program);
    case AdderKind::u32:
      return row_kernel_of<Adder<std::uint32_t, Sum>>(program);
    case AdderKind::u64:
      return row_kernel_of<Adder<std::uint64_t, Sum>>(program);
    default:
      return row_kernel_of<AnyAdder>(program);
  }
}

}  // namespace
}  // namespace tasuki
