// Protocol `pull`: see pull.hpp.
#include "protocols/pull.hpp"

namespace tasuki {

void PullProtocol::send(Builder& builder, Link& link) const {
  builder.signal(link.peer, builder.counter(Purpose::available, link.number, link.peer, builder.rank(), counters_));
}

void PullProtocol::close_send(Builder& builder, Link& link) const {
  builder.wait(link.peer, builder.counter(Purpose::done, link.number, builder.rank(), link.peer, counters_));
}

void PullProtocol::recv(Builder& builder, Link& link) const {
  builder.wait(link.peer, builder.counter(Purpose::available, link.number, builder.rank(), link.peer, counters_));
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    link.commands.push_back(deliver(builder, link, i, link.src[i], link.moves[i]->copies, builder.user_step()));
  }
}

void PullProtocol::close_recv(Builder& builder, Link& link) const {
  builder.signal(link.peer, builder.counter(Purpose::done, link.number, link.peer, builder.rank(), counters_));
}

}  // namespace tasuki
