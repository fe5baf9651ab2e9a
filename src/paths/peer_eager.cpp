// Path `peer:eager`: the sender's kernel packs into a ring in the receiver's GPU memory.
#include "paths/peer.hpp"
#include "protocols/eager.hpp"

namespace tasuki {
namespace {

const PathRegistration registration{[] {
  Path path = peer_path("peer:eager", std::make_shared<EagerProtocol>(Home::device, false));
  path.offer = peer_two_passes;
  return path;
}};

}  // namespace
}  // namespace tasuki
