// The shapes of one-sided paths: see shapes.hpp.
#include "paths/shapes.hpp"

#include <algorithm>
#include <utility>

namespace tasuki {

namespace {

constexpr std::int64_t kSmall = 4 << 10;  // links up to here get the longer ring

// A longer ring lets the sender of small messages run further ahead; the counters are then looked at less often too.
int ring_length(const Link& link) {
  return link.capacity <= kSmall ? 8 : 2;
}

}  // namespace

void PutPath::open_send(Builder& builder, Link& link) const {
  // In alternation the permission for this copy came with the peer's last start, so the wait finds it there.
  builder.wait(link.peer, builder.counter(link.name("ready", link.peer), builder.rank(), counters_),
               link.alternating ? 1 : 0);
}

void PutPath::send(Builder& builder, Link& link) const {
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    builder.put(link.peer, link.src[i], link.dst[i], link.moves[i]->copies, builder.user_step(), builder.user_step());
  }
  builder.signal(link.peer, builder.counter(link.name("arrived", builder.rank()), link.peer, counters_));
}

void PutPath::open_recv(Builder& builder, Link& link) const {
  builder.signal(link.peer, builder.counter(link.name("ready", builder.rank()), link.peer, counters_));
}

void PutPath::recv(Builder& builder, Link& link) const {
  const int wait = builder.wait(link.peer, builder.counter(link.name("arrived", link.peer), builder.rank(), counters_));
  link.commands.assign(link.moves.size(), wait);
}

int EagerPath::counter(Builder& builder, const Link& link, const char* what, int writer, int owner, Home home) const {
  return builder.counter(link.name(what, writer), owner, home);
}

// A stamped counter is none: the stamps in the ring say the same.
int EagerPath::filled(Builder& builder, const Link& link, int writer, int owner) const {
  return counter(builder, link, "filled", writer, owner, home_);
}

int EagerPath::credit(Builder& builder, const Link& link, int writer, int owner) const {
  return counter(builder, link, "credit", writer, owner, home_ == Home::stamped ? Home::device : home_);
}

void EagerPath::open_send(Builder& builder, Link& link) const {
  link.scratch = ring(builder, link, link.peer);
  if (link.mutual) return;
  const int lag = ring_length(link) - (credit_comes_late() ? 1 : 0);
  builder.wait(link.peer, credit(builder, link, link.peer, builder.rank()), lag, true);
}

void EagerPath::send(Builder& builder, Link& link) const {
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : handed_over(link, builder.rounds())) {
    for (const auto& [move, begin, copies] : slice.parts) {
      builder.put(link.peer, link.src[move], link.scratch, pack_side(copies, link.filled + begin, grain()),
                  builder.user_step(), step);
    }
    builder.signal(link.peer, filled(builder, link, builder.rank(), link.peer));
  }
}

void EagerPath::open_recv(Builder& builder, Link& link) const {
  link.scratch = ring(builder, link, builder.rank());
  if (credit_comes_late()) grant(builder, link);
}

void EagerPath::recv(Builder& builder, Link& link) const {
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : handed_over(link, builder.rounds())) {
    builder.wait(link.peer, filled(builder, link, link.peer, builder.rank()));
    for (const auto& [move, begin, copies] : slice.parts) {
      link.delivers(
          move, deliver(builder, link, move, link.scratch, unpack_side(copies, link.filled + begin, grain()), step));
    }
  }
}

void EagerPath::close_recv(Builder& builder, Link& link) const {
  if (!credit_comes_late()) grant(builder, link);
}

void EagerPath::grant(Builder& builder, const Link& link) const {
  if (!link.mutual) builder.signal(link.peer, credit(builder, link, builder.rank(), link.peer));
}

std::int64_t EagerPath::grain() const {
  return home_ == Home::stamped ? kStampedData : 1;
}

int EagerPath::ring(Builder& builder, const Link& link, int receiver) const {
  const int sender = receiver == link.peer ? builder.rank() : link.peer;
  std::int64_t bytes = link.capacity;
  if (grain() > 1) {  // never in chunk loops
    bytes = 0;
    for (const Move* move : link.moves) bytes += packed_bytes(move->copies, grain());
  }
  return builder.buffer(link.name("eager", sender), receiver, Role::scratch, bytes, ring_length(link), home_);
}

namespace {

constexpr std::int64_t kUnit = 64;  // whole elements, and what is aligned stays so

// Consecutive steps of the outermost dimension; without it if there is one.
StridedCopy steps_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end) {
  StridedCopy part = copy;
  part.src_offset += begin * copy.dims[0].src_stride;
  part.dst_offset += begin * copy.dims[0].dst_stride;
  part.dims[0].count = end - begin;
  if (end - begin > 1) return part;
  std::move(part.dims.begin() + 1, part.dims.end(), part.dims.begin());
  part.dims.back() = {};
  --part.ndims;
  return part;
}

StridedCopy bytes_of(const StridedCopy& block, std::int64_t begin, std::int64_t end) {
  StridedCopy part = block;
  part.src_offset += begin;
  part.dst_offset += begin;
  part.block = end - begin;
  return part;
}

// Adds the copy in pieces of at most `most` bytes, or of one unit, and of about equal size.
void cut(const StridedCopy& copy, std::int64_t most, std::vector<StridedCopy>& pieces) {
  if (copy.bytes() <= most) {
    pieces.push_back(copy);
    return;
  }
  const bool steps = copy.ndims > 0;
  const std::int64_t count = steps ? copy.dims[0].count : (copy.block + kUnit - 1) / kUnit;
  const std::int64_t fit = std::max<std::int64_t>(1, most / (steps ? copy.bytes() / count : kUnit));
  const std::int64_t parts = (count + fit - 1) / fit;
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t begin = count * p / parts;
    const std::int64_t end = count * (p + 1) / parts;
    if (steps) {
      cut(steps_of(copy, begin, end), most, pieces);
    } else {
      pieces.push_back(bytes_of(copy, begin * kUnit, std::min(end * kUnit, copy.block)));
    }
  }
}

}  // namespace

