// How a warp combines the operands of a step (program.cuh), tile by tile, into their destination: from packed memory,
// or from LL lines as they arrive. Type and operator are looked at once a tile: the common ones have code of their
// own, in which all operands of a tile are loaded before any is combined.
#pragma once

#include "tasuki/kernel/impl/places.cuh"
#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/reduce_ops.hpp"
#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/warp.cuh"
#if defined(TASUKI_LANES_ARE_THREADS)
#include "tasuki/kernel/impl/lines.cuh"
#endif

namespace tasuki::device::lowered {

/// Combines the elements of two units, in registers.
template <class Element, class Unit, class Combine>
TASUKI_WITHIN void combine_elements(Unit& here, const Unit& there, const Combine& combine) {
  constexpr int kElements = sizeof(Unit) / sizeof(Element);
  Element a[kElements];
  Element b[kElements];
  memcpy(a, &here, sizeof a);
  memcpy(b, &there, sizeof b);
  TASUKI_UNROLL
  for (int i = 0; i < kElements; ++i) a[i] = combine(a[i], b[i]);
  memcpy(&here, a, sizeof a);
}

// Function objects here, and not lambdas with `auto`: NVRTC before 13.2 takes such lambdas for functions of the host.

/// here[j] op there[j] for the first `count` units, by the operator and for the elements that it is called with.
template <class Element, class Unit>
struct CombineUnits {
  int count;
  Unit* here;
  const Unit* there;
  template <class Combine>
  TASUKI_WITHIN void operator()(const Combine combine) const {
    if constexpr (element::kApplies<Combine, Element>) {
      TASUKI_NO_UNROLL
      for (int j = 0; j < count; ++j) combine_elements<Element>(here[j], there[j], combine);
    }
  }
};
template <class Unit>
struct CombineByOperator {
  ReduceOp op;
  int count;
  Unit* here;
  const Unit* there;
  template <class Element>
  TASUKI_WITHIN void operator()(Element) const {
    element::with_operator(op, CombineUnits<Element, Unit>{count, here, there});
  }
};
struct NoteSize {
  std::uint32_t& size;
  template <class Element>
  TASUKI_WITHIN void operator()(Element) const {
    size = sizeof(Element);
  }
};

/// here[j] op there[j], for each of the elements of the first `count` units: of any type and operator. What is called
/// most often has an `Adder` of its own.
template <class Unit>
TASUKI_NOINLINE void combine_any(DType type, ReduceOp op, int count, Unit* here, const Unit* there) {
  element::with_element(type, CombineByOperator<Unit>{op, count, here, there});
}

/// How units are combined: by one operator on one type of element, in registers.
template <class Element, class Operator>
struct Adder {
  TASUKI_WITHIN Adder(DType, ReduceOp) {}
  template <int Most>
  TASUKI_WITHIN void operator()(int, Unit16 (&here)[Most], const Unit16 (&there)[Most]) const {
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) combine_elements<Element>(here[j], there[j], Operator());
  }
  TASUKI_WITHIN static std::uint32_t size() { return sizeof(Element); }
};

/// Or by any, in a call for a whole tile.
struct AnyAdder {
  DType type;
  ReduceOp op;
  template <int Most>
  TASUKI_WITHIN void operator()(int count, Unit16 (&here)[Most], const Unit16 (&there)[Most]) const {
    Unit16 a[Most];  // copies: what is passed by address lies in memory, and `here` should not
    Unit16 b[Most];
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      a[j] = here[j];
      b[j] = there[j];
    }
    combine_any(type, op, count, a, b);
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) here[j] = a[j];
  }
  TASUKI_WITHIN std::uint32_t size() const {
    std::uint32_t size = 0;
    element::with_element(type, NoteSize{size});
    return size;
  }
};

/// The adders that there are. Sums are what programs want most. Those of complex numbers are sums of their parts, and
/// those of integers do not depend on the sign.
enum class AdderKind : int { f32, f64, u32, u64, any };
TASUKI_DEVICE constexpr AdderKind adder_of(DType type, ReduceOp op) {
  if (op != ReduceOp::sum) return AdderKind::any;
  switch (type) {
    case DType::f32:
    case DType::c64:
      return AdderKind::f32;
    case DType::f64:
    case DType::c128:
      return AdderKind::f64;
    case DType::i32:
    case DType::u32:
      return AdderKind::u32;
    case DType::i64:
    case DType::u64:
      return AdderKind::u64;
    default:
      return AdderKind::any;
  }
}

