// The shapes of one-sided paths: see shapes.hpp.
#include "paths/shapes.hpp"

#include <algorithm>

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
  builder.wait(link.peer, credit(builder, link, link.peer, builder.rank()), ring_length(link), true);
}

void EagerPath::send(Builder& builder, Link& link) const {
  std::int64_t offset = link.filled;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    const auto copies = pack_side(link.moves[i]->copies, offset);
    builder.put(link.peer, link.src[i], link.scratch, copies, builder.user_step(),
                builder.rounds() > 1 ? link.bytes() : 0);
    offset += link.moves[i]->bytes();
    if (slice_ends(link, i)) builder.signal(link.peer, filled(builder, link, builder.rank(), link.peer));
  }
}

void EagerPath::open_recv(Builder& builder, Link& link) const {
  link.scratch = ring(builder, link, builder.rank());
}

void EagerPath::recv(Builder& builder, Link& link) const {
  std::int64_t offset = link.filled;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    if (i == 0 || slice_ends(link, i - 1)) {
      builder.wait(link.peer, filled(builder, link, link.peer, builder.rank()));
    }
    const auto copies = unpack_side(link.moves[i]->copies, offset);
    link.commands.push_back(deliver(builder, link, i, link.scratch, copies, builder.rounds() > 1 ? link.bytes() : 0));
    offset += link.moves[i]->bytes();
  }
}

void EagerPath::close_recv(Builder& builder, Link& link) const {
  if (!link.mutual) builder.signal(link.peer, credit(builder, link, builder.rank(), link.peer));
}

// A slice ends with a move that fills it, and with the last one.
bool EagerPath::slice_ends(const Link& link, std::size_t move) const {
  if (move + 1 == link.moves.size()) return true;
  if (link.mutual) return false;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i <= move; ++i) {
    bytes += link.moves[i]->bytes();
    if (bytes < slice_) continue;
    if (i == move) return true;
    bytes = 0;
  }
  return false;
}

int EagerPath::ring(Builder& builder, const Link& link, int receiver) const {
  const int sender = receiver == link.peer ? builder.rank() : link.peer;
  return builder.buffer(link.name("eager", sender), receiver, Role::scratch, link.capacity, ring_length(link), home_);
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
  link.commands.assign(link.moves.size(), -1);
  link.first_commands = link.commands;
  const auto delivers = [&link](std::size_t move, int command) {
    link.commands[move] = command;
    if (link.first_commands[move] < 0) link.first_commands[move] = command;
  };
  for (const Slice& slice : slices(link, slice_of(link.bytes()))) {
    if (!unpacks) {
      delivers(0, builder.recv(link.peer, link.dst[0], slice.parts[0].copies[0].dst_offset, slice.bytes, link.number,
                               builder.user_step()));
      continue;
    }
    builder.recv(link.peer, scratch, link.filled + slice.begin, slice.bytes, link.number, step);
    for (const auto& [move, begin, copies] : slice.parts) {
      delivers(move, deliver(builder, link, move, scratch, unpack_side(copies, link.filled + begin), step));
    }
  }
}

}  // namespace tasuki
