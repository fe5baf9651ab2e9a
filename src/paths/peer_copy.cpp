// Path `peer:copy`: puts by the copy engine of the sender's GPU, in a stream beside the kernel that waits and signals
// for them. It is as fast as the links and keeps no SM busy. Every call of the copy engine costs microseconds, so it
// suits large pieces with long rows.
#include <string>

#include "layout/rows.hpp"
#include "paths/peer.hpp"
#include "protocols/put.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  const Constants& c = q.machine.constants;
  std::int64_t calls = 0;
  for (const StridedCopy& copy : q.move.copies) calls += copy_engine_calls(copy);
  if (calls > c.copy_engine_calls) return Offer::no(std::to_string(calls) + " calls of the copy engine are too many");
  Offer offer = peer_into(q);
  offer.seconds += static_cast<double>(calls - 1) * c.copy_engine_call;
  return offer;
}

const PathRegistration registration{[] {
  Path path = peer_path("peer:copy", std::make_shared<PutProtocol>(Home::device));
  path.offer = offer;
  path.preference = 0;
  path.transport = "copy engine";
  path.carried = {Verb::put};
  return path;
}};

}  // namespace
}  // namespace tasuki
