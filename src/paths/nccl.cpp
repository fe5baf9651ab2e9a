// Path `nccl`: packed messages in stream order. Between GPUs that reach each other they take the same links as stores.
#include "paths/path.hpp"
#include "protocols/message.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (q.move.src_rank == q.move.dst_rank) return Offer::no("same rank");
  return priced_packed(q);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "nccl";
  path.memory = Memory::device;
  path.protocol = std::make_shared<MessageProtocol>(Home::device, MessageProtocol::Cut::never);
  path.joins = [](const Machine& machine, int a, int b) {
    return a != b && machine.ranks[static_cast<std::size_t>(a)].gpus >= 0 &&
           machine.ranks[static_cast<std::size_t>(b)].gpus >= 0;
  };
  path.offer = offer;
  path.resource = Resource::links;
  path.latencies_overlap = true;
  path.preference = 3;
  path.transport = "nccl";
  path.carried = {Verb::send, Verb::recv};
  path.when_needed = true;
  return path;
}};

}  // namespace
}  // namespace tasuki
