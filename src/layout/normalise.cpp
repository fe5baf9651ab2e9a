// The levels of the normal form: join runs, fold groups, and skip the regular rest of a repetition.
#include "layout/normalise.hpp"

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {
namespace {

// Limits: a larger irregular pattern would take gigabytes or minutes.
constexpr std::int64_t kMaxRunsFed = std::int64_t{1} << 28;
constexpr std::int64_t kMaxOutputs = std::int64_t{1} << 22;

// The callers have checked that every offset of the sequence fits into 64 bits. A comparison may compute an offset one
// step outside, so the arithmetic wraps instead of being undefined.
std::int64_t wrapping(std::int64_t a, std::int64_t b, std::int64_t times) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(b) * static_cast<std::uint64_t>(times));
}

}  // namespace

template <int Sides>
auto Normaliser<Sides>::sum(const Offsets& a, const Offsets& b, std::int64_t times) -> Offsets {
  Offsets result;
  for (int i = 0; i < Sides; ++i) result[i] = wrapping(a[i], b[i], times);
  return result;
}

template <int Sides>
auto Normaliser<Sides>::difference(const Offsets& a, const Offsets& b) const -> Offsets {
  Offsets result;
  for (int i = 0; i < Sides; ++i)
    if (__builtin_sub_overflow(a[i], b[i], &result[i]))
      throw Error(fmt::format("{}: the distance between byte offsets {} and {} leaves 64 bits; bring them closer",
                              operation_, b[i], a[i]));
  return result;
}

template <int Sides>
void Normaliser<Sides>::run(const Offsets& at, std::int64_t bytes) {
  if (bytes == 0) return;
  if (++fed_ > kMaxRunsFed)
    throw Error(fmt::format("{}: the pattern is irregular and has more than {} runs; describe it in fewer pieces",
                            operation_, kMaxRunsFed));
  Offsets end = state_.run_at;
  for (std::int64_t& side : end) side = wrapping(side, state_.run_bytes, 1);
  if (state_.run_bytes > 0 && end == at) {
    state_.run_bytes += bytes;
    return;
  }
  close_run();
  state_.run_at = at;
  state_.run_bytes = bytes;
}

template <int Sides>
void Normaliser<Sides>::close_run() {
  if (state_.run_bytes == 0) return;
  Nest nest;
  nest.at = state_.run_at;
  nest.bytes = state_.run_bytes;
  state_.run_bytes = 0;
  push(0, nest);
}

template <int Sides>
void Normaliser<Sides>::push(int level, const Nest& nest) {
  if (level == kMaxDims) {
    if (++state_.outputs > kMaxOutputs)
      throw Error(
          fmt::format("{}: the pattern is irregular and needs more than {} blocks; use larger or evenly spaced "
                      "pieces, or several layouts",
                      operation_, kMaxOutputs));
    Output out;
    if constexpr (Sides == 1) {
      out.offset = nest.at[0];
      out.bytes = nest.bytes;
      for (int i = nest.ndims; i-- > 0;) out.dims.push_back({nest.dims[i].count, nest.dims[i].strides[0]});
    } else {
      out.src_offset = nest.at[0];
      out.dst_offset = nest.at[1];
      out.block = nest.bytes;
      if (nest.ndims > 0) {
        std::array<CopyDim, kMaxDims> dims;
        for (int i = nest.ndims; i-- > 0;)
          dims[out.ndims++] = {nest.dims[i].count, nest.dims[i].strides[0], nest.dims[i].strides[1]};
        out.dims = CopyDims({dims.data(), static_cast<std::size_t>(out.ndims)});
      }
    }
    output_.push_back(std::move(out));
    return;
  }
  Group& group = state_.levels[level];
  ++group.received;
  if (group.count > 0 && group.first.same_shape(nest)) {
    const Offsets gap = difference(nest.at, sum(group.first.at, group.strides, group.count - 1));
    if (group.count == 1) group.strides = gap;
    if (gap == group.strides) {
      ++group.count;
      return;
    }
  }
  close(level);
  group.first = nest;
  group.count = 1;
  group.strides = {};
}

// Hands the level's group to the next level. A nest made at level k has k + 1 dimensions, because its parts became
// equal neighbours only when level k - 1 made them. So no nest has more than kMaxDims dimensions.
template <int Sides>
void Normaliser<Sides>::close(int level) {
  Group& group = state_.levels[level];
  if (group.count == 0) return;
  if (group.count > 1) group.first.dims[group.first.ndims++] = {group.count, group.strides};
  group.count = 0;
  push(level + 1, group.first);
}

template <int Sides>
bool Normaliser<Sides>::idle_from(int level, const State& before) const {
  for (int i = level; i < kMaxDims; ++i)
    if (state_.levels[i].received != before.levels[i].received) return false;
  return state_.outputs == before.outputs;
}

// `before` is the state one round of a repetition ago. Suppose the round did only this: it moved the lower levels by
// `strides`, lengthened one group by a whole number of its own strides that makes up `strides`, and left the higher
// levels alone. Then each of the coming `rounds` will do the same, so all of them are added here at once.
template <int Sides>
bool Normaliser<Sides>::skip(const State& before, const Offsets& strides, std::int64_t rounds) {
  State& now = state_;
  if (now.run_bytes == 0 || before.run_bytes == 0) return false;
  if (now.run_at == before.run_at && idle_from(0, before)) {  // the round made the open run longer
    const std::int64_t grown = now.run_bytes - before.run_bytes;
    for (const std::int64_t stride : strides)
      if (stride != grown) return false;
    now.run_bytes += grown * rounds;
    return true;
  }
  if (now.run_bytes != before.run_bytes || now.run_at != sum(before.run_at, strides)) return false;

  for (int level = 0; level < kMaxDims; ++level) {
    Group& group = now.levels[level];
    const Group& old = before.levels[level];
    if (group.count == 0 && old.count == 0) continue;
    if (group.count == 0 || old.count == 0 || !group.first.same_shape(old.first)) return false;
    const bool same_strides = group.strides == old.strides;
    // only moved
    if (group.count == old.count && same_strides && group.first.at == sum(old.first.at, strides)) continue;
    const std::int64_t grown = group.count - old.count;
    if (grown <= 0 || group.first.at != old.first.at || !(same_strides || old.count == 1)) return false;
    if (sum({}, group.strides, grown) != strides || !idle_from(level + 1, before)) return false;
    group.count += grown * rounds;
    ++group.received;
    now.run_at = sum(now.run_at, strides, rounds);
    for (int lower = 0; lower < level; ++lower) {
      now.levels[lower].first.at = sum(now.levels[lower].first.at, strides, rounds);
      ++now.levels[lower].received;
    }
    return true;
  }
  return false;
}

template <int Sides>
auto Normaliser<Sides>::finish() -> std::vector<Output> {
  close_run();
  for (int level = 0; level < kMaxDims; ++level) close(level);
  return std::move(output_);
}

template class Normaliser<1>;
template class Normaliser<2>;

}  // namespace tasuki