/// Calls `f` with the adder of a type and an operator.
template <class F>
TASUKI_WITHIN bool with_adder(DType type, ReduceOp op, const F& f) {
  using element::Sum;
  switch (adder_of(type, op)) {
    case AdderKind::f32:
      return f(Adder<float, Sum>(type, op));
    case AdderKind::f64:
      return f(Adder<double, Sum>(type, op));
    case AdderKind::u32:
      return f(Adder<std::uint32_t, Sum>(type, op));
    case AdderKind::u64:
      return f(Adder<std::uint64_t, Sum>(type, op));
    default:
      return f(AnyAdder{type, op});
  }
}

/// One source of a step: a strided copy of its own, to the destination that all share.
struct Operand {
  const GpuCopy& copy;
  const GpuDim* dims;
  const std::byte* src;
  bool ll;
};

/// What a step combines: `begins`: `dst = first op second ...`, else `dst = dst op first op second ...`.
struct Combination {
  DType type;
  ReduceOp op;
  bool begins;
  int more;   ///< operands after the first
  int sends;  ///< so many LL lines forward the result
};

template <class T>
TASUKI_DEVICE void load_aligned(const std::byte* from, Unit16& to) {
#ifdef __CUDA_ARCH__
  const T value = *reinterpret_cast<const T*>(from);
  memcpy(&to, &value, sizeof value);
#else
  memcpy(&to, from, sizeof(T));
#endif
}

// Loads if `wanted`, and leaves `to` as it is if not, without a branch: where branches join, a loaded value is waited
// for, so that the loads of a tile would follow each other.
TASUKI_WITHIN void load_if(bool wanted, const std::byte* from, Unit16& to) {
#ifdef __CUDA_ARCH__
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
               : "+r"(to.x), "+r"(to.y), "+r"(to.z), "+r"(to.w)
               : "l"(from), "r"(static_cast<std::uint32_t>(wanted))
               : "memory");
#else
  if (wanted) memcpy(&to, from, sizeof to);
#endif
}
TASUKI_WITHIN void load_if(bool wanted, const std::byte* from, std::uint32_t& to) {
#ifdef __CUDA_ARCH__
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1]; }"
               : "+r"(to)
               : "l"(from), "r"(static_cast<std::uint32_t>(wanted))
               : "memory");
#else
  if (wanted) memcpy(&to, from, sizeof to);
#endif
}

template <class T>
TASUKI_DEVICE void store_aligned(std::byte* to, const Unit16& from) {
#ifdef __CUDA_ARCH__
  T value;
  memcpy(&value, &from, sizeof value);
  *reinterpret_cast<T*>(to) = value;
#else
  memcpy(to, &from, sizeof(T));
#endif
}

// In packed memory, elements may follow smaller ones, so they may be unaligned. Such elements are moved byte by byte.
TASUKI_DEVICE void load_element(const std::byte* from, std::uint32_t size, Unit16& to) {
  if (reinterpret_cast<std::uintptr_t>(from) % size == 0) {
    if (size == 4) return load_aligned<std::uint32_t>(from, to);
    if (size == 8) return load_aligned<Unit8>(from, to);
    if (size == 16) return load_aligned<Unit16>(from, to);
    if (size == 2) return load_aligned<std::uint16_t>(from, to);
  }
  memcpy(&to, from, size);
}

TASUKI_DEVICE void store_element(std::byte* to, std::uint32_t size, const Unit16& from) {
  if (reinterpret_cast<std::uintptr_t>(to) % size == 0) {
    if (size == 4) return store_aligned<std::uint32_t>(to, from);
    if (size == 8) return store_aligned<Unit8>(to, from);
    if (size == 16) return store_aligned<Unit16>(to, from);
    if (size == 2) return store_aligned<std::uint16_t>(to, from);
  }
  memcpy(to, &from, size);
}

// Units of 16 bytes if kWideUnits, else elements. All loads of an operand are issued before any is used.
template <bool kWideUnits>
struct Units {
  template <int kSides>
  using Places = TilePlaces<std::conditional_t<kWideUnits, Unit16, std::byte>, kTileRows, kSides>;
  std::uint32_t size;

  TASUKI_DEVICE void load(bool wanted, const std::byte* from, Unit16& to) const {
    if constexpr (kWideUnits) return load_if(wanted, from, to);
    if (wanted) load_element(from, size, to);
  }
  TASUKI_DEVICE void store(std::byte* to, const Unit16& from) const {
    if constexpr (kWideUnits) return store_aligned<Unit16>(to, from);
    store_element(to, size, from);
  }
};

