// Protocol `self`: see self.hpp.
#include "protocols/self.hpp"

namespace tasuki {

void SelfProtocol::recv(Builder& builder, Link& link) const {
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    link.commands.push_back(deliver(builder, link, i, link.src[i], link.moves[i]->copies, builder.user_step()));
  }
}

}  // namespace tasuki
