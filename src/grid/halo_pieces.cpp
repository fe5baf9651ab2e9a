// Halo pieces: see halo_pieces.hpp.
#include "grid/halo_pieces.hpp"

#include <algorithm>

namespace tasuki {

namespace {

// The coordinate whose box has the cell; of several with equal cuts the one that is not empty.
int owner_of(const std::vector<std::int64_t>& cuts, std::int64_t index) {
  return static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), index) - cuts.begin()) - 1;
}

// Of so many cells from a global index on, those before the next of `cuts`.
std::int64_t until_cut(const std::vector<std::int64_t>& cuts, std::int64_t global, std::int64_t count) {
  const auto next = std::upper_bound(cuts.begin(), cuts.end(), global);
  return next == cuts.end() ? count : std::min(count, *next - global);
}

// The same of cells that go down from a global index.
std::int64_t down_to_cut(const std::vector<std::int64_t>& cuts, std::int64_t global, std::int64_t count) {
  const auto next = std::upper_bound(cuts.begin(), cuts.end(), global);
  return next == cuts.begin() ? count : std::min(count, global - *(next - 1) + 1);
}

// The segments of a dimension for every coordinate.
std::vector<Segment> segments_of(const Decomposition& cut, int d, std::int64_t lo, std::int64_t hi,
                                 std::int64_t shadow_lo, const std::vector<std::int64_t>& more_cuts, const Edge& below,
                                 const Edge& above) {
  std::vector<Segment> result;
  const auto dim = static_cast<std::size_t>(d);
  const std::vector<std::int64_t>& cuts = cut.cuts[dim];
  const std::int64_t extent = cut.extents[dim];
  for (int coord = 0; coord < cut.split[dim]; ++coord) {
    const std::int64_t begin = cuts[static_cast<std::size_t>(coord)];
    const std::int64_t end = cuts[static_cast<std::size_t>(coord) + 1];
    if (begin == end) continue;  // a rank without cells has no shadow
    int ordinal = 0;
    // Outside the grid. The global indices of a cell and of its image have the sum `mirror`.
    const auto outside = [&](std::int64_t from, std::int64_t to, int side, const Edge& edge, std::int64_t mirror) {
      for (std::int64_t at = from; at < to && edge.mirror != Edge::Mirror::none;) {
        const std::int64_t global = mirror - at;
        const int owner = owner_of(cuts, global);
        const std::int64_t first = cuts[static_cast<std::size_t>(owner)];
        const std::int64_t count = down_to_cut(more_cuts, global, std::min(to - at, global - first + 1));
        result.push_back({coord, owner, side, ordinal++, at - begin + shadow_lo, global - first + shadow_lo, count,
                          true, edge.negates});
        at += count;
      }
    };
    const auto shadow = [&](std::int64_t from, std::int64_t to, int side) {
      if (!cut.periodic[dim]) {
        from = std::clamp<std::int64_t>(from, 0, extent);
        to = std::clamp<std::int64_t>(to, 0, extent);
      }
      for (std::int64_t at = from; at < to;) {
        const std::int64_t global = ((at % extent) + extent) % extent;
        const int owner = owner_of(cuts, global);
        const std::int64_t count =
            until_cut(more_cuts, global, std::min(to - at, cuts[static_cast<std::size_t>(owner) + 1] - global));
        result.push_back({coord, owner, side, ordinal++, at - begin + shadow_lo,
                          global - cuts[static_cast<std::size_t>(owner)] + shadow_lo, count});
        at += count;
      }
    };
    outside(begin - lo, std::min<std::int64_t>(begin, 0), -1, below, below.mirror == Edge::Mirror::face ? -1 : 0);
    shadow(begin - lo, begin, -1);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t count = until_cut(more_cuts, at, end - at);
      result.push_back({coord, coord, 0, ordinal++, at - begin + shadow_lo, at - begin + shadow_lo, count});
      at += count;
    }
    shadow(end, end + hi, +1);
    outside(std::max(end, extent), end + hi, +1, above,
            above.mirror == Edge::Mirror::face ? 2 * extent - 1 : 2 * extent - 2);
  }
  return result;
}

