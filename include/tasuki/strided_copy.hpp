// StridedCopy: one nest of blocks that moves from one strided pattern to another; the unit of work of every plan.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasuki/dtype.hpp"
#include "tasuki/held.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// Offsets in bytes that follow no rule: those of the steps of a dimension. A value; its copies share the numbers,
/// which take 32 bits each where all of them fit.
class OffsetList {
 public:
  OffsetList() = default;  ///< None: the steps of the dimension are a stride apart.
  explicit OffsetList(std::span<const std::int64_t> offsets);

  bool empty() const { return numbers_.get() == nullptr; }
  std::int64_t size() const;
  std::int64_t operator[](std::int64_t i) const;
  std::int64_t least() const;  ///< Of a list that is not empty.
  std::int64_t most() const;
  /// The numbers in the form that they have; null in the other form.
  const std::int32_t* narrow() const;
  const std::int64_t* wide() const;
  /// Numbers `begin` to `end` (exclusive).
  OffsetList part(std::int64_t begin, std::int64_t end) const;
  std::int64_t bytes() const;  ///< That the numbers occupy.
  /// Which numbers it shares with its copies.
  const void* identity() const { return numbers_.get(); }
  friend bool operator==(const OffsetList& a, const OffsetList& b) {
    return a.identity() == b.identity() || (!a.empty() && !b.empty() && a.equals(b));
  }

 private:
  struct Numbers;
  const Numbers& numbers() const { return *static_cast<const Numbers*>(numbers_.get()); }
  bool equals(const OffsetList& other) const;
  detail::Held numbers_;
};

/// One dimension of a strided copy: `count` steps, so many bytes apart on each side.
struct CopyDim {
  std::int64_t count = 1;
  std::int64_t src_stride = 0;
  std::int64_t dst_stride = 0;
  friend bool operator==(const CopyDim&, const CopyDim&) = default;
};

/// The dimensions of a strided copy: `kMaxDims` of them, of which those that are kept come first and the others are of
/// one step. A value; its copies share what is kept until one of them is changed. So a reference to be written through
/// must not outlive the next copy.
class CopyDims {
 public:
  CopyDims() = default;                              ///< None are kept.
  explicit CopyDims(std::span<const CopyDim> dims);  ///< Keeps these.

  const CopyDim& operator[](std::size_t i) const { return i < kept() ? data()[i] : kOnce[0]; }
  CopyDim& operator[](std::size_t i) { return own()[i]; }
  const CopyDim* begin() const { return data(); }  ///< Of those that are kept.
  const CopyDim* end() const { return data() + kept(); }
  CopyDim* begin() { return own(); }  ///< Of all.
  CopyDim* end() { return own() + kMaxDims; }
  void fill(const CopyDim& dim) { std::fill(begin(), end(), dim); }

  std::size_t kept() const { return dims_.get() == nullptr ? 0 : static_cast<std::size_t>(head()->kept); }
  std::int64_t bytes() const;  ///< That these occupy.
  /// Which ones it shares with its copies; null if none are kept.
  const void* identity() const { return dims_.get(); }
  friend bool operator==(const CopyDims& a, const CopyDims& b) { return a.identity() == b.identity() || a.equals(b); }

 private:
  struct Head {  // the dimensions follow it
    std::int32_t holders;
    std::int32_t kept;
  };
  static constexpr std::array<CopyDim, kMaxDims> kOnce{};
  Head* head() const { return static_cast<Head*>(dims_.get()); }
  const CopyDim* data() const {
    return dims_.get() == nullptr ? kOnce.data() : reinterpret_cast<const CopyDim*>(head() + 1);
  }
  CopyDim* own();
  static detail::Held made(std::span<const CopyDim> dims, std::size_t room);
  bool equals(const CopyDims& other) const;
  detail::Held dims_;
};

