// How a warp combines the operands of a step (program.cuh), tile by tile, into their destination: from packed memory,
// or from stamped lines as they arrive. All types and operators come together in `combined`, 16 bytes at a time; the
// rest only loads and stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tasuki/kernel/places.cuh"
#include "tasuki/kernel/program.cuh"
#include "tasuki/kernel/reduce_ops.hpp"
#include "tasuki/kernel/warp.cuh"
#if defined(TASUKI_LANES_ARE_THREADS)
#include "tasuki/kernel/lines.cuh"
#endif

namespace tasuki::device::lowered {

/// here op there, for each of the elements that fit into 16 bytes.
template <class Unit>
TASUKI_APART Unit combined(DType type, ReduceOp op, Unit here, Unit there) {
  element::with_element(type, [&](auto number) {
    using Element = decltype(number);
    element::with_operator(op, [&](auto combine) {
      if constexpr (element::kApplies<decltype(combine), Element>) {
        constexpr int kElements = sizeof(Unit) / sizeof(Element);
        Element a[kElements];
        Element b[kElements];
        memcpy(a, &here, sizeof a);
        memcpy(b, &there, sizeof b);
        TASUKI_UNROLL
        for (int i = 0; i < kElements; ++i) a[i] = combine(a[i], b[i]);
        memcpy(&here, a, sizeof a);
      }
    });
  });
  return here;
}

/// One source of a step: a strided copy of its own, to the destination that all share.
struct Operand {
  const GpuCopy& copy;
  const GpuDim* dims;
  const std::byte* src;
  bool stamped;
};

/// What a step combines: `begins`: `dst = first op second ...`, else `dst = dst op first op second ...`.
struct Combination {
  DType type;
  ReduceOp op;
  bool begins;
  int more;  ///< operands after the first
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

  TASUKI_DEVICE void load(const std::byte* from, Unit16& to) const {
    if constexpr (kWideUnits) return load_aligned<Unit16>(from, to);
    load_element(from, size, to);
  }
  TASUKI_DEVICE void store(std::byte* to, const Unit16& from) const {
    if constexpr (kWideUnits) return store_aligned<Unit16>(to, from);
    store_element(to, size, from);
  }
};

/// A tile of packed operands; `t` has the first one. `operand(k)` is the one k after it.
template <bool kWideUnits, class Operands>
TASUKI_DEVICE void combine_units(const Combination& c, const GpuTile& t, const Operands& operand) {
  const Units<kWideUnits> units{1u << t.copy.log_unit};
  const typename Units<kWideUnits>::template Places<kSource | kTarget> at(t);
  const int count = static_cast<int>(at.count);
  Unit16 here[kTileRows] = {};
  Unit16 there[kTileRows] = {};
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (j >= count) break;
    units.load(c.begins ? at.src(j) : at.dst(j), here[j]);
    if (!c.begins) units.load(at.src(j), there[j]);
  }
  const auto add = [&] {
    TASUKI_UNROLL
    for (int j = 0; j < kTileRows; ++j) {
      if (j < count) here[j] = combined(c.type, c.op, here[j], there[j]);
    }
  };
  if (!c.begins) add();
  TASUKI_NO_UNROLL
  for (int k = 1; k <= c.more; ++k) {
    const Operand other = operand(k);
    const typename Units<kWideUnits>::template Places<kSource> from(
        GpuTile{other.copy, other.dims, t.first, t.end, other.src, nullptr});
    TASUKI_UNROLL
    for (int j = 0; j < kTileRows; ++j) {
      if (j < count) units.load(from.src(j), there[j]);
    }
    add();
  }
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (j < count) units.store(at.dst(j), here[j]);
  }
}

#if defined(TASUKI_LANES_ARE_THREADS)

// By a whole warp: a thread's words of a line, combined. An element of several words is spread over as many neighbours.
TASUKI_DEVICE void combine_words(const Combination& c, std::uint32_t size, std::uint32_t (&here)[kLineParts],
                                 const std::uint32_t (&there)[kLineParts]) {
  if (size <= 4) {
    const Unit16 all = combined(c.type, c.op, Unit16{here[0], here[1], here[2], here[3]},
                                Unit16{there[0], there[1], there[2], there[3]});
    here[0] = all.x;
    here[1] = all.y;
    here[2] = all.z;
    here[3] = all.w;
    return;
  }
  const std::uint32_t me = lane();
  const std::uint32_t place = me % (size / 4);
  const int first = static_cast<int>(me - place);
  TASUKI_UNROLL
  for (int p = 0; p < kLineParts; ++p) {
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
    const Unit16 all = combined(c.type, c.op, gathered(here[p]), gathered(there[p]));
    here[p] = place == 0 ? all.x : place == 1 ? all.y : place == 2 ? all.z : all.w;
  }
}

