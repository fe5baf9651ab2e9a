// Protocol `eager`: see eager.hpp.
#include "protocols/eager.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "layout/cut.hpp"

namespace tasuki {

namespace {

constexpr std::size_t kPartnerWithin = 64;  // moves that are looked at for one to take turns with

// With a longer ring the sender of small messages can run further ahead, and looks at the counters less often. In host
// memory a longer ring is also less in the caches of the core that writes it again: lines that the other core has read
// meanwhile have to be taken from it.
int ring_length(std::int64_t capacity, const Constants& c, Home home) {
  if (capacity <= c.eager_small) return static_cast<int>(c.eager_long_ring);
  if (home != Home::shared) return static_cast<int>(c.eager_short_ring);
  return static_cast<int>(
      std::clamp(c.eager_epochs / capacity, c.eager_short_ring, std::max(c.eager_short_ring, c.eager_most_epochs)));
}

int ring_length(const Link& link, Home home) {
  return ring_length(link.capacity, *link.constants, home);
}

// Whether a ring of whole epochs is more than the link may have.
bool is_limited(const Link& link, Home home) {
  return home == Home::shared && link.scratch_most > 0 && link.scratch_most < link.capacity * ring_length(link, home);
}

// Bytes of the cache lines of which only a part is moved.
std::int64_t shared_lines(const Link& link) {
  std::int64_t sum = 0;
  for (const Move* move : link.moves) sum += move->shares_lines() ? move->runs() * link.constants->cache_line : 0;
  return sum;
}

bool is_large(const StridedCopy& copy, const Constants& c) {
  return copy.ndims > 0 && std::max(copy.bytes(), copy.blocks() * c.cache_line) >= c.few_lines;
}

// Both have single blocks that lie alike in one buffer, a row of cache lines apart: the two faces of a dimension whose
// cells are strided. Then the end of a row of cells lies in, or next to, the cache line where the next row begins.
bool are_partners(const Link& link, std::size_t i, std::size_t j) {
  constexpr std::int64_t page = 4096;  // rows further apart cost a page each: taking turns would look up more of them
  const Move& a = *link.moves[i];
  const Move& b = *link.moves[j];
  if (a.src != b.src || a.dst != b.dst || a.copies.size() != 1 || b.copies.size() != 1) return false;
  const StridedCopy& one = a.copies[0];
  const StridedCopy& other = b.copies[0];
  if (one.block != other.block || one.ndims != other.ndims || one.dims != other.dims) return false;
  if (one.listed() || other.listed() || one.ndims == kMaxDims || !is_large(one, *link.constants) ||
      2 * one.block > link.constants->cache_line) {
    return false;
  }
  const auto& inner = one.dims[static_cast<std::size_t>(one.ndims) - 1];
  return std::abs(inner.src_stride) < page && std::abs(inner.dst_stride) < page;
}

// Per move, the move with which it takes turns in the ring, block by block; itself if there is none.
std::vector<std::size_t> partners(const Link& link, bool may_take_turns) {
  std::vector<std::size_t> all(link.moves.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (!may_take_turns) return all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != i) continue;
    const std::size_t end = std::min(all.size(), i + kPartnerWithin);
    for (std::size_t j = i + 1; j < end; ++j) {
      if (all[j] != j || !are_partners(link, i, j)) continue;
      std::swap(all[i], all[j]);
      break;
    }
  }
  return all;
}

// Adds strided copies of move i, and the same of its partner, to the slice. Returns where the next ones begin.
std::int64_t lay(const Link& link, Slice& slice, std::size_t i, std::size_t partner, std::int64_t at,
                 const std::vector<StridedCopy>& copies, const std::vector<StridedCopy>& of_partner,
                 std::int64_t grain) {
  const std::int64_t block = link.moves[i]->copies.empty() ? 0 : link.moves[i]->copies[0].block;
  slice.parts.push_back({i, at, copies, partner == i ? 0 : 2 * block});
  if (partner != i) slice.parts.push_back({partner, at + block, of_partner, 2 * block});
  return at + packed_bytes(copies, grain) + (partner == i ? 0 : packed_bytes(of_partner, grain));
}

// Part p of every large strided copy of a move. Small ones are whole in the first part.
std::vector<StridedCopy> part_of(const Move& move, std::int64_t p, std::int64_t parts, const Constants& c) {
  std::vector<StridedCopy> result;
  for (const StridedCopy& copy : move.copies) {
    if (!is_large(copy, c)) {
      if (p == 0) result.push_back(copy);
      continue;
    }
    const std::int64_t begin = copy.dims[0].count * p / parts;
    const std::int64_t end = copy.dims[0].count * (p + 1) / parts;
    if (begin < end) result.push_back(without_single_step(steps_of(copy, begin, end)));
  }
  return result;
}

// Slice p has part p of every large move. Small moves are whole in the first slice.
std::vector<Slice> interleaved(const Link& link, std::int64_t parts, const std::vector<std::size_t>& partner) {
  const Constants& c = *link.constants;
  std::vector<Slice> all;
  std::int64_t at = 0;
  for (std::int64_t p = 0; p < parts; ++p) {
    Slice slice{at, 0, {}};
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      if (partner[i] < i) continue;
      const auto copies = part_of(*link.moves[i], p, parts, c);
      if (!copies.empty()) {
        at = lay(link, slice, i, partner[i], at, copies, part_of(*link.moves[partner[i]], p, parts, c), 1);
      }
    }
    slice.bytes = at - slice.begin;
    if (slice.bytes > 0) all.push_back(std::move(slice));
  }
  return all;
}

