// Protocol `self`: source and destination belong to the same rank (a periodic dimension that is not split).
//
//   receiver's lane:  copy (or reduce) ...        the sender's lane is the same rank's and empty
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class SelfProtocol final : public Protocol {
 public:
  void send(Builder&, Link&) const override {}
  void recv(Builder& builder, Link& link) const override;
};

}  // namespace tasuki