/// A tile of packed operands; `t` has the first one. `operand(k)` is the one k after it.
template <bool kWideUnits, class Add, class Operands>
TASUKI_WITHIN void combine_units(const Combination& c, const Add& add, const GpuTile& t, const Operands& operand) {
  const Units<kWideUnits> units{1u << t.copy.log_unit};
  const typename Units<kWideUnits>::template Places<kSource | kTarget> at(t);
  const int count = static_cast<int>(at.count);
  Unit16 here[kTileRows] = {};
  Unit16 there[kTileRows] = {};
  const auto load = [&](int k) {
    const Operand other = operand(k);
    const typename Units<kWideUnits>::template Places<kSource> from(
        GpuTile{other.copy, other.dims, t.first, t.end, other.src, nullptr});
    TASUKI_UNROLL
    for (int j = 0; j < kTileRows; ++j) units.load(j < count, from.src(j), there[j]);
  };
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) units.load(j < count, c.begins ? at.src(j) : at.dst(j), here[j]);
  if (!c.begins) {
    TASUKI_UNROLL
    for (int j = 0; j < kTileRows; ++j) units.load(j < count, at.src(j), there[j]);
    add(count, here, there);
  }
  TASUKI_NO_UNROLL
  for (int k = 1; k <= c.more; ++k) {
    load(k);
    add(count, here, there);
  }
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (j < count) units.store(at.dst(j), here[j]);
  }
}

/// A tile of operands whose units follow each other (GpuStep::flat): the units from `first` to before `end`, of which
/// this thread has every 32nd. `here` and `there` are the first two that are combined, `more` gives those after them.
/// The result is stored at `to` and, unless it is null, at `also`.
template <class Add, class More>
TASUKI_WITHIN void combine_flat(const Add& add, std::uint32_t first, std::uint32_t end, const std::byte* here,
                                const std::byte* there, std::byte* to, std::byte* also, int rest, const More& more) {
  Unit16 a[kTileRows] = {};
  Unit16 b[kTileRows] = {};
  const auto wanted = [&](int j) { return first + 32 * j < end; };
  const auto at = [&](int j) {
    return static_cast<std::int64_t>(first + 32 * j) * static_cast<std::int64_t>(sizeof(Unit16));
  };
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) load_if(wanted(j), here + at(j), a[j]);
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) load_if(wanted(j), there + at(j), b[j]);
  add(kTileRows, a, b);
  TASUKI_NO_UNROLL
  for (int k = 0; k < rest; ++k) {
    const std::byte* const from = more(k);
    TASUKI_UNROLL
    for (int j = 0; j < kTileRows; ++j) load_if(wanted(j), from + at(j), b[j]);
    add(kTileRows, a, b);
  }
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (wanted(j)) store_aligned<Unit16>(to + at(j), a[j]);
  }
  if (also == nullptr) return;
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (wanted(j)) store_aligned<Unit16>(also + at(j), a[j]);
  }
}

#if defined(TASUKI_LANES_ARE_THREADS)

// By a whole warp: a thread's words of the first `lines` of Most lines, combined. An element of several words is spread
// over as many neighbours.
template <int Most, class Add>
TASUKI_WITHIN void combine_words(const Add& add, int lines, std::uint32_t (&here)[Most][kLineParts],
                                 const std::uint32_t (&there)[Most][kLineParts]) {
  const std::uint32_t size = add.size();
  Unit16 a[Most];
  Unit16 b[Most];
  if (size <= 4) {
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      a[j] = Unit16{here[j][0], here[j][1], here[j][2], here[j][3]};
      b[j] = Unit16{there[j][0], there[j][1], there[j][2], there[j][3]};
    }
    add(lines, a, b);
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      here[j][0] = a[j].x;
      here[j][1] = a[j].y;
      here[j][2] = a[j].z;
      here[j][3] = a[j].w;
    }
    return;
  }
  const std::uint32_t me = lane();
  const std::uint32_t place = me % (size / 4);
  const int first = static_cast<int>(me - place);
  const auto gathered = [&](std::uint32_t word) {
    Unit16 all = Unit16{0, 0, 0, 0};
    all.x = __shfl_sync(~0u, word, first);
    all.y = __shfl_sync(~0u, word, first + 1);
    if (size == 16) {
      all.z = __shfl_sync(~0u, word, first + 2);
      all.w = __shfl_sync(~0u, word, first + 3);
    }
    return all;
  };
  TASUKI_UNROLL
  for (int p = 0; p < kLineParts; ++p) {
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      a[j] = gathered(here[j][p]);
      b[j] = gathered(there[j][p]);
    }
    add(lines, a, b);
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j)
      here[j][p] = place == 0 ? a[j].x : place == 1 ? a[j].y : place == 2 ? a[j].z : a[j].w;
  }
}

/// The words of an operand that lies in packed memory.
template <int Most>
TASUKI_DEVICE void load_words(const GpuLines& t, std::uint32_t (&word)[Most][kLineParts]) {
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {
    const TilePlaces<std::uint32_t, kLineParts, kSource> at(t.line(j));
    TASUKI_UNROLL
    for (int k = 0; k < kLineParts; ++k) load_if(j < t.lines && k < at.count, at.src(k), word[j][k]);
  }
}