constexpr std::int64_t kMostSlices = 256;  // of an epoch, about: each has commands of its own

// Whether slices are made of whole moves only.
bool has_whole_moves(const Link& link) {
  return std::any_of(link.moves.begin(), link.moves.end(), [](const Move* move) {
    return move->shares_lines() || (move->chunk > 0 && move->bytes() / move->chunk > kMostSlices);
  });
}

}  // namespace

// Bytes of a slot of the link's ring; 0 if the ring is one of whole epochs.
std::int64_t EagerProtocol::slot_of(const Link& link) const {
  const Constants& c = *link.constants;
  const std::int64_t slot = link.mutual ? c.eager_slot : c.eager_step;
  if (is_limited(link, home_))  // of redistributions alone, which combine nothing
    return std::min(slot, slot_within(link.scratch_most));
  if (home_ != Home::shared || link.capacity <= (link.mutual ? c.eager_large : slot) || has_whole_moves(link)) return 0;
  const std::int64_t units = std::max(slot, link.capacity / kMostSlices) / kCutUnit;
  const std::int64_t least = (link.cut_unit() + kCutUnit - 1) / kCutUnit;
  return std::max(units, least) * kCutUnit;
}

std::int64_t EagerProtocol::least_scratch(const Move& move, const Constants& constants) const {
  if (home_ == Home::shared) return kCutUnit;
  return packed_bytes(move.copies, grain()) * ring_length(move.bytes(), constants, home_);
}

void EagerProtocol::open(Builder& builder, Link& link, int receiver) const {
  const int sender = receiver == link.peer ? builder.rank() : link.peer;
  link.slot = slot_of(link);
  std::int64_t bytes = link.slot > 0 ? slots(link) * link.slot : link.capacity;
  if (grain() > 1) {  // a ring of a chunk loop has no grain
    bytes = 0;
    for (const Move* move : link.moves) bytes += packed_bytes(move->copies, grain());
  }
  const int epochs = link.slot > 0 ? 1 : ring_length(link, home_);
  link.scratch = builder.scratch(Purpose::ring, link.number, receiver, sender, bytes, epochs, home_);
}

int EagerProtocol::filled(Builder& builder, const Link& link, int writer, int owner) const {
  return builder.counter(Purpose::filled, link.number, owner, writer, home_);
}

int EagerProtocol::credit(Builder& builder, const Link& link, int writer, int owner) const {
  return builder.counter(Purpose::credit, link.number, owner, writer, home_ == Home::ll ? Home::device : home_);
}

// The first slices use slots that the last ones of the epoch before have used.
void EagerProtocol::await_slot(Builder& builder, Link& link) const {
  const int counter = credit(builder, link, link.peer, builder.rank());
  if (link.slices < slots(link)) {
    link.early.push_back(builder.wait_for_last(link.peer, counter));
  } else {
    builder.wait(link.peer, counter);
  }
}

