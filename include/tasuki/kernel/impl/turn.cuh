// How a warp moves a tile of a copy that turns rows into columns: GpuCopy::turned (program.cuh).
//
// If each thread stored what it has loaded, either its loads or its stores would take single units out of lines: some
// four times the bytes. Here the units of a tile are loaded along `down`, where the source is dense, and stored along
// `across`, where the target is. In between the threads of the warp exchange them: which register a unit is in and
// which lane it is in change places, bit by bit. Shared memory would do the same in as many cycles, but a kernel of a
// user has none to give.
#pragma once

#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/warp.cuh"

namespace tasuki::device::lowered {

#if defined(TASUKI_LANES_ARE_THREADS)

// Of two units of a lane and two of the lane whose number differs in `mask`: the second one of the lane that has a 0
// there and the first one of the other lane change places. Word by word: of whole units the compiler would keep the
// addresses, and so the units, in memory.
TASUKI_DEVICE void exchange_with_lane(std::uint32_t& first, std::uint32_t& second, int mask) {
  const bool upper = (lane() & static_cast<std::uint32_t>(mask)) != 0;
  const std::uint32_t got = __shfl_xor_sync(~0u, upper ? first : second, mask);
  first = upper ? got : first;
  second = upper ? second : got;
}
TASUKI_DEVICE void exchange_with_lane(Unit8& first, Unit8& second, int mask) {
  exchange_with_lane(first.x, second.x, mask);
  exchange_with_lane(first.y, second.y, mask);
}
TASUKI_DEVICE void exchange_with_lane(Unit16& first, Unit16& second, int mask) {
  exchange_with_lane(first.x, second.x, mask);
  exchange_with_lane(first.y, second.y, mask);
  exchange_with_lane(first.z, second.z, mask);
  exchange_with_lane(first.w, second.w, mask);
}

#endif

/// Tile number `tile` of a copy in units of 2^kLogUnit bytes, which are `Unit`s. By the whole warp.
template <class Unit, int kLogUnit>
class TurnedTile {
 public:
  TASUKI_DEVICE TurnedTile(const GpuCopy& copy, const GpuDim* dims, std::uint32_t tile, const std::byte* src,
                           std::byte* dst)
      : down_(dims[0]), across_(dims[1]) {
    const std::uint32_t tiles_down = (down_.count + kDown - 1) / kDown;
    const std::uint32_t tiles_across = (across_.count + kAcross - 1) / kAcross;
    const std::uint32_t rest = tile / tiles_down;
    first_down_ = (tile - rest * tiles_down) * kDown;
    std::uint32_t outer = rest / tiles_across;
    first_across_ = (rest - outer * tiles_across) * kAcross;
    std::int64_t from = 0;
    std::int64_t to = 0;
    TASUKI_NO_UNROLL
    for (int d = 2; d < copy.dims; ++d) {
      const GpuDim dim = dims[d];
      const std::uint32_t next = d + 1 < copy.dims ? high_product(outer, dim.magic) >> dim.shift : 0;
      const auto at = static_cast<std::int64_t>(outer - next * dim.count);
      from += at * dim.src_stride;
      to += at * dim.dst_stride;
      outer = next;
    }
    src_ = src + copy.src_offset + from * kBytes;
    dst_ = dst + copy.dst_offset + to * kBytes;
  }

  TASUKI_DEVICE void move() const {
#if defined(TASUKI_LANES_ARE_THREADS)
    Unit value[kEach] = {};
    TASUKI_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const Place at = loaded(lane(), j);
      if (is(at)) value[j] = load_unit<Unit>(source(at));
    }
    exchange(value);
    TASUKI_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const Place at = stored(lane(), j);
      if (is(at)) store_unit<Unit>(target(at), value[j]);
    }
#else
    each_lane([&](std::uint32_t lane) {
      for (int j = 0; j < kEach; ++j) {
        const Place at = stored(lane, j);
        if (is(at)) store_unit<Unit>(target(at), load_unit<Unit>(source(at)));
      }
    });
#endif
  }

 private:
  static constexpr int kBytes = 1 << kLogUnit;
  static constexpr int kLogDown = kLogTurnedDown<kLogUnit>;
  static constexpr int kLogAcross = kLogTurnedAcross<kLogUnit>;
  static constexpr std::uint32_t kDown = 1u << kLogDown;
  static constexpr std::uint32_t kAcross = 1u << kLogAcross;
  static constexpr int kLogLanes = 5;
  static constexpr int kBits = kLogDown + kLogAcross - kLogLanes;  // of a unit's number among those of a thread
  static constexpr int kEach = 1 << kBits;
  // Bits of a lane's number that are the lowest of `across` when units are loaded, of `down` when they are stored.
  static constexpr int kAcrossLoaded = kLogLanes - kLogDown;
  static constexpr int kDownStored = kLogLanes - kLogAcross;

  struct Place {
    std::uint32_t down;
    std::uint32_t across;
  };

  // Where unit `j` of a lane is loaded, and where what it has after the exchange is stored.
  TASUKI_DEVICE Place loaded(std::uint32_t lane, int j) const {
    return {first_down_ + lane % kDown,
            first_across_ + (lane >> kLogDown) + (static_cast<std::uint32_t>(j) << kAcrossLoaded)};
  }
  TASUKI_DEVICE Place stored(std::uint32_t lane, int j) const {
    const std::uint32_t exchanged = lane >> kDownStored & (kEach - 1);
    return {first_down_ + lane % (1u << kDownStored) + (static_cast<std::uint32_t>(j) << kDownStored),
            first_across_ + (lane >> kLogDown) + (exchanged << kAcrossLoaded)};
  }
  TASUKI_DEVICE bool is(const Place& at) const {
    return at.down < down_.count && at.across < across_.count;
  }
  TASUKI_DEVICE const std::byte* source(const Place& at) const {
    return src_ + (static_cast<std::int64_t>(at.across) * across_.src_stride + at.down) * kBytes;
  }
  TASUKI_DEVICE std::byte* target(const Place& at) const {
    return dst_ + (static_cast<std::int64_t>(at.down) * down_.dst_stride + at.across) * kBytes;
  }

#if defined(TASUKI_LANES_ARE_THREADS)
  // Bit k of a unit's number and bit kDownStored + k of its lane's change places, for each k.
  TASUKI_DEVICE static void exchange(Unit (&value)[kEach]) {
    TASUKI_UNROLL
    for (int bit = 1; bit < kEach; bit *= 2) {
      TASUKI_UNROLL
      for (int j = 0; j < kEach; ++j) {
        if ((j & bit) == 0) exchange_with_lane(value[j], value[j | bit], bit << kDownStored);
      }
    }
  }
#endif

  GpuDim down_;
  GpuDim across_;
  std::uint32_t first_down_;
  std::uint32_t first_across_;
  const std::byte* src_;
  std::byte* dst_;
};

/// Not inlined, because it would take registers from copies that turn nothing.
TASUKI_NOINLINE void turn_tile(const GpuCopy& copy, const GpuDim* dims, std::uint32_t tile, const std::byte* src,
                               std::byte* dst) {
  if (copy.log_unit == 2) return TurnedTile<std::uint32_t, 2>(copy, dims, tile, src, dst).move();
  if (copy.log_unit == 3) return TurnedTile<Unit8, 3>(copy, dims, tile, src, dst).move();
  TurnedTile<Unit16, 4>(copy, dims, tile, src, dst).move();
}

}  // namespace tasuki::device::lowered