/// Copies `block` bytes, repeated by `ndims` nested dimensions (outermost first). Offsets and strides are in bytes and
/// relative to the source's and the destination's base. On a side that has a list, the steps of the outermost dimension
/// lie at the list's offsets instead of a stride apart; that stride is then 0. Plain data: printable, serialisable.
struct StridedCopy {
  using Dim = CopyDim;
  std::int64_t src_offset = 0;
  std::int64_t dst_offset = 0;
  std::int64_t block = 0;
  std::int32_t ndims = 0;
  CopyDims dims{};
  OffsetList src_list{};  ///< one offset for each step of dimension 0, or empty
  OffsetList dst_list{};

  /// The first `ndims` dimensions, of which all are kept or none.
  std::span<const Dim> nest() const { return {dims.begin(), static_cast<std::size_t>(ndims)}; }
  bool listed() const { return !src_list.empty() || !dst_list.empty(); }
  /// Where step `i` of the outermost dimension begins.
  std::int64_t src_of_step(std::int64_t i) const {
    return src_offset + (src_list.empty() ? i * dims[0].src_stride : src_list[i]);
  }
  std::int64_t dst_of_step(std::int64_t i) const {
    return dst_offset + (dst_list.empty() ? i * dims[0].dst_stride : dst_list[i]);
  }
  std::int64_t blocks() const;                             ///< Product of the counts.
  std::int64_t bytes() const { return blocks() * block; }  ///< Bytes moved.
  Pattern src_pattern() const;
  Pattern dst_pattern() const;
  friend bool operator==(const StridedCopy&, const StridedCopy&) = default;
};

/// Zips two layouts of equal size and any shapes into the shortest list of matching strided copies that the normal
/// forms allow: byte i of the source's sequence goes to byte i of the destination's. Throws `Error` if the sizes differ
/// or if `dst` names a byte twice.
std::vector<StridedCopy> zip(const Layout& src, const Layout& dst);

/// Moves the same bytes in an order that suits memory: dimensions are sorted so that the destination is written in
/// ascending order, and merged where possible. Source and destination must not overlap. What has a list stays as it is.
StridedCopy reordered(const StridedCopy& copy);

/// Joins two strided copies of one shape, both relative to the same bases, into one nest that takes their rows in turn.
/// It does so only if that saves memory traffic, which it does for blocks smaller than a cache line in large copies.
/// Example: the two faces of a periodic dimension whose cells are strided; the sources of one face lie in the cache
/// lines of the other's destinations. Blocks that take turns on one side become pairs, in a last dimension of two.
/// Otherwise empty.
std::optional<StridedCopy> fused(const StridedCopy& a, const StridedCopy& b);

/// One strided copy in place of two, both relative to the same bases, if `b` continues `a` on both sides: with the
/// bytes that follow a contiguous block, or with the next steps of the outermost dimension. Otherwise empty.
std::optional<StridedCopy> continued(const StridedCopy& a, const StridedCopy& b);

/// A function that carries out one `StridedCopy`, chosen once for its block size, strides and length.
/// `src` and `dst` are the bases that the offsets are relative to; the bytes read and the bytes written must not
/// overlap. Any alignment. Never allocates.
using CopyFunction = void (*)(const StridedCopy& copy, const std::byte* src, std::byte* dst);

/// Where the destination is expected to be. `streaming` stores blocks of 64 bytes and more past the cache: faster when
/// the destination is in memory (twice, for large copies), slower when it is in the cache. The stores are fenced.
enum class CopyHint : std::uint8_t { cached, streaming };
CopyFunction select_copy(const StridedCopy& copy, CopyHint hint = CopyHint::cached);

/// As `select_copy`, but combines each source element with the destination element: dst = dst op src. Throws `Error` if
/// `op` is not defined for `type`, or if `block` is not a whole number of its elements.
CopyFunction select_reduce(const StridedCopy& copy, DType type, ReduceOp op);

/// One line for people.
std::string describe(const StridedCopy& copy);

}  // namespace tasuki