// Pieces of one direction, which is the same as the opposite one, form pairs along the first dimension that they cross.
// Every second pair has its turn; in a ring of an odd number of ranks the pair that closes it has one of its own.
std::int64_t round_of(const Decomposition& cut, const std::string& direction, const std::array<int, kMaxDims>& owner,
                      const std::array<int, kMaxDims>& receiver) {
  const std::size_t first = direction.find_first_not_of('0');
  if (first == std::string::npos) return 0;
  const bool below = direction[first] == '-';  // the owner is
  std::int64_t pattern = 0;
  for (const char side : direction) pattern = 3 * pattern + (side == '0' ? 0 : (side == '-') == below ? 1 : 2);
  const int low = below ? owner[first] : receiver[first];
  const int high = below ? receiver[first] : owner[first];
  const int turn = high <= low && cut.split[first] % 2 == 1 ? 2 : low % 2;
  return 3 * pattern + turn;
}

}  // namespace

HaloGeometry::HaloGeometry(const Placement& placement, const Width& width, const Width& shadow, bool corners,
                           const Cuts& cuts, const Edges& edges)
    : placement_(placement), corners_(corners) {
  const Decomposition& cut = placement.cut;
  for (int d = 0; d < cut.ndims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    Dimension dim;
    dim.all = segments_of(cut, d, width.lo[i], width.hi[i], shadow.lo[i],
                          i < cuts.size() ? cuts[i] : std::vector<std::int64_t>(), edges.lo[i], edges.hi[i]);
    dim.received.resize(static_cast<std::size_t>(cut.split[i]));
    dim.owned.resize(static_cast<std::size_t>(cut.split[i]));
    for (std::size_t s = 0; s < dim.all.size(); ++s) {
      const Segment& segment = dim.all[s];
      dim.received[static_cast<std::size_t>(segment.receiver)].push_back(static_cast<int>(s));
      dim.owned[static_cast<std::size_t>(segment.owner)].push_back(static_cast<int>(s));
      dim.radix = std::max<std::int64_t>(dim.radix, segment.ordinal + 1);
    }
    dims_.push_back(std::move(dim));
  }
}

Piece HaloGeometry::piece(const std::vector<const Segment*>& chosen) const {
  Piece piece;
  std::array<int, kMaxDims> owner{};
  std::array<int, kMaxDims> receiver{};
  for (std::size_t d = 0; d < chosen.size(); ++d) {
    const Segment& s = *chosen[d];
    owner[d] = s.owner;
    receiver[d] = s.receiver;
    piece.owner_at[d] = s.owner_at;
    piece.receiver_at[d] = s.receiver_at;
    piece.count[d] = s.count;
    piece.mirrored[d] = s.mirrored;
    piece.negated = piece.negated != s.negated;
    piece.seq = piece.seq * dims_[d].radix + s.ordinal;
    piece.direction += s.side < 0 ? '-' : s.side > 0 ? '+' : '0';
  }
  piece.round = round_of(placement_.cut, piece.direction, owner, receiver);
  piece.owner = placement_.rank_at(owner);
  piece.receiver = placement_.rank_at(receiver);
  return piece;
}

// The product of one segment per dimension; at least one of them is shadow.
void HaloGeometry::walk(const Lists& lists, std::size_t d, int outside, std::vector<const Segment*>& chosen,
                        std::vector<Piece>& out) const {
  if (d == lists.size()) {
    if (outside > 0) out.push_back(piece(chosen));
    return;
  }
  for (const int index : *lists[d]) {
    const Segment& s = dims_[d].all[static_cast<std::size_t>(index)];
    const int now = outside + (s.side != 0 ? 1 : 0);
    if (now > 1 && !corners_) continue;
    chosen[d] = &s;
    walk(lists, d + 1, now, chosen, out);
  }
}

std::vector<Piece> HaloGeometry::pieces(int rank) const {
  const auto mine = placement_.coords(rank);
  Lists received;
  Lists owned;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    received.push_back(&dims_[d].received[static_cast<std::size_t>(mine[d])]);
    owned.push_back(&dims_[d].owned[static_cast<std::size_t>(mine[d])]);
  }
  std::vector<Piece> pieces;
  std::vector<const Segment*> chosen(dims_.size());
  walk(received, 0, 0, chosen, pieces);
  std::vector<Piece> leaving;
  walk(owned, 0, 0, chosen, leaving);
  for (auto& piece : leaving) {
    if (piece.receiver != rank) pieces.push_back(std::move(piece));  // the rank's own are there already
  }
  return pieces;
}

}  // namespace tasuki
