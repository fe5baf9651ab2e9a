// Elements: what a list of cells names in a field. One layout at numbers that follow no rule, in little memory: a
// `Layout` in its normal form takes ten times as much for scattered cells.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "layout/cut.hpp"
#include "layout/encoding.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// Cells that follow each other.
struct CellRun {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// The numbers of cells, in the order of a list: 4 or 8 bytes for each cell or, where that is less, twice as much for
/// each run. A value; its copies share the numbers.
class CellList {
 public:
  CellList() = default;  ///< No cells.
  explicit CellList(std::span<const std::int64_t> cells);
  /// The cells from `begin` on.
  CellList(std::int64_t begin, std::int64_t count);

  std::int64_t size() const { return size_; }
  /// In how many runs it is kept. Some may follow each other.
  std::int64_t kept_runs() const { return begins_.size(); }
  CellRun kept_run(std::int64_t i) const { return {begins_[i], counts_.empty() ? 1 : counts_[i]}; }
  std::int64_t least() const;  ///< Of a list that is not empty.
  std::int64_t most() const;
  /// Which numbers it shares with its copies; null if it has none.
  const void* identity() const { return begins_.identity(); }

  void tell(Encoder& to) const;
  static CellList heard(Decoder& from);

 private:
  OffsetList begins_;  // of the runs
  OffsetList counts_;  // of their cells; empty: each has one
  std::int64_t size_ = 0;
};

/// Element i of the list is `element`, as many of its extents on as cell i says; then all is moved. Or it is one
/// layout.
class Elements {
 public:
  Elements() = default;                                   ///< No bytes.
  Elements(Layout whole) : element_(std::move(whole)) {}  // NOLINT(google-explicit-constructor): it is one
  Elements(Layout element, CellList cells);               ///< Throws `Error` for offsets that leave 64 bits.

  bool listed() const { return listed_; }
  const Layout& element() const { return element_; }
  const CellList& cells() const { return cells_; }
  std::int64_t offset() const { return offset_; }  ///< By which all is moved.
  std::int64_t size() const { return element_.size() * (listed_ ? cells_.size() : 1); }
  std::int64_t runs() const;              ///< Number of maximal contiguous runs, as of the layout.
  ByteRange range() const;                ///< From the first byte to the last; none: empty, at 0.
  Elements moved(std::int64_t by) const;  ///< The same bytes, `by` bytes further on.
  Layout layout() const;                  ///< The same bytes in the normal form.

 private:
  Layout element_;
  CellList cells_;
  std::int64_t offset_ = 0;
  bool listed_ = false;
};

/// One after the other, relative to one base, in the normal form.
Layout joined(std::span<const Elements> parts);

/// Parts travel between ranks in a form as small as their own; a list that several of them share travels once.
void tell(std::span<const Elements> parts, Encoder& to);
/// Throws `Malformed` for what is no list of `count` parts.
std::vector<Elements> hear_elements(Decoder& from, std::size_t count);

/// What `zip` of the layouts returns. Nobody looks whether lists name a cell of `dst` twice: the caller has.
std::vector<StridedCopy> zip(const Elements& src, const Elements& dst);
/// The same, with lists (layout/lists.hpp).
std::vector<StridedCopy> zip_with_lists(const Elements& src, const Elements& dst);

}  // namespace tasuki
