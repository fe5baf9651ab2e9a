// Protocol `message`: see message.hpp.
#include "protocols/message.hpp"

#include <algorithm>
#include <optional>

#include "layout/cut.hpp"

namespace tasuki {

namespace {

// Whether the link's bytes lie in memory, on one side, as they follow each other in its messages.
bool in_order(const Link& link, std::int32_t Move::*buffer, Pattern (StridedCopy::*pattern)() const,
              std::int64_t StridedCopy::*offset) {
  std::optional<std::int64_t> next;
  for (const Move* move : link.moves) {
    if (move->*buffer != link.moves[0]->*buffer) return false;
    for (const StridedCopy& copy : move->copies) {
      if ((copy.*pattern)() > Pattern::contiguous || copy.*offset != next.value_or(copy.*offset)) return false;
      next = copy.*offset + copy.bytes();
    }
  }
  return next.has_value();
}

}  // namespace

bool MessageProtocol::packs(const Link& link) const {
  return home_ != Home::own || !in_order(link, &Move::src, &StridedCopy::src_pattern, &StridedCopy::src_offset);
}

bool MessageProtocol::unpacks(const Link& link) const {
  return home_ != Home::own || !in_order(link, &Move::dst, &StridedCopy::dst_pattern, &StridedCopy::dst_offset) ||
         std::ranges::any_of(link.moves, [](const Move* move) { return move->add != DType::none; });
}

// Whether the link may have less scratch than all that it packs. Both ranks come to the same.
bool MessageProtocol::is_limited(const Link& link) const {
  if (cut_ == Cut::never || (!packs(link) && !unpacks(link))) return false;
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
  const int packed = packs(link) ? scratch(builder, link, Purpose::outgoing) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link))) {
    if (packed < 0) {
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
  const int packed = unpacks(link) ? scratch(builder, link, Purpose::incoming) : -1;
  const std::int64_t step = builder.rounds() > 1 ? link.bytes() : 0;
  for (const Slice& slice : slices(link, slice_of(link))) {
    if (packed < 0) {
      const int command = builder.recv(link.peer, link.dst[0], slice.parts[0].copies[0].dst_offset, slice.bytes,
                                       link.number, builder.user_step());
      for (const Slice::Part& part : slice.parts) link.delivers(part.move, command);
      continue;
    }
    const std::int64_t at = place(link, slice);
    builder.recv(link.peer, packed, at + slice.begin, slice.bytes, link.number, step);
    for (const auto& [move, begin, copies, pitch] : slice.parts)
      link.delivers(move, deliver(builder, link, move, packed, unpack_side(copies, at + begin, 1, pitch), step));
  }
}

}  // namespace tasuki
