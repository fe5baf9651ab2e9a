// Protocol `message`: see message.hpp.
#include "protocols/message.hpp"

#include <algorithm>

#include "layout/cut.hpp"

namespace tasuki {

bool MessageProtocol::as_it_is(const Link& link) const {
  const Move& first = *link.moves[0];
  return home_ == Home::own && link.moves.size() == 1 && first.copies.size() == 1 && first.copies[0].ndims == 0;
}

// Whether the link may have less scratch than all that it packs.
bool MessageProtocol::is_limited(const Link& link) const {
  if (cut_ == Cut::never || (as_it_is(link) && link.moves[0]->add == DType::none)) return false;
  return link.scratch_most > 0 && link.scratch_most < link.capacity;
}

std::int64_t MessageProtocol::slice_of(const Link& link) const {
  const Constants& c = *link.constants;
  const std::int64_t bytes = link.bytes();
  if (cut_ == Cut::never) return bytes;
  std::int64_t most = c.message_most;
  if (cut_ == Cut::staged)
    most = std::min(most, std::max(c.staged_slice, (bytes + c.staged_slices - 1) / c.staged_slices));
  return is_limited(link) ? std::min(most, slot_within(link.scratch_most)) : most;
}

std::int64_t MessageProtocol::least_scratch(const Move& move, const Constants& /*constants*/) const {
  if (home_ == Home::own && move.copies.size() == 1 && move.copies[0].ndims == 0) return 0;
  return cut_ == Cut::never ? move.bytes() : std::min(move.bytes(), kCutUnit);
}

// Of all that the link packs, or with a limit of some slots.
int MessageProtocol::scratch(Builder& builder, Link& link, Purpose purpose) const {
  std::int64_t bytes = link.capacity;
  link.slices = 0;
  if (is_limited(link)) {
    link.slot = slice_of(link);
    bytes = slots(link) * link.slot;
  }
  return builder.scratch(purpose, link.number, builder.rank(), link.peer, bytes, 1, home_);
}

void MessageProtocol::send(Builder& builder, Link& link) const {
  const bool packs = !as_it_is(link);
  const int packed = packs ? scratch(builder, link, Purpose::outgoing) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link))) {
    if (!packs) {
      builder.send(link.peer, link.src[0], slice.parts[0].copies[0].src_offset, slice.bytes, link.number,
                   builder.user_step());
      continue;
    }
    const std::int64_t at = place(link, slice);
    for (const auto& [move, begin, copies, pitch] : slice.parts) {
      builder.copy(link.peer, link.src[move], packed, pack_side(copies, at + begin, 1, pitch), builder.user_step(),
                   step);
    }
    builder.send(link.peer, packed, at + slice.begin, slice.bytes, link.number, step);
  }
}

void MessageProtocol::recv(Builder& builder, Link& link) const {
  const bool unpacks = !as_it_is(link) || link.moves[0]->add != DType::none;
  const int packed = unpacks ? scratch(builder, link, Purpose::incoming) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link))) {
    if (!unpacks) {
      link.delivers(0, builder.recv(link.peer, link.dst[0], slice.parts[0].copies[0].dst_offset, slice.bytes,
                                    link.number, builder.user_step()));
      continue;
    }
    const std::int64_t at = place(link, slice);
    builder.recv(link.peer, packed, at + slice.begin, slice.bytes, link.number, step);
    for (const auto& [move, begin, copies, pitch] : slice.parts)
      link.delivers(move, deliver(builder, link, move, packed, unpack_side(copies, at + begin, 1, pitch), step));
  }
}

}  // namespace tasuki
