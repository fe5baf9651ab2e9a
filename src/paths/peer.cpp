// What the paths between GPUs that reach each other have in common: see peer.hpp.
#include "paths/peer.hpp"

namespace tasuki {

Path peer_path(std::string name, std::shared_ptr<const Protocol> protocol) {
  Path path;
  path.name = std::move(name);
  path.memory = Memory::device;
  path.protocol = std::move(protocol);
  path.joins = joins_gpus;
  path.resource = Resource::links;
  path.both_ends = true;
  path.latencies_overlap = true;
  return path;
}

double copy_bandwidth(const Machine& machine) {
  const PathCost& own = machine.cost("self:gpu");
  return own.measured ? own.one_way.bulk_bandwidth : machine.constants.gpu_copy_bandwidth;
}

Offer peer_into(const Question& q) {
  if (q.move.add != DType::none) return Offer::no("a put cannot add");
  if (q.move.src_rank != q.move.dst_rank && !q.dst.shared) {
    return Offer::no("destination is GPU memory that cannot be shared: take cudaMalloc's or let the field allocate");
  }
  if (const std::string why = not_between_gpus(q); !why.empty()) return Offer::no(why);
  Offer offer = priced(q);
  // What has arrived is then loaded and combined with another value. That loads and stores half as much again as a
  // copy.
  if (q.move.summed) offer.seconds += 1.5 * static_cast<double>(q.move.bytes()) / copy_bandwidth(q.machine);
  return offer;
}

Offer peer_two_passes(const Question& q) {
  if (const std::string why = not_between_gpus(q); !why.empty()) return Offer::no(why);
  Offer offer = priced(q);
  if (q.move.mutual)
    offer.seconds += q.machine.constants.second_pass * static_cast<double>(q.move.bytes()) / copy_bandwidth(q.machine);
  return offer;
}

}  // namespace tasuki
