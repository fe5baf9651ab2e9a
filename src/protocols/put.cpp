// Protocol `put`: see put.hpp.
#include "protocols/put.hpp"

namespace tasuki {

void PutProtocol::open_send(Builder& builder, Link& link) const {
  const int ready = builder.counter(Purpose::ready, link.number, builder.rank(), link.peer, counters_);
  // With alternating copies this permission came with the peer's last start, so it is normally there already.
  builder.wait(link.peer, ready, link.alternating ? 1 : 0);
}

void PutProtocol::send(Builder& builder, Link& link) const {
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    builder.put(link.peer, link.src[i], link.dst[i], link.moves[i]->copies, builder.user_step(), builder.user_step());
  }
  builder.signal(link.peer, builder.counter(Purpose::arrived, link.number, link.peer, builder.rank(), counters_));
}

void PutProtocol::open_recv(Builder& builder, Link& link) const {
  builder.signal(link.peer, builder.counter(Purpose::ready, link.number, link.peer, builder.rank(), counters_));
}

void PutProtocol::recv(Builder& builder, Link& link) const {
  const int arrived = builder.counter(Purpose::arrived, link.number, builder.rank(), link.peer, counters_);
  link.commands.assign(link.moves.size(), builder.wait(link.peer, arrived));
}

}  // namespace tasuki
