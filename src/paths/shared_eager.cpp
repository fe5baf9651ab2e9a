// Path `shared:eager`: the sender packs into a ring at the receiver. Any memory will do on both sides.
#include "paths/path.hpp"
#include "protocols/eager.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (const std::string why = not_in_island(q); !why.empty()) return Offer::no(why);
  return priced_through_ring(q);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "shared:eager";
  path.protocol = std::make_shared<EagerProtocol>(Home::shared, true);
  path.joins = joins_in_island;
  path.offer = offer;
  path.both_cores = true;
  path.early = true;
  return path;
}};

}  // namespace
}  // namespace tasuki