/// The words of an operand that lies in packed memory.
template <int Most>
TASUKI_DEVICE void load_words(const GpuLines& t, std::uint32_t (&word)[Most][kLineParts]) {
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {
    if (j >= t.lines) break;
    const TilePlaces<std::uint32_t, kLineParts, kSource> at(t.line(j));
    TASUKI_UNROLL
    for (int k = 0; k < kLineParts; ++k) {
      if (k < at.count) word[j][k] = *reinterpret_cast<const std::uint32_t*>(at.src(k));
    }
  }
}

/// A tile of operands in lines; `t` has the first one. Returns false, to all threads of the warp, if what is to come in
/// stamped lines has not all arrived.
template <int Most, class Operands, class Patient>
TASUKI_DEVICE bool combine_lines(const Combination& c, std::uint32_t size, const GpuLines& t, const Operands& operand,
                                 std::uint32_t stamp, const Patient& patient) {
  const auto lines_of = [&](int k) {
    const Operand one = operand(k);
    return GpuLines{one.copy, one.dims, t.first, t.lines, one.src, t.dst};
  };
  // The first operand that has not to arrive, and the destination, are loaded while the others arrive.
  std::uint32_t here[Most][kLineParts] = {};
  std::uint32_t early[Most][kLineParts] = {};
  int ahead = 0;
  while (ahead <= c.more && operand(ahead).stamped) ++ahead;
  if (ahead <= c.more) load_words<Most>(lines_of(ahead), early);
  if (!c.begins) {
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      if (j >= t.lines) break;
      const TilePlaces<std::uint32_t, kLineParts, kTarget> at(t.line(j));
      TASUKI_UNROLL
      for (int k = 0; k < kLineParts; ++k) {
        if (k < at.count) here[j][k] = *reinterpret_cast<const std::uint32_t*>(at.dst(k));
      }
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
    } else if (!operand(k).stamped) {
      load_words<Most>(from, word);
    } else {
      Pieces<Most> pieces{from, stamp, {}};
      pieces.look();
      if (!pieces.wait(patient)) return false;
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) {
        if (j < t.lines) words_of(pieces.piece[j], word[j]);
      }
    }
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      if (j >= t.lines) break;
      if (k > 0 || !c.begins) {
        combine_words(c, size, here[j], word[j]);
      } else {
        TASUKI_UNROLL
        for (int p = 0; p < kLineParts; ++p) here[j][p] = word[j][p];
      }
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

TASUKI_DEVICE std::uint32_t element_size(DType type) {
  std::uint32_t size = 0;
  element::with_element(type, [&](auto number) { size = sizeof number; });
  return size;
}

#endif

/// A tile of `rows` rows from row `first` on, by a whole warp. False, to all its lanes, if something has not arrived.
template <class Operands, class Patient>
TASUKI_DEVICE bool combine_tile(const Combination& c, [[maybe_unused]] bool by_lines, std::uint32_t first,
                                std::uint32_t rows, std::byte* dst, const Operands& operand,
                                [[maybe_unused]] std::uint32_t stamp, [[maybe_unused]] const Patient& patient) {
  const Operand one = operand(0);
  const auto units = [&](std::uint32_t lane) {
    const GpuTile t{one.copy,
                    one.dims,
                    first * one.copy.row_units + lane,
                    least(one.copy.units, (first + rows) * one.copy.row_units),
                    one.src,
                    dst};
    one.copy.wide != 0 ? combine_units<true>(c, t, operand) : combine_units<false>(c, t, operand);
  };
#if defined(TASUKI_LANES_ARE_THREADS)
  if (by_lines) {
    const std::uint32_t lines = (one.copy.units + kLineWords - 1) / kLineWords;
    const GpuLines t{one.copy, one.dims, first, least(rows, lines - first), one.src, dst};
    const std::uint32_t size = element_size(c.type);
    return rows == 1 ? combine_lines<1>(c, size, t, operand, stamp, patient)
                     : combine_lines<kTileRows>(c, size, t, operand, stamp, patient);
  }
  units(lane());
#else
  each_lane(units);
#endif
  return true;
}

}  // namespace tasuki::device::lowered
