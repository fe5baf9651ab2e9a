// Paths `self` and, in GPU memory, `self:gpu`: source and destination belong to the same rank.
#include "protocols/self.hpp"
#include "paths/path.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (q.move.src_rank != q.move.dst_rank) return Offer::no("another rank");
  Offer offer = priced(q);
  offer.latency = 0;
  return offer;
}

Path self(Memory memory) {
  Path path;
  path.name = memory == Memory::host ? "self" : "self:gpu";
  path.memory = memory;
  path.protocol = std::make_shared<SelfProtocol>();
  path.joins = memory == Memory::host ? [](const Machine&, int a, int b) { return a == b; }
                                      : [](const Machine& machine, int a, int b) {
                                          return a == b && machine.ranks[static_cast<std::size_t>(a)].gpus >= 0;
                                        };
  path.offer = offer;
  path.resource = memory == Memory::host ? Resource::core : Resource::gpu;
  path.preference = 0;
  return path;
}

const PathRegistration on_host{[] { return self(Memory::host); }};
const PathRegistration on_gpu{[] { return self(Memory::device); }};

}  // namespace
}  // namespace tasuki
