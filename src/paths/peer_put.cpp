// Path `peer:put`: the sender's kernel stores straight into the receiver's GPU memory.
#include "paths/peer.hpp"
#include "protocols/put.hpp"

namespace tasuki {
namespace {

const PathRegistration registration{[] {
  Path path = peer_path("peer:put", std::make_shared<PutProtocol>(Home::device));
  path.offer = peer_into;
  path.preference = 0;
  return path;
}};

}  // namespace
}  // namespace tasuki
