// Redistribute, as one rank asks for it: see redistribute_rank.hpp.
#include "shapes/redistribute_rank.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "layout/sequence.hpp"

namespace tasuki {

namespace {

LocalCells local_cells(const MovedArray::Local& local, const ArrayDistribution& array, int rank) {
  if (local.strides.empty()) return LocalCells::c_order(array.local(rank), local.cell);
  return {array.local(rank), local.cell, local.strides};
}

// What is wrong with one side of an array; `name` is that of the side.
std::string complaint_about(const MovedArray::Local& local, const ArrayDistribution& array, int rank, const char* name,
                            bool written) {
  if (!local.strides.empty() && local.strides.size() != array.extents.size())
    return fmt::format("the {} has {} strides, but the array has {} dimensions", name, local.strides.size(),
                       array.extents.size());
  const LocalCells cells = local_cells(local, array, rank);
  const ByteRange range = cells.range();
  if (local.bytes >= 0 && range.begin < range.end && (range.begin < 0 || range.end > local.bytes))
    return fmt::format(
        "the memory of the {} is too small: the local array of {} cells has bytes {} to {}, but the memory {} bytes",
        name, fmt::join(cells.extents, " x "), range.begin, range.end - 1, local.bytes);
  if (written && cells.cells_share_bytes())
    return fmt::format("cells of the {} share bytes, which would be written twice: {} cells of {} bytes, strides {}",
                       name, fmt::join(cells.extents, " x "), cells.cell.size(), fmt::join(cells.strides, " "));
  return {};
}

std::string shown(const ArraySide& side) {
  std::string text = side.array.describe();
  for (std::size_t d = 0; d < side.sections.size(); ++d)
    text += fmt::format("{}{} from {} by {}", d == 0 ? "; section " : ", ", side.sections[d].count,
                        side.sections[d].start, side.sections[d].step);
  return text;
}

}  // namespace

std::vector<std::string> RedistributeOfRank::names() const {
  std::vector<std::string> names;
  for (const MovedArray& array : arrays_) names.push_back(array.name);
  return names;
}

std::string RedistributeOfRank::name() const {
  return redistribute_name(names());
}

Agreed RedistributeOfRank::agreed() const {
  Agreed agreed{{"from", shown(from_)},
                {"to", shown(to_)},
                {"axes", fmt::format("{}", fmt::join(axes_, ", "))},
                {"scratch", std::to_string(scratch_)},
                {"number of arrays", std::to_string(arrays_.size())}};
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    agreed.emplace_back(fmt::format("name of array {}", a), arrays_[a].name);
    agreed.emplace_back(fmt::format("bytes of a cell of array {}", arrays_[a].name),
                        std::to_string(arrays_[a].source.cell.size()));
  }
  return agreed;
}

std::string RedistributeOfRank::complaint(const Machine& machine) const {
  if (std::string wrong = complaint_about(from_, to_, axes_, machine.size()); !wrong.empty()) return wrong;
  if (arrays_.empty()) return "argument 'arrays' is empty; give at least one";
  if (std::string wrong = complaint_about_scratch(scratch_); !wrong.empty()) return wrong;
  for (const MovedArray& array : arrays_) {
    std::string wrong;
    const std::int64_t given = array.source.cell.size();
    const std::int64_t taken = array.target.cell.size();
    if (given != taken)
      wrong =
          fmt::format("a cell of the source has {} bytes, but one of the target {}; they must be equal", given, taken);
    if (wrong.empty() && given < 1) wrong = "a cell has no bytes";
    if (wrong.empty()) wrong = complaint_about(array.source, from_.array, rank_, "source", false);
    if (wrong.empty()) wrong = complaint_about(array.target, to_.array, rank_, "target", true);
    if (!wrong.empty()) return fmt::format("array {}: {}", array.name, wrong);
  }
  return {};
}

