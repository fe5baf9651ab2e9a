// Protocol `message`: packed contiguous messages through somebody else's library. A link whose bytes already lie
// together on a side is sent or received there without packing, if messages may lie in the user's memory. A link larger
// than a message goes as several, each with a place of its own in the staging, so that one travels while the next is
// packed and the last unpacked. They have one tag, and are started in the order of the lane on both sides.
//
//   sender's lane:    { copy (pack) ...   send } a slice
//   receiver's lane:  { recv              copy (unpack, reduce) ... } a slice
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class MessageProtocol final : public Protocol {
 public:
  enum class Cut : std::uint8_t {
    never,   ///< one message a link
    limit,   ///< at the largest message of MPI
    staged,  ///< into some, so that packing and travelling overlap
  };
  /// Staging is in memory of the kind `home`; with `Home::own` messages may lie in the user's memory as well.
  MessageProtocol(Home home, Cut cut) : home_(home), cut_(cut) {}
  void send(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;

 private:
  bool as_it_is(const Link& link) const;
  std::int64_t slice_of(const Link& link) const;

  Home home_;
  Cut cut_;
};

}  // namespace tasuki
