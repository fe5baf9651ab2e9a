// Path `shared:pull`: the receiver loads straight from the sender's memory, which the ranks of the island share.
#include "paths/path.hpp"
#include "protocols/pull.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (const std::string why = not_in_island(q); !why.empty()) return Offer::no(why);
  if (!q.src.shared) return Offer::no("source is not in shared memory");
  return priced_in_place(q, &StridedCopy::src_pattern);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "shared:pull";
  path.protocol = std::make_shared<PullProtocol>(Home::shared);
  path.joins = joins_in_island;
  path.offer = offer;
  path.resource = Resource::peer_core;
  path.preference = 1;
  return path;
}};

}  // namespace
}  // namespace tasuki
