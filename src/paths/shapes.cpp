// The shapes of one-sided paths: see shapes.hpp.
#include "paths/shapes.hpp"

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

bool MessagePath::as_it_is(const Link& link) const {
  const Move& first = *link.moves[0];
  return home_ == Home::own && link.moves.size() == 1 && first.copies.size() == 1 && first.copies[0].ndims == 0;
}

void MessagePath::send(Builder& builder, Link& link) const {
  const Move& first = *link.moves[0];
  if (as_it_is(link)) {
    builder.send(link.peer, link.src[0], first.copies[0].src_offset, first.bytes(), link.number, builder.user_step());
    return;
  }
  const int scratch =
      builder.buffer(link.name("out", link.peer), builder.rank(), Role::scratch, link.capacity, 1, home_);
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  std::int64_t offset = link.filled;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    builder.copy(link.peer, link.src[i], scratch, pack_side(link.moves[i]->copies, offset), builder.user_step(), step);
    offset += link.moves[i]->bytes();
  }
  builder.send(link.peer, scratch, link.filled, link.bytes(), link.number, step);
}

void MessagePath::recv(Builder& builder, Link& link) const {
  const Move& first = *link.moves[0];
  if (as_it_is(link) && first.add == DType::none) {
    link.commands.push_back(builder.recv(link.peer, link.dst[0], first.copies[0].dst_offset, first.bytes(), link.number,
                                         builder.user_step()));
    return;
  }
  const int scratch =
      builder.buffer(link.name("in", link.peer), builder.rank(), Role::scratch, link.capacity, 1, home_);
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  builder.recv(link.peer, scratch, link.filled, link.bytes(), link.number, step);
  std::int64_t offset = link.filled;
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    link.commands.push_back(deliver(builder, link, i, scratch, unpack_side(link.moves[i]->copies, offset), step));
    offset += link.moves[i]->bytes();
  }
}

}  // namespace tasuki