void RedistributeOfRank::list() {
  sides_.emplace(from_, to_, axes_);
  sent_ = sides_->sent(rank_);
  received_ = sides_->received(rank_);
  std::vector<RedistributeCells>& own = cells_[rank_];
  for (const MovedArray& array : arrays_)
    own.push_back({local_cells(array.source, from_.array, rank_), local_cells(array.target, to_.array, rank_)});
}

std::string RedistributeOfRank::buffer_name(std::size_t buffer) const {
  return fmt::format("the {} of array {}", buffer % 2 == 0 ? "source" : "target", arrays_[buffer / 2].name);
}

std::vector<MemoryUse> RedistributeOfRank::memory() const {
  std::vector<MemoryUse> all;
  const auto add = [&](const LocalCells& cells, bool used) {
    const std::string called = buffer_name(all.size());
    all.push_back({called, called, used ? cells.range() : ByteRange{},
                   ", which redistributions do not know; give two addresses"});
  };
  for (const RedistributeCells& one : cells_.at(rank_)) {
    add(one.source, !sent_.empty());
    add(one.target, !received_.empty());
  }
  return all;
}

Layout RedistributeOfRank::bytes_of(std::size_t buffer, bool written) const {
  const RedistributeCells& own = cells_.at(rank_)[buffer / 2];
  const bool target = buffer % 2 == 1;
  std::vector<Layout> parts;
  if (target && written)
    for (const CommonCells& cells : received_) parts.push_back(sides_->target_bytes(cells, own.target));
  if (!target && !written)
    for (const CommonCells& cells : sent_) parts.push_back(sides_->source_bytes(cells, own.source));
  return joined(parts);
}

std::string RedistributeOfRank::overlapping(std::size_t a, std::size_t b) const {
  return fmt::format(
      "{} and {} overlap in memory: this rank would receive two things into the same bytes; give memory that does not "
      "overlap",
      buffer_name(a), buffer_name(b));
}

bool RedistributeOfRank::copies_first(std::size_t /*written*/, std::size_t read) {
  cells_.at(rank_)[read / 2].copied = true;
  return true;
}

bool RedistributeOfRank::copies() const {
  const auto own = cells_.find(rank_);
  return own != cells_.end() && std::ranges::any_of(own->second, &RedistributeCells::copied);
}

std::vector<int> RedistributeOfRank::named() const {
  std::set<int> others;
  for (const auto* list : {&sent_, &received_})
    for (const CommonCells& cells : *list)
      if (cells.rank != rank_) others.insert(cells.rank);
  return {others.begin(), others.end()};
}

void RedistributeOfRank::tell(int /*hearer*/, Encoder& to) const {
  for (const RedistributeCells& array : cells_.at(rank_)) {
    for (const LocalCells* side : {&array.source, &array.target}) to.layout(side->cell).numbers(side->strides);
    to.number(array.copied ? 1 : 0);
  }
}

void RedistributeOfRank::hear(int rank, Decoder& from) {
  std::vector<RedistributeCells>& theirs = cells_[rank];
  for (const MovedArray& array : arrays_) {
    RedistributeCells& cells = theirs.emplace_back();
    for (const auto& [side, distribution] :
         {std::pair{&cells.source, &from_.array}, std::pair{&cells.target, &to_.array}}) {
      side->extents = distribution->local(rank);
      side->cell = from.layout();
      side->strides = from.numbers();
      if (side->cell.size() != array.source.cell.size() || side->strides.size() != side->extents.size())
        throw Malformed("cells of another array");
    }
    cells.copied = from.number(0, 1) == 1;
  }
}

std::string RedistributeOfRank::misfit() const {
  for (const int rank : named())
    if (!cells_.contains(rank))
      return fmt::format("rank {} makes something else; all ranks must make the same operation", rank);
  return {};
}

Problem RedistributeOfRank::problem(const Machine& /*machine*/) const {
  return redistribute_problem(*sides_, names(), rank_, scratch_, some_copied_,
                              [&](int rank) { return cells_.at(rank); });
}

}  // namespace tasuki