void EagerProtocol::open_send(Builder& builder, Link& link) const {
  open(builder, link, link.peer);
  if (!credit_by_epochs(link)) return;
  const int lag = ring_length(link, home_) - (credit_comes_late() ? 1 : 0);
  builder.wait(link.peer, credit(builder, link, link.peer, builder.rank()), lag, true);
}

void EagerProtocol::send(Builder& builder, Link& link) const {
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : handed_over(link, builder.rounds())) {
    if (link.slot > 0) await_slot(builder, link);
    const std::int64_t at = place(link, slice);
    for (const auto& [move, begin, copies, pitch] : slice.parts) {
      builder.put(link.peer, link.src[move], link.scratch, pack_side(copies, at + begin, grain(), pitch),
                  builder.user_step(), step);
    }
    builder.signal(link.peer, filled(builder, link, builder.rank(), link.peer));
  }
}

void EagerProtocol::close_send(Builder& builder, Link& link) const {
  const std::int64_t last = link.slices - 1;
  for (std::int64_t slot = 0; slot < std::ssize(link.early); ++slot) {
    const std::int64_t user = last - (last - slot) % slots(link);  // the last slice in this slot
    builder.number(link.early[static_cast<std::size_t>(slot)], static_cast<int>(user));
  }
}

void EagerProtocol::open_recv(Builder& builder, Link& link) const {
  open(builder, link, builder.rank());
  if (credit_comes_late()) grant(builder, link);
}

void EagerProtocol::recv(Builder& builder, Link& link) const {
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : handed_over(link, builder.rounds())) {
    builder.wait(link.peer, filled(builder, link, link.peer, builder.rank()));
    const std::int64_t at = place(link, slice);
    for (const auto& [move, begin, copies, pitch] : slice.parts) {
      link.delivers(move,
                    deliver(builder, link, move, link.scratch, unpack_side(copies, at + begin, grain(), pitch), step));
    }
    if (link.slot > 0) builder.signal(link.peer, credit(builder, link, builder.rank(), link.peer));
  }
}

void EagerProtocol::close_recv(Builder& builder, Link& link) const {
  if (!credit_comes_late()) grant(builder, link);
}

void EagerProtocol::grant(Builder& builder, const Link& link) const {
  if (credit_by_epochs(link)) builder.signal(link.peer, credit(builder, link, builder.rank(), link.peer));
}

std::vector<Slice> EagerProtocol::handed_over(const Link& link, std::int64_t rounds) const {
  if (link.slot > 0) return slices(link, link.slot);
  const Constants& c = *link.constants;
  // The parts of a transfer are moves of their own. Other operations have one large move.
  if (in_slices_ && !link.mutual && rounds == 1 && link.capacity >= 2 * c.transfer_part && !has_whole_moves(link)) {
    const std::int64_t part = std::max(c.transfer_part, link.capacity / c.transfer_parts);
    return slices(link, (part + kCutUnit - 1) / kCutUnit * kCutUnit);
  }
  const std::int64_t lines = shared_lines(link);
  const bool adds = std::any_of(link.moves.begin(), link.moves.end(), [](auto* m) { return m->add != DType::none; });
  const bool free_order = home_ == Home::shared && rounds == 1 && !adds;
  const auto partner = partners(link, free_order);
  const auto [enough, slice] =
      link.mutual ? std::pair{c.many_lines, c.slice_lines} : std::pair{2 * c.few_lines, c.few_lines};
  if (free_order && lines > enough) return interleaved(link, std::min(lines / slice, c.most_interleaved), partner);
  std::vector<Slice> all;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    if (partner[i] < i) continue;
    // A move that fills the slice ends it, and so does the last move.
    const bool full = in_slices_ && !link.mutual && !all.empty() && all.back().bytes >= c.eager_slice;
    if (all.empty() || full) all.push_back({at, 0, {}});
    at = lay(link, all.back(), i, partner[i], at, link.moves[i]->copies, link.moves[partner[i]]->copies, grain());
    all.back().bytes = at - all.back().begin;
  }
  return all;
}

}  // namespace tasuki
