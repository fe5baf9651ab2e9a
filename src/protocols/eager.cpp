// Protocol `eager`: see eager.hpp.
#include "protocols/eager.hpp"

#include <algorithm>
#include <utility>

#include "layout/cut.hpp"

namespace tasuki {

namespace {

// With a longer ring the sender of small messages can run further ahead, and looks at the counters less often.
int ring_length(const Link& link) {
  const Constants& c = *link.constants;
  return static_cast<int>(link.capacity <= c.eager_small ? c.eager_long_ring : c.eager_short_ring);
}

// Bytes of the cache lines of which only a part is moved.
std::int64_t shared_lines(const Link& link) {
  std::int64_t sum = 0;
  for (const Move* move : link.moves) sum += move->shares_lines() ? move->runs() * link.constants->cache_line : 0;
  return sum;
}

// Slice p has part p of every large move. Small moves are whole in the first slice.
std::vector<Slice> interleaved(const Link& link, std::int64_t parts) {
  const Constants& c = *link.constants;
  std::vector<Slice> all;
  std::int64_t at = 0;
  for (std::int64_t p = 0; p < parts; ++p) {
    Slice slice{at, 0, {}};
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      Slice::Part part{i, at, {}};
      for (const StridedCopy& copy : link.moves[i]->copies) {
        const bool whole = copy.ndims == 0 || std::max(copy.bytes(), copy.blocks() * c.cache_line) < c.few_lines;
        const std::int64_t begin = whole ? 0 : copy.dims[0].count * p / parts;
        const std::int64_t end = whole ? 0 : copy.dims[0].count * (p + 1) / parts;
        if (whole && p == 0) part.copies.push_back(copy);
        if (begin < end) part.copies.push_back(without_single_step(steps_of(copy, begin, end)));
      }
      for (const StridedCopy& copy : part.copies) at += copy.bytes();
      if (!part.copies.empty()) slice.parts.push_back(std::move(part));
    }
    slice.bytes = at - slice.begin;
    if (slice.bytes > 0) all.push_back(std::move(slice));
  }
  return all;
}

}  // namespace

int EagerProtocol::ring(Builder& builder, const Link& link, int receiver) const {
  const int sender = receiver == link.peer ? builder.rank() : link.peer;
  std::int64_t bytes = link.capacity;
  if (grain() > 1) {  // a ring of a chunk loop has no grain
    bytes = 0;
    for (const Move* move : link.moves) bytes += packed_bytes(move->copies, grain());
  }
  return builder.scratch(Purpose::ring, link.number, receiver, sender, bytes, ring_length(link), home_);
}

int EagerProtocol::filled(Builder& builder, const Link& link, int writer, int owner) const {
  return builder.counter(Purpose::filled, link.number, owner, writer, home_);
}

int EagerProtocol::credit(Builder& builder, const Link& link, int writer, int owner) const {
  return builder.counter(Purpose::credit, link.number, owner, writer, home_ == Home::stamped ? Home::device : home_);
}

void EagerProtocol::open_send(Builder& builder, Link& link) const {
  link.scratch = ring(builder, link, link.peer);
  if (link.mutual) return;
  const int lag = ring_length(link) - (credit_comes_late() ? 1 : 0);
  builder.wait(link.peer, credit(builder, link, link.peer, builder.rank()), lag, true);
}

void EagerProtocol::send(Builder& builder, Link& link) const {
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : handed_over(link, builder.rounds())) {
    for (const auto& [move, begin, copies] : slice.parts) {
      builder.put(link.peer, link.src[move], link.scratch, pack_side(copies, link.filled + begin, grain()),
                  builder.user_step(), step);
    }
    builder.signal(link.peer, filled(builder, link, builder.rank(), link.peer));
  }
}

void EagerProtocol::open_recv(Builder& builder, Link& link) const {
  link.scratch = ring(builder, link, builder.rank());
  if (credit_comes_late()) grant(builder, link);
}

void EagerProtocol::recv(Builder& builder, Link& link) const {
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : handed_over(link, builder.rounds())) {
    builder.wait(link.peer, filled(builder, link, link.peer, builder.rank()));
    for (const auto& [move, begin, copies] : slice.parts) {
      link.delivers(
          move, deliver(builder, link, move, link.scratch, unpack_side(copies, link.filled + begin, grain()), step));
    }
  }
}

void EagerProtocol::close_recv(Builder& builder, Link& link) const {
  if (!credit_comes_late()) grant(builder, link);
}

void EagerProtocol::grant(Builder& builder, const Link& link) const {
  if (!link.mutual) builder.signal(link.peer, credit(builder, link, builder.rank(), link.peer));
}

std::vector<Slice> EagerProtocol::handed_over(const Link& link, std::int64_t rounds) const {
  const Constants& c = *link.constants;
  const std::int64_t lines = shared_lines(link);
  const bool adds = std::any_of(link.moves.begin(), link.moves.end(), [](auto* m) { return m->add != DType::none; });
  const auto [enough, slice] =
      link.mutual ? std::pair{c.many_lines, c.slice_lines} : std::pair{2 * c.few_lines, c.few_lines};
  if (home_ == Home::shared && rounds == 1 && !adds && lines > enough) {
    return interleaved(link, std::min(lines / slice, c.most_interleaved));
  }
  std::vector<Slice> all;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    // A move that fills the slice ends it, and so does the last move.
    const bool full = in_slices_ && !link.mutual && !all.empty() && all.back().bytes >= c.eager_slice;
    if (all.empty() || full) all.push_back({at, 0, {}});
    const std::int64_t bytes = packed_bytes(link.moves[i]->copies, grain());
    all.back().parts.push_back({i, at, link.moves[i]->copies});
    all.back().bytes += bytes;
    at += bytes;
  }
  return all;
}

}  // namespace tasuki
