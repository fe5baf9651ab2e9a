// Path `shared:put`: the sender stores straight into the receiver's memory, which the ranks of the island share.
#include "paths/path.hpp"
#include "protocols/put.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (const std::string why = not_in_island(q); !why.empty()) return Offer::no(why);
  if (!q.dst.shared) return Offer::no("destination is not in shared memory");
  if (q.move.add != DType::none) return Offer::no("a put cannot add");
  return priced_in_place(q, &StridedCopy::dst_pattern);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "shared:put";
  path.protocol = std::make_shared<PutProtocol>(Home::shared);
  path.joins = joins_in_island;
  path.offer = offer;
  path.preference = 0;
  return path;
}};

}  // namespace
}  // namespace tasuki
