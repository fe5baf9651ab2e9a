// Elements: see elements.hpp. They are zipped in zip.cpp.
#include "layout/elements.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "layout/checked.hpp"
#include "layout/sequence.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Calls `take(begin, count)` for each run of cells that follow each other.
template <class Take>
void for_each_run(std::span<const std::int64_t> cells, const Take& take) {
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t end = i + 1;
    while (end < cells.size() && cells[end] - cells[end - 1] == 1) ++end;
    take(cells[i], static_cast<std::int64_t>(end - i));
    i = end;
  }
}

// The forms of numbers.
constexpr std::int64_t kNarrow = 0;
constexpr std::int64_t kWide = 1;

void tell_numbers(const OffsetList& list, Encoder& to) {
  if (const std::int32_t* narrow = list.narrow(); narrow != nullptr) {
    to.number(kNarrow).records(std::span(narrow, static_cast<std::size_t>(list.size())));
  } else {
    to.number(kWide).records(std::span(list.wide(), static_cast<std::size_t>(list.size())));
  }
}

OffsetList heard_numbers(Decoder& from) {
  if (from.number(kNarrow, kWide) == kWide) return OffsetList(from.records<std::int64_t>());
  const std::vector<std::int32_t> narrow = from.records<std::int32_t>();
  return OffsetList(std::vector<std::int64_t>(narrow.begin(), narrow.end()));
}

// Where the last byte of the layout's sequence ends.
std::int64_t end_of(const Layout& layout) {
  const Block& last = layout.blocks().back();
  std::int64_t end = last.offset + last.bytes;
  for (const Dim& dim : last.dims) end += (dim.count - 1) * dim.stride;
  return end;
}

}  // namespace

CellList::CellList(std::span<const std::int64_t> cells) : size_(std::ssize(cells)) {
  std::int64_t runs = 0;
  for_each_run(cells, [&](std::int64_t, std::int64_t) { ++runs; });
  if (2 * runs > size_) {
    begins_ = OffsetList(cells);
    return;
  }
  std::vector<std::int64_t> begins, counts;
  for_each_run(cells, [&](std::int64_t begin, std::int64_t count) {
    begins.push_back(begin);
    counts.push_back(count);
  });
  begins_ = OffsetList(begins);
  counts_ = OffsetList(counts);
}

CellList::CellList(std::int64_t begin, std::int64_t count) : size_(count) {
  if (count == 0) return;
  begins_ = OffsetList(std::array{begin});
  counts_ = OffsetList(std::array{count});
}

std::int64_t CellList::least() const {
  return begins_.least();
}

std::int64_t CellList::most() const {
  if (counts_.empty()) return begins_.most();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t i = 0; i < kept_runs(); ++i) most = std::max(most, begins_[i] + counts_[i] - 1);
  return most;
}

void CellList::tell(Encoder& to) const {
  to.number(size_);
  if (size_ == 0) return;
  tell_numbers(begins_, to);
  to.number(counts_.empty() ? 0 : 1);
  if (!counts_.empty()) tell_numbers(counts_, to);
}

CellList CellList::heard(Decoder& from) {
  CellList list;
  list.size_ = from.number(0, std::numeric_limits<std::int64_t>::max());
  if (list.size_ == 0) return list;
  list.begins_ = heard_numbers(from);
  if (from.number(0, 1) == 1) list.counts_ = heard_numbers(from);
  std::int64_t cells = list.begins_.size();
  if (!list.counts_.empty()) {
    if (list.counts_.size() != cells || list.counts_.least() < 1) throw Malformed("runs without cells");
    cells = 0;
    for (std::int64_t i = 0; i < list.counts_.size(); ++i) cells += list.counts_[i];
  }
  if (cells != list.size_) throw Malformed("a list of another length");
  return list;
}

Elements::Elements(Layout element, CellList cells)
    : element_(std::move(element)), cells_(std::move(cells)), listed_(true) {
  if (size() == 0) return;
  for (const std::int64_t cell : {cells_.least(), cells_.most()})
    for (const std::int64_t bound : {element_.true_lower_bound(), element_.true_upper_bound()})
      narrow(Wide{cell} * element_.extent() + bound, "a list of cells", "a cell", cell);
  narrow(Wide{element_.size()} * cells_.size(), "a list of cells", "the number of cells", cells_.size());
}

std::int64_t Elements::runs() const {
  if (!listed_) return element_.runs();
  if (size() == 0) return 0;
  std::int64_t runs = element_.runs() * cells_.size();
  // A cell continues the one before it if its first byte follows the other's last one.
  const std::int64_t contiguous_stride = end_of(element_) - element_.blocks().front().offset;
  const bool neighbours = element_.extent() == contiguous_stride;
  CellRun before;
  for (std::int64_t i = 0; i < cells_.kept_runs(); ++i) {
    const CellRun run = cells_.kept_run(i);
    if (i > 0 && (run.begin - (before.begin + before.count - 1)) * element_.extent() == contiguous_stride) --runs;
    if (neighbours) runs -= run.count - 1;
    before = run;
  }
  return runs;
}

ByteRange Elements::range() const {
  if (size() == 0) return {};
  ByteRange all{element_.true_lower_bound() + offset_, element_.true_upper_bound() + offset_};
  if (!listed_) return all;
  const auto [low, high] = std::minmax({cells_.least() * element_.extent(), cells_.most() * element_.extent()});
  return {all.begin + low, all.end + high};
}

Elements Elements::moved(std::int64_t by) const {
  Elements further = *this;
  if (listed_)
    further.offset_ += by;
  else
    further.element_ = tasuki::moved(element_, by);
  return further;
}

Layout Elements::layout() const {
  if (!listed_) return element_;
  std::vector<std::int64_t> begins, counts;
  for (std::int64_t i = 0; i < cells_.kept_runs(); ++i) {
    const CellRun run = cells_.kept_run(i);
    begins.push_back(run.begin);
    counts.push_back(run.count);
  }
  return tasuki::moved(Layout::indexed(counts, begins, element_), offset_);
}

Layout joined(std::span<const Elements> parts) {
  std::vector<Layout> layouts;
  for (const Elements& part : parts) layouts.push_back(part.layout());
  return joined(layouts);
}

namespace {

// How a part's list of cells is encoded: there is none, it is that of the part before, or it follows.
enum ListEncoding : std::int64_t { kNone, kAsBefore, kFollows };

}  // namespace

void tell(std::span<const Elements> parts, Encoder& to) {
  const void* before = nullptr;
  for (const Elements& part : parts) {
    to.layout(part.element());
    if (!part.listed()) {
      to.number(kNone);
      continue;
    }
    const bool known = before != nullptr && before == part.cells().identity();
    to.number(known ? kAsBefore : kFollows).number(part.offset()).number(part.element().extent());
    if (!known) part.cells().tell(to);
    before = part.cells().identity();
  }
}

std::vector<Elements> hear_elements(Decoder& from, std::size_t count) {
  std::vector<Elements> parts;
  CellList before;
  while (parts.size() < count) {
    Layout element = from.layout();
    const std::int64_t encoding = from.number(kNone, kFollows);
    if (encoding == kNone) {
      parts.emplace_back(std::move(element));
      continue;
    }
    const std::int64_t offset = from.number();
    element = Layout::resized(element, 0, from.number());  // an encoded layout has no bounds of its own
    if (encoding == kFollows) before = CellList::heard(from);
    parts.push_back(Elements(std::move(element), before).moved(offset));
  }
  return parts;
}

}  // namespace tasuki
