// What the paths between GPUs that reach each other have in common: see peer.hpp.
#include "paths/peer.hpp"

namespace tasuki {

Path peer_path(std::string name, std::shared_ptr<const Protocol> protocol) {
  Path path;
  path.name = std::move(name);
  path.memory = Memory::device;
  path.protocol = std::move(protocol);
  path.joins = joins_gpus;
  path.resource = "links of the GPU";
  path.latencies_overlap = true;
  return path;
}

Offer peer_into(const Question& q) {
  if (q.move.add != DType::none) return Offer::no("a put cannot add");
  if (q.move.src_rank != q.move.dst_rank && !q.dst.shared) {
    return Offer::no("destination is GPU memory that cannot be shared: take cudaMalloc's or let the field allocate");
  }
  if (const std::string why = not_between_gpus(q); !why.empty()) return Offer::no(why);
  return priced(q);
}

Offer peer_two_passes(const Question& q) {
  if (const std::string why = not_between_gpus(q); !why.empty()) return Offer::no(why);
  Offer offer = priced(q);
  if (q.move.mutual) {
    const PathCost& own = q.machine.cost("self:gpu");
    const double bandwidth = own.measured ? own.one_way.bulk_bandwidth : q.machine.constants.gpu_copy_bandwidth;
    offer.seconds += q.machine.constants.second_pass * static_cast<double>(q.move.bytes()) / bandwidth;
  }
  return offer;
}

}  // namespace tasuki
