// Path `peer:pull`: the receiver's kernel loads straight from the sender's GPU memory and adds what it loads to other
// values, in one pass. It is for what is added up: all else a put brings sooner, because a load has to go there and
// back, and because the sender has to wait until its memory has been read.
#include "paths/peer.hpp"
#include "protocols/pull.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (!q.move.summed && !q.forced) return Offer::no("only for what its receiver adds up");
  if (q.move.chunk > 0) return Offer::no("carries no chunks of a loop");
  if (q.move.relayed) return Offer::no("carries nothing that depends on what arrives first");
  if (q.move.src_rank != q.move.dst_rank && !q.src.shared)
    return Offer::no("source is GPU memory that cannot be shared: take cudaMalloc's or let the field allocate");
  if (const std::string why = not_between_gpus(q); !why.empty()) return Offer::no(why);
  return priced(q);
}

const PathRegistration registration{[] {
  Path path = peer_path("peer:pull", std::make_shared<PullProtocol>(Home::device));
  path.offer = offer;
  path.preference = 1;
  return path;
}};

}  // namespace
}  // namespace tasuki
