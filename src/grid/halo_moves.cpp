// Halo moves: see halo_moves.hpp.
#include "grid/halo_moves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tasuki {

namespace {

// More than a field has on any rank: its pieces stay together, so that paths can treat them together.
constexpr std::int64_t kPiecesPerField = std::int64_t{1} << 48;

Layout box_layout(const std::vector<std::int64_t>& extents, const HaloBuffer& field, const Index& at,
                  const Index& count) {
  return Layout::subarray(extents, std::span(count.data(), extents.size()), std::span(at.data(), extents.size()),
                          Layout::bytes(field.element_bytes));
}

}  // namespace

std::vector<std::int64_t> memory_extents(const Placement& placement, const HaloBuffer& field, int rank) {
  const Box box = placement.owned(rank);
  std::vector<std::int64_t> extents;
  for (int d = 0; d < box.ndims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    extents.push_back(box.extent(d) + field.shadow.lo[i] + field.shadow.hi[i]);
  }
  // Where there are no cells there are no rows to pad.
  if (std::find(extents.begin(), extents.end(), 0) == extents.end()) extents.back() += field.pad;
  return extents;
}

std::string complaint_about(const Cuts& cuts, const Placement& placement) {
  const std::vector<std::int64_t>& extents = placement.cut.extents;
  if (cuts.size() > extents.size())
    return fmt::format("option 'cuts' has {} dimensions, but a grid has {}", cuts.size(), extents.size());
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    const auto& mine = cuts[d];
    const bool inside = mine.empty() || (mine.front() >= 0 && mine.back() <= extents[d]);
    if (!std::is_sorted(mine.begin(), mine.end()) || !inside)
      return fmt::format("option 'cuts' is {} in dimension {}; it must be ascending, from 0 to {}",
                         fmt::join(mine, ","), d, extents[d]);
  }
  return {};
}

HaloMoves::HaloMoves(std::vector<const Placement*> placements, std::vector<HaloBuffer> fields, bool corners,
                     bool reverse, const Cuts& cuts)
    : placements_(std::move(placements)), fields_(std::move(fields)), reverse_(reverse) {
  std::set<std::string> taken;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    std::string name = fields_[f].name;
    for (std::size_t n = f; !taken.insert(name).second; ++n) name = fmt::format("{}#{}", fields_[f].name, n);
    names_.push_back(std::move(name));
    geometry_.emplace_back(*placements_[f], fields_[f].width, fields_[f].shadow, corners, cuts);
  }
}

std::string HaloMoves::name() const {
  std::vector<std::string> names;
  for (const HaloBuffer& field : fields_) names.push_back(field.name);
  return fmt::format("{} {}", reverse_ ? "reverse halo" : "halo", fmt::join(names, ","));
}

Problem HaloMoves::problem(int rank) const {
  Problem problem;
  problem.operation = name();
  problem.rank = rank;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const HaloBuffer& field = fields_[f];
    const Placement& placement = *placements_[f];
    const int index = static_cast<int>(f);
    problem.buffers.push_back({names_[f], Role::inout});
    for (const Piece& piece : geometry_[f].pieces(rank)) {
      Move move;
      move.seq = index * kPiecesPerField + piece.seq;
      move.src = move.dst = index;
      move.label = fmt::format("{} {}", names_[f], piece.direction);
      const Layout own = box_layout(memory_extents(placement, field, piece.owner), field, piece.owner_at, piece.count);
      const Layout shadow =
          box_layout(memory_extents(placement, field, piece.receiver), field, piece.receiver_at, piece.count);
      move.src_rank = reverse_ ? piece.receiver : piece.owner;
      move.dst_rank = reverse_ ? piece.owner : piece.receiver;
      move.copies = reverse_ ? zip(shadow, own) : zip(own, shadow);
      for (auto& copy : move.copies) copy = reordered(copy);
      if (reverse_) move.add = field.dtype;
      problem.moves.push_back(std::move(move));
    }
  }
  mark_mutual(problem.moves);
  return problem;
}

}  // namespace tasuki
