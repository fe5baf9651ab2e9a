// Protocol `pull`: the receiver loads straight from the sender's memory. One pass, and the only such protocol that can
// add.
//
//   sender's lane:    signal available                      wait done
//   receiver's lane:  wait available     copy (reduce) ...  signal done
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class PullProtocol final : public Protocol {
 public:
  explicit PullProtocol(Home counters) : counters_(counters) {}
  void send(Builder& builder, Link& link) const override;
  void close_send(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;
  void close_recv(Builder& builder, Link& link) const override;

 private:
  Home counters_;
};

}  // namespace tasuki
