// Protocol `message`: packed contiguous messages, carried by a library such as MPI or NCCL. If all bytes of a link are
// contiguous on one side, and messages may lie in the user's memory, that side sends or receives without packing. A
// link that is larger than a message is cut into several, each with its own part of the staging memory: one travels
// while the next is packed and the last is unpacked. They have one tag; both sides start them in the order of the lane.
// With a limit for scratch, messages are so small that two fit, and use its slots in turn. A lane waits for the message
// that lies in a slot before it packs the next one there.
//
//   sender's lane:    { copy (pack) ...   send } for each slice
//   receiver's lane:  { recv              copy (unpack, reduce) ... } for each slice
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class MessageProtocol final : public Protocol {
 public:
  enum class Cut : std::uint8_t {
    never,   ///< one message a link
    limit,   ///< cut at the largest message of MPI
    staged,  ///< cut into several, so that packing and travelling overlap
  };
  /// Staging memory is of the kind `home`. With `Home::own`, messages may also lie in the user's memory.
  MessageProtocol(Home home, Cut cut) : home_(home), cut_(cut) {}
  void send(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;
  std::int64_t least_scratch(const Move& move, const Constants& constants) const override;

 private:
  bool packs(const Link& link) const;
  bool unpacks(const Link& link) const;
  bool is_limited(const Link& link) const;
  std::int64_t slice_of(const Link& link) const;
  int scratch(Builder& builder, Link& link, Purpose purpose) const;

  Home home_;
  Cut cut_;
};

}  // namespace tasuki