/// A tile of operands in lines; `t` has the first one, `forward_to(k)` is where the result is forwarded. Returns false,
/// to all threads of the warp, if what is to come in LL lines has not all arrived.
template <int Most, class Add, class Operands, class ForwardTo, class More>
TASUKI_WITHIN bool combine_lines(const Combination& c, const Add& add, const GpuLines& t, const Operands& operand,
                                 const ForwardTo& forward_to, std::uint32_t flag, const More& more) {
  const auto lines_of = [&](int k) {
    const Operand one = operand(k);
    return GpuLines{one.copy, one.dims, t.first, t.lines, one.src, t.dst};
  };
  // The first operand that need not arrive, and the destination, are loaded while the others arrive.
  std::uint32_t here[Most][kLineParts] = {};
  std::uint32_t early[Most][kLineParts] = {};
  int ahead = 0;
  while (ahead <= c.more && operand(ahead).ll) ++ahead;
  if (ahead <= c.more) load_words<Most>(lines_of(ahead), early);
  if (!c.begins) {
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      const TilePlaces<std::uint32_t, kLineParts, kTarget> at(t.line(j));
      TASUKI_UNROLL
      for (int k = 0; k < kLineParts; ++k) load_if(j < t.lines && k < at.count, at.dst(k), here[j][k]);
    }
  }
  TASUKI_NO_UNROLL
  for (int k = 0; k <= c.more; ++k) {
    std::uint32_t word[Most][kLineParts] = {};
    const GpuLines from = lines_of(k);
    if (k == ahead) {
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) {
        TASUKI_UNROLL
        for (int p = 0; p < kLineParts; ++p) word[j][p] = early[j][p];
      }
    } else if (!operand(k).ll) {
      load_words<Most>(from, word);
    } else {
      Pieces<Most> pieces{from, flag, {}};
      pieces.look();
      if (!pieces.wait(more)) return false;
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) {
        if (j < t.lines) words_of(pieces.piece[j], word[j]);
      }
    }
    if (k > 0 || !c.begins) {
      combine_words(add, static_cast<int>(t.lines), here, word);
      continue;
    }
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      TASUKI_UNROLL
      for (int p = 0; p < kLineParts; ++p) here[j][p] = word[j][p];
    }
  }
  TASUKI_NO_UNROLL
  for (int k = 0; k < c.sends; ++k) {
    std::byte* const to = forward_to(k);
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      if (j >= t.lines) break;
      const uint4 piece = piece_of(here[j], flag);
      if (t.has(j)) store_piece(to + t.piece(j), piece);
    }
  }
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {
    if (j >= t.lines) break;
    const TilePlaces<std::uint32_t, kLineParts, kTarget> at(t.line(j));
    TASUKI_UNROLL
    for (int k = 0; k < kLineParts; ++k) {
      if (k < at.count) *reinterpret_cast<std::uint32_t*>(at.dst(k)) = here[j][k];
    }
  }
  return true;
}

#endif

/// A tile of `rows` rows from row `first` on, by a whole warp, with the adder of the combination's type and operator.
/// False, to all its lanes, if something has not arrived.
template <class Add, class Operands, class ForwardTo, class More>
TASUKI_WITHIN bool combine_tile(const Combination& c, const Add& add, [[maybe_unused]] bool by_lines,
                                std::uint32_t first, std::uint32_t rows, std::byte* dst, const Operands& operand,
                                [[maybe_unused]] const ForwardTo& forward_to, [[maybe_unused]] std::uint32_t flag,
                                [[maybe_unused]] const More& more) {
  const Operand one = operand(0);
  const auto units = [&](std::uint32_t lane) {
    const GpuTile t{one.copy,
                    one.dims,
                    first * one.copy.row_units + lane,
                    least(one.copy.units, (first + rows) * one.copy.row_units),
                    one.src,
                    dst};
    one.copy.wide != 0 ? combine_units<true>(c, add, t, operand) : combine_units<false>(c, add, t, operand);
  };
#if defined(TASUKI_LANES_ARE_THREADS)
  if (by_lines) {
    const std::uint32_t lines = (one.copy.units + kLineWords - 1) / kLineWords;
    const GpuLines t{one.copy, one.dims, first, least(rows, lines - first), one.src, dst};
    return rows == 1 ? combine_lines<1>(c, add, t, operand, forward_to, flag, more)
                     : combine_lines<kTileRows>(c, add, t, operand, forward_to, flag, more);
  }
  units(lane());
#else
  each_lane(units);
#endif
  return true;
}

}  // namespace tasuki::device::lowered
