// Protocol `message`: see message.hpp.
#include "protocols/message.hpp"

#include <algorithm>

namespace tasuki {

bool MessageProtocol::as_it_is(const Link& link) const {
  const Move& first = *link.moves[0];
  return home_ == Home::own && link.moves.size() == 1 && first.copies.size() == 1 && first.copies[0].ndims == 0;
}

std::int64_t MessageProtocol::slice_of(const Link& link) const {
  const Constants& c = *link.constants;
  const std::int64_t bytes = link.bytes();
  if (cut_ == Cut::never) return bytes;
  if (cut_ == Cut::limit) return c.message_most;
  return std::min(c.message_most, std::max(c.staged_slice, (bytes + c.staged_slices - 1) / c.staged_slices));
}

void MessageProtocol::send(Builder& builder, Link& link) const {
  const bool packs = !as_it_is(link);
  const int scratch =
      packs ? builder.scratch(Purpose::outgoing, link.number, builder.rank(), link.peer, link.capacity, 1, home_) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link))) {
    if (!packs) {
      builder.send(link.peer, link.src[0], slice.parts[0].copies[0].src_offset, slice.bytes, link.number,
                   builder.user_step());
      continue;
    }
    for (const auto& [move, begin, copies, pitch] : slice.parts) {
      builder.copy(link.peer, link.src[move], scratch, pack_side(copies, link.filled + begin, 1, pitch),
                   builder.user_step(), step);
    }
    builder.send(link.peer, scratch, link.filled + slice.begin, slice.bytes, link.number, step);
  }
}

void MessageProtocol::recv(Builder& builder, Link& link) const {
  const bool unpacks = !as_it_is(link) || link.moves[0]->add != DType::none;
  const int scratch =
      unpacks ? builder.scratch(Purpose::incoming, link.number, builder.rank(), link.peer, link.capacity, 1, home_)
              : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link))) {
    if (!unpacks) {
      link.delivers(0, builder.recv(link.peer, link.dst[0], slice.parts[0].copies[0].dst_offset, slice.bytes,
                                    link.number, builder.user_step()));
      continue;
    }
    builder.recv(link.peer, scratch, link.filled + slice.begin, slice.bytes, link.number, step);
    for (const auto& [move, begin, copies, pitch] : slice.parts) {
      link.delivers(move,
                    deliver(builder, link, move, scratch, unpack_side(copies, link.filled + begin, 1, pitch), step));
    }
  }
}

}  // namespace tasuki
