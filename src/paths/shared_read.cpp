// Path `shared:read`: the receiver reads the sender's private memory with process_vm_readv, in one pass and without
// shared memory. A call has a list entry for every run, so it suits large blocks of the user's own memory.
#include "paths/path.hpp"
#include "protocols/pull.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (const std::string why = not_in_island(q); !why.empty()) return Offer::no(why);
  if (q.move.add != DType::none) return Offer::no("a read cannot add");
  return without_tiles(priced(q), q);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "shared:read";
  path.protocol = std::make_shared<PullProtocol>(Home::shared);
  path.joins = joins_in_island;
  path.offer = offer;
  path.resource = Resource::peer_core;
  path.preference = 1;
  path.transport = "process_vm_readv";
  path.carried = {Verb::copy};
  return path;
}};

}  // namespace
}  // namespace tasuki
