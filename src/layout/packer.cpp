// Packing what was made ready: see packer.hpp.
#include "layout/packer.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "layout/nest_loop.hpp"

namespace tasuki {

namespace {

// The nest into (or with `inverse` out of) consecutive bytes.
StridedCopy packing(const Block& block, bool inverse) {
  StridedCopy copy;
  copy.block = block.bytes;
  copy.ndims = static_cast<std::int32_t>(block.dims.size());
  (inverse ? copy.dst_offset : copy.src_offset) = block.offset;
  std::int64_t packed_stride = block.bytes;
  for (std::size_t i = block.dims.size(); i-- > 0;) {
    const auto [count, stride] = block.dims[i];
    copy.dims[i] =
        inverse ? StridedCopy::Dim{count, packed_stride, stride} : StridedCopy::Dim{count, stride, packed_stride};
    packed_stride *= count;
  }
  return copy;
}

// Copies between `base` at each offset and consecutive bytes; Bytes is 0 if it is not known when this is compiled.
template <std::int64_t Bytes, bool Inverse, class Base, class Packed>
void copy_equal(std::span<const std::int64_t> offsets, std::int64_t bytes, Base* base, Packed* packed) {
  const std::int64_t each = Bytes > 0 ? Bytes : bytes;
  for (const std::int64_t offset : offsets) {
    if constexpr (Inverse)
      std::memcpy(base + offset, packed, static_cast<std::size_t>(each));
    else
      std::memcpy(packed, base + offset, static_cast<std::size_t>(each));
    packed += each;
  }
}

template <bool Inverse, class Base, class Packed>
void copy_runs(std::span<const std::int64_t> offsets, std::int64_t bytes, Base* base, Packed* packed) {
  switch (bytes) {
    case 1:
      return copy_equal<1, Inverse>(offsets, bytes, base, packed);
    case 2:
      return copy_equal<2, Inverse>(offsets, bytes, base, packed);
    case 4:
      return copy_equal<4, Inverse>(offsets, bytes, base, packed);
    case 8:
      return copy_equal<8, Inverse>(offsets, bytes, base, packed);
    case 12:
      return copy_equal<12, Inverse>(offsets, bytes, base, packed);
    case 16:
      return copy_equal<16, Inverse>(offsets, bytes, base, packed);
    case 24:
      return copy_equal<24, Inverse>(offsets, bytes, base, packed);
    case 32:
      return copy_equal<32, Inverse>(offsets, bytes, base, packed);
    case 48:
      return copy_equal<48, Inverse>(offsets, bytes, base, packed);
    case 64:
      return copy_equal<64, Inverse>(offsets, bytes, base, packed);
    default:
      return copy_equal<0, Inverse>(offsets, bytes, base, packed);
  }
}

constexpr std::int64_t kShortNest = 16;  // runs; a nest of fewer is taken apart if it stands among runs

}  // namespace

Packer::Packer(const Layout& layout) {
  const bool list = layout.blocks().size() > 1;
  for (const Block& nest : layout.blocks()) {
    const std::int64_t runs = nest.size() / nest.bytes;
    if (list && runs <= kShortNest) {
      for_each_offset(packing(nest, false), [&](std::int64_t at, std::int64_t) { open_.push_back({at, nest.bytes}); });
    } else {
      close_runs();
      add_nest(nest);
    }
  }
  close_runs();
}

Packer::Step& Packer::add_step() {
  Step& step = steps_.emplace_back();
  step.packed = size_;
  return step;
}

void Packer::add_nest(const Block& nest) {
  Nest step{packing(nest, false), packing(nest, true), nullptr, nullptr};
  step.pack = select_copy(step.gather);
  step.unpack = select_copy(step.scatter);
  add_step().what = std::move(step);
  size_ += nest.size();
}

void Packer::close_runs() {
  if (open_.empty()) return;
  std::int64_t all = 0;
  std::int64_t unit = 0;  // of which every run is a multiple
  for (const Run& run : open_) {
    all += run.bytes;
    unit = std::gcd(unit, run.bytes);
  }
  // A loop over equal pieces costs a fraction of a call for each run, so runs are taken apart unless that makes many.
  constexpr std::int64_t kMostPieces = 4;  // a run, on average
  if (all / unit <= kMostPieces * std::ssize(open_)) {
    EqualRuns equal{unit, {}};
    equal.offsets.reserve(static_cast<std::size_t>(all / unit));
    for (const Run& run : open_)
      for (std::int64_t at = 0; at < run.bytes; at += unit) equal.offsets.push_back(run.offset + at);
    add_step().what.emplace<EqualRuns>(std::move(equal));
  } else {
    add_step().what.emplace<Runs>(open_);
  }
  size_ += all;
  open_.clear();
}

void Packer::pack(const std::byte* base, std::byte* packed) const {
  for (const Step& step : steps_) {
    std::byte* out = packed + step.packed;
    if (const Nest* nest = std::get_if<Nest>(&step.what)) {
      nest->pack(nest->gather, base, out);
    } else if (const EqualRuns* runs = std::get_if<EqualRuns>(&step.what)) {
      copy_runs<false>(runs->offsets, runs->bytes, base, out);
    } else {
      for (const Run& run : std::get<Runs>(step.what)) {
        std::memcpy(out, base + run.offset, static_cast<std::size_t>(run.bytes));
        out += run.bytes;
      }
    }
  }
}

void Packer::unpack(const std::byte* packed, std::byte* base) const {
  for (const Step& step : steps_) {
    const std::byte* in = packed + step.packed;
    if (const Nest* nest = std::get_if<Nest>(&step.what)) {
      nest->unpack(nest->scatter, in, base);
    } else if (const EqualRuns* runs = std::get_if<EqualRuns>(&step.what)) {
      copy_runs<true>(runs->offsets, runs->bytes, base, in);
    } else {
      for (const Run& run : std::get<Runs>(step.what)) {
        std::memcpy(base + run.offset, in, static_cast<std::size_t>(run.bytes));
        in += run.bytes;
      }
    }
  }
}

}  // namespace tasuki
