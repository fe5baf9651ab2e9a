// Halo pieces: see halo_pieces.hpp.
#include "grid/halo_pieces.hpp"

#include <algorithm>

namespace tasuki {

namespace {

int owner_of(const Grid& grid, int d, std::int64_t index) {
  int coord = 0;
  while (grid.cut(d, coord + 1) <= index) ++coord;
  return coord;
}

// Walks the product of one segment per dimension.
class Product {
 public:
  Product(const Grid& grid, const std::vector<std::vector<Segment>>& all, bool corners, std::vector<Piece>& out)
      : grid_(grid), corners_(corners), out_(out) {
    for (const auto& list : all) {
      int most = 0;
      for (const auto& s : list) most = std::max(most, s.ordinal + 1);
      radix_.push_back(most);
    }
  }

  void walk(const std::vector<std::vector<const Segment*>>& lists) {
    chosen_.assign(lists.size(), nullptr);
    step(lists, 0, 0);
  }

 private:
  void step(const std::vector<std::vector<const Segment*>>& lists, std::size_t d, int outside) {
    if (d == lists.size()) {
      if (outside > 0) emit();
      return;
    }
    for (const Segment* s : lists[d]) {
      const int now = outside + (s->side != 0 ? 1 : 0);
      if (now > 1 && !corners_) continue;
      chosen_[d] = s;
      step(lists, d + 1, now);
    }
  }

  void emit() {
    Piece piece;
    std::array<int, kMaxDims> owner{};
    std::array<int, kMaxDims> receiver{};
    for (std::size_t d = 0; d < chosen_.size(); ++d) {
      const Segment& s = *chosen_[d];
      owner[d] = s.owner;
      receiver[d] = s.receiver;
      piece.owner_at[d] = s.owner_at;
      piece.receiver_at[d] = s.receiver_at;
      piece.count[d] = s.count;
      piece.seq = piece.seq * radix_[d] + s.ordinal;
      piece.direction += s.side < 0 ? '-' : s.side > 0 ? '+' : '0';
    }
    piece.owner = grid_.rank_at(owner);
    piece.receiver = grid_.rank_at(receiver);
    out_.push_back(piece);
  }

  const Grid& grid_;
  bool corners_;
  std::vector<Piece>& out_;
  std::vector<std::int64_t> radix_;
  std::vector<const Segment*> chosen_;
};

}  // namespace

std::vector<Segment> segments(const Grid& grid, int d, std::int64_t lo, std::int64_t hi, std::int64_t shadow_lo) {
  std::vector<Segment> result;
  const std::int64_t extent = grid.extent(d);
  for (int coord = 0; coord < grid.split(d); ++coord) {
    const std::int64_t begin = grid.cut(d, coord);
    const std::int64_t end = grid.cut(d, coord + 1);
    if (begin == end) continue;  // a rank without cells has no shadow
    int ordinal = 0;
    const auto shadow = [&](std::int64_t from, std::int64_t to, int side) {
      for (std::int64_t at = from; at < to;) {
        if (!grid.periodic(d) && (at < 0 || at >= extent)) {
          ++at;
          continue;
        }
        const std::int64_t global = ((at % extent) + extent) % extent;
        const int owner = owner_of(grid, d, global);
        const std::int64_t count = std::min(to - at, grid.cut(d, owner + 1) - global);
        result.push_back(
            {coord, owner, side, ordinal++, at - begin + shadow_lo, global - grid.cut(d, owner) + shadow_lo, count});
        at += count;
      }
    };
    shadow(begin - lo, begin, -1);
    result.push_back({coord, coord, 0, ordinal++, shadow_lo, shadow_lo, end - begin});
    shadow(end, end + hi, +1);
  }
  return result;
}

std::vector<Piece> halo_pieces(const Grid& grid, const Width& width, const Width& shadow, bool corners, int rank) {
  const auto dims = static_cast<std::size_t>(grid.ndims());
  const auto mine = grid.coords(rank);
  std::vector<std::vector<Segment>> all;
  std::vector<std::vector<const Segment*>> received(dims);
  std::vector<std::vector<const Segment*>> owned(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    all.push_back(segments(grid, static_cast<int>(d), width.lo[d], width.hi[d], shadow.lo[d]));
  }
  for (std::size_t d = 0; d < dims; ++d) {
    for (const auto& s : all[d]) {
      if (s.receiver == mine[d]) received[d].push_back(&s);
      if (s.owner == mine[d]) owned[d].push_back(&s);
    }
  }
  std::vector<Piece> pieces;
  Product product(grid, all, corners, pieces);
  product.walk(received);
  std::vector<Piece> leaving;
  Product(grid, all, corners, leaving).walk(owned);
  for (auto& piece : leaving) {
    if (piece.receiver != rank) pieces.push_back(std::move(piece));  // the rank's own are there already
  }
  return pieces;
}

}  // namespace tasuki
