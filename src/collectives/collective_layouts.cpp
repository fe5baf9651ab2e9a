// Collective: memory that is not contiguous. See collective.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectives/collective.hpp"
#include "layout/counted.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

bool whole_elements(const Layout& layout, std::int64_t element) {
  return std::all_of(layout.blocks().begin(), layout.blocks().end(),
                     [&](const Block& nest) { return nest.bytes % element == 0; });
}

}  // namespace

void Collective::place_layouts() {
  const bool in_one = both();
  const bool one_is_in = kind() == CollectiveKind::broadcast;
  for (const int buffer : {in(), out()}) {
    if (in_one && !sequences_[0].empty()) break;
    const bool is_in = in_one ? one_is_in : buffer == in();
    const std::vector<Layout>& layouts = is_in ? shape_.in_layouts : shape_.out_layouts;
    const char* const name = is_in ? "in_layouts" : "out_layouts";
    if (layouts.empty()) continue;
    if (std::ssize(layouts) != ranks())
      throw Error(fmt::format("argument '{}' has {} for {}", name, counted(std::ssize(layouts), "layout"),
                              counted(ranks(), "rank")));
    for (int rank = 0; rank < ranks(); ++rank) {
      const Layout& layout = layouts[static_cast<std::size_t>(rank)];
      const std::int64_t bytes = bytes_of(rank, buffer);
      if (layout.size() != bytes)
        throw Error(fmt::format("argument '{}': that of rank {} ({}) names {} bytes; it must name {}", name, rank,
                                layout.describe(), layout.size(), bytes));
      const bool written = buffer == out() && !(one_is_in && rank == root());
      if (written && layout.overlaps())
        throw Error(
            fmt::format("argument '{}': that of rank {} ({}) names a byte twice, which memory that is written "
                        "must not",
                        name, rank, layout.describe()));
      if (reduces() && !whole_elements(layout, element_))
        throw Error(
            fmt::format("argument '{}': that of rank {} ({}) has pieces that are no whole number of elements "
                        "of {}",
                        name, rank, layout.describe(), to_string(type())));
      sequences_[buffer].emplace_back(layout);
    }
  }
}

std::int64_t Collective::begins_at(int rank, int buffer) const {
  const Sequence* const its = sequence(rank, buffer);
  return its == nullptr ? 0 : its->whole().true_lower_bound();
}

std::int64_t Collective::span_of(int rank, int buffer) const {
  const Sequence* const its = sequence(rank, buffer);
  if (its == nullptr) return bytes_of(rank, buffer);
  return its->whole().true_upper_bound() - its->whole().true_lower_bound();
}

std::vector<StridedCopy> Collective::copies(int from, Place src, int to, Place dst, std::int64_t bytes) const {
  const Sequence* const source = sequence(from, src.buffer);
  const Sequence* const target = sequence(to, dst.buffer);
  if (source == nullptr && target == nullptr) {
    StridedCopy copy;
    copy.src_offset = src.offset;
    copy.dst_offset = dst.offset;
    copy.block = bytes;
    return {copy};
  }
  const auto part = [&](const Sequence* its, int rank, const Place& place) {
    if (its == nullptr) return moved(Layout::bytes(bytes), place.offset);
    return moved(its->part(place.offset, bytes), -begins_at(rank, place.buffer));
  };
  std::vector<StridedCopy> all;
  for (const StridedCopy& copy : zip(part(source, from, src), part(target, to, dst))) all.push_back(reordered(copy));
  return all;
}

}  // namespace tasuki