std::vector<Slice> slices(const Link& link, std::int64_t most) {
  std::vector<Slice> all(1);
  most = std::max(most, kUnit);
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    std::vector<StridedCopy> pieces;
    for (const StridedCopy& copy : link.moves[i]->copies) cut(copy, most, pieces);
    for (const StridedCopy& piece : pieces) {
      const std::int64_t begin = all.back().begin + all.back().bytes;
      if (all.back().bytes > 0 && all.back().bytes + piece.bytes() > most) all.push_back({begin, 0, {}});
      Slice& slice = all.back();
      if (slice.parts.empty() || slice.parts.back().move != i) slice.parts.push_back({i, begin, {}});
      slice.parts.back().copies.push_back(piece);
      slice.bytes += piece.bytes();
    }
  }
  return all;
}

namespace {

constexpr std::int64_t kLine = 64;               // bytes of a cache line
constexpr std::int64_t kManyLines = 1 << 20;     // bytes of lines that drive each other out of a core's own caches
constexpr std::int64_t kSliceLines = 128 << 10;  // and of those that surely stay there
constexpr std::int64_t kFewLines = 16 << 10;     // and of those that are hardly worth a signal
constexpr std::int64_t kMostInterleaved = 64;

// Bytes of the lines of which only a part is moved.
std::int64_t shared_lines(const Link& link) {
  std::int64_t sum = 0;
  for (const Move* move : link.moves) sum += move->shares_lines() ? move->runs() * kLine : 0;
  return sum;
}

// Part p of `parts` of each large move, and all small ones in the first slice.
std::vector<Slice> interleaved(const Link& link, std::int64_t parts) {
  std::vector<Slice> all;
  std::int64_t at = 0;
  for (std::int64_t p = 0; p < parts; ++p) {
    Slice slice{at, 0, {}};
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      Slice::Part part{i, at, {}};
      for (const StridedCopy& copy : link.moves[i]->copies) {
        const bool whole = copy.ndims == 0 || std::max(copy.bytes(), copy.blocks() * kLine) < kFewLines;
        const std::int64_t begin = whole ? 0 : copy.dims[0].count * p / parts;
        const std::int64_t end = whole ? 0 : copy.dims[0].count * (p + 1) / parts;
        if (whole && p == 0) part.copies.push_back(copy);
        if (begin < end) part.copies.push_back(steps_of(copy, begin, end));
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

std::vector<Slice> EagerPath::handed_over(const Link& link, std::int64_t rounds) const {
  const std::int64_t lines = shared_lines(link);
  const bool adds = std::any_of(link.moves.begin(), link.moves.end(), [](auto* m) { return m->add != DType::none; });
  const auto [enough, slice] = link.mutual ? std::pair{kManyLines, kSliceLines} : std::pair{2 * kFewLines, kFewLines};
  if (home_ == Home::shared && rounds == 1 && !adds && lines > enough) {
    return interleaved(link, std::min(lines / slice, kMostInterleaved));
  }
  std::vector<Slice> all;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    // A slice ends with a move that fills it, and with the last one.
    if (all.empty() || (!link.mutual && all.back().bytes >= slice_)) all.push_back({at, 0, {}});
    const std::int64_t bytes = packed_bytes(link.moves[i]->copies, grain());
    all.back().parts.push_back({i, at, link.moves[i]->copies});
    all.back().bytes += bytes;
    at += bytes;
  }
  return all;
}

bool MessagePath::as_it_is(const Link& link) const {
  const Move& first = *link.moves[0];
  return home_ == Home::own && link.moves.size() == 1 && first.copies.size() == 1 && first.copies[0].ndims == 0;
}

void MessagePath::send(Builder& builder, Link& link) const {
  const bool packs = !as_it_is(link);
  const int scratch =
      packs ? builder.buffer(link.name("out", link.peer), builder.rank(), Role::scratch, link.capacity, 1, home_) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link.bytes()))) {
    if (!packs) {
      builder.send(link.peer, link.src[0], slice.parts[0].copies[0].src_offset, slice.bytes, link.number,
                   builder.user_step());
      continue;
    }
    for (const auto& [move, begin, copies] : slice.parts) {
      builder.copy(link.peer, link.src[move], scratch, pack_side(copies, link.filled + begin), builder.user_step(),
                   step);
    }
    builder.send(link.peer, scratch, link.filled + slice.begin, slice.bytes, link.number, step);
  }
}

void MessagePath::recv(Builder& builder, Link& link) const {
  const bool unpacks = !as_it_is(link) || link.moves[0]->add != DType::none;
  const int scratch =
      unpacks ? builder.buffer(link.name("in", link.peer), builder.rank(), Role::scratch, link.capacity, 1, home_) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link.bytes()))) {
    if (!unpacks) {
      link.delivers(0, builder.recv(link.peer, link.dst[0], slice.parts[0].copies[0].dst_offset, slice.bytes,
                                    link.number, builder.user_step()));
      continue;
    }
    builder.recv(link.peer, scratch, link.filled + slice.begin, slice.bytes, link.number, step);
    for (const auto& [move, begin, copies] : slice.parts) {
      link.delivers(move, deliver(builder, link, move, scratch, unpack_side(copies, link.filled + begin), step));
    }
  }
}

}  // namespace tasuki
