// Layout: which bytes, in which order. A nested strided pattern or a list, kept in one normal form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tasuki {

/// Grids, sub-arrays and the nests of strided copies have at most this many dimensions.
inline constexpr int kMaxDims = 7;

/// One level of a strided nest: `count` repetitions, `stride` bytes apart (may be negative).
struct Dim {
  std::int64_t count = 1;
  std::int64_t stride = 0;
  friend bool operator==(const Dim&, const Dim&) = default;
};

/// `bytes` contiguous bytes at `offset`, repeated by a nest of dimensions given from the outermost to the innermost.
struct Block {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::vector<Dim> dims;
  /// Bytes of the whole nest.
  std::int64_t size() const {
    std::int64_t all = bytes;
    for (const Dim& dim : dims) all *= dim.count;
    return all;
  }
  friend bool operator==(const Block&, const Block&) = default;
};

/// How the bytes of a layout lie in memory. One nest of blocks is `stride` if a block has at most 16 bytes (a single
/// number, such as a double-precision complex one) and `block_stride` if it has more; several nests are a `list`.
enum class Pattern : std::uint8_t { empty, contiguous, block_stride, stride, list };
std::string_view to_string(Pattern pattern);

/// A sequence of byte addresses relative to a base pointer, in type-map order, with the extent that nesting uses.
///
/// Layouts are values. Every constructor below returns the normal form: two layouts that name the same byte sequence
/// compare equal however they were made (the order of the sequence is never changed). The constructors mean what the
/// constructors of datatypes mean in the MPI standard (MPI 4.1, chapter 5): strides of `vector` and displacements of
/// `indexed` count extents of the element, those of `hvector`, `hindexed` and `structure` count bytes. Counts and block
/// lengths may be zero. Negative counts throw `Error`, and so do byte offsets that do not fit into 64 bits.
class Layout {
 public:
  Layout() = default;  ///< No bytes, extent 0.

  static Layout bytes(std::int64_t count);  ///< `count` contiguous bytes.
  template <class T>
  static Layout of(std::int64_t count = 1) {
    return contiguous(count, bytes(sizeof(T)));
  }
  static Layout contiguous(std::int64_t count, const Layout& element);
  static Layout vector(std::int64_t count, std::int64_t block_length, std::int64_t stride, const Layout& element);
  static Layout hvector(std::int64_t count, std::int64_t block_length, std::int64_t stride_bytes,
                        const Layout& element);
  /// A box of `subsizes` cells at `starts` in an array of `sizes` cells, row-major (the last dimension contiguous).
  /// The extent is the whole array's. 1 to 7 dimensions; a box that leaves the array throws.
  static Layout subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                         std::span<const std::int64_t> starts, const Layout& element);
  static Layout indexed(std::span<const std::int64_t> block_lengths, std::span<const std::int64_t> displacements,
                        const Layout& element);
  static Layout hindexed(std::span<const std::int64_t> block_lengths, std::span<const std::int64_t> displacements,
                         const Layout& element);
  /// No padding for alignment is added at the end; use `resized` where the compiler's struct has some.
  static Layout structure(std::span<const std::int64_t> block_lengths, std::span<const std::int64_t> displacements,
                          std::span<const Layout> elements);
  /// The same bytes with new bounds. As in MPI, the bounds are sticky: in a `structure` of resized and other elements,
  /// only the resized ones determine the bounds. (`subarray` sets its bounds in the same way.)
  static Layout resized(const Layout& element, std::int64_t lower_bound, std::int64_t extent);

  std::int64_t size() const { return size_; }                ///< Bytes named.
  std::int64_t lower_bound() const { return lower_bound_; }  ///< As `MPI_Type_get_extent`.
  std::int64_t extent() const { return extent_; }            ///< As `MPI_Type_get_extent`.
  std::int64_t true_lower_bound() const;                     ///< Lowest byte offset named; 0 if none.
  std::int64_t true_upper_bound() const;                     ///< One past the highest byte offset named; 0 if none.

  Pattern pattern() const;
  /// The normal form: blocks in type-map order, as few as the greedy rule of `src/layout/normalise.hpp` finds.
  std::span<const Block> blocks() const { return blocks_; }
  /// Number of maximal contiguous runs.
  std::int64_t runs() const;
  /// True if some byte is named twice (allowed in a source, refused in a destination).
  bool overlaps() const;

  /// Gathers the layout's bytes from `base` into `size()` contiguous bytes at `packed`. Local; no allocation.
  void pack(const void* base, void* packed) const;
  /// Scatters `size()` contiguous bytes at `packed` to the layout's bytes at `base`. Local; no allocation.
  void unpack(const void* packed, void* base) const;

  /// One line for people: `3 x 4 x 8 B, strides 96 16`.
  std::string describe() const;

  /// Equal byte sequences. The extent is not part of it.
  friend bool operator==(const Layout& a, const Layout& b) { return a.blocks_ == b.blocks_; }

 private:
  std::vector<Block> blocks_;
  std::int64_t size_ = 0;
  std::int64_t lower_bound_ = 0;
  std::int64_t extent_ = 0;
  bool sticky_ = false;  // the bounds were set by `resized` or `subarray`

  friend class LayoutBuilder;
};

/// Blocks of collectives as MPI counts them, each relative to the one base. `count` blocks, of which each begins an
/// extent of `block` after the one before it (`recvtype` of MPI_Allgather).
std::vector<Layout> blocks_of(const Layout& block, int count);
/// Block i is `counts[i]` elements, the first of which is `displacements[i]` extents of the element after the base
/// (MPI_Allgatherv, MPI_Alltoallv). Throws `Error` unless there are as many displacements as counts.
std::vector<Layout> blocks_of(const Layout& element, std::span<const std::int64_t> counts,
                              std::span<const std::int64_t> displacements);
/// Block i is `counts[i]` of `elements[i]`, the first of which is `displacements[i]` bytes after the base
/// (MPI_Alltoallw). Throws `Error` unless there are equally many of all three.
std::vector<Layout> blocks_of(std::span<const Layout> elements, std::span<const std::int64_t> counts,
                              std::span<const std::int64_t> displacements);

}  // namespace tasuki
