// Protocol `put`: the sender stores straight into the receiver's memory, one pass from scattered source to scattered
// destination.
//
//   sender's lane:    wait ready    put ...  signal arrived
//   receiver's lane:  signal ready           wait arrived
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class PutProtocol final : public Protocol {
 public:
  explicit PutProtocol(Home counters) : counters_(counters) {}
  void open_send(Builder& builder, Link& link) const override;
  void send(Builder& builder, Link& link) const override;
  void open_recv(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;

 private:
  Home counters_;
};

}  // namespace tasuki
