// Path `mpi:staged`: packed messages by MPI through pinned host memory, into which one GPU packs and from which the
// other one unpacks. MPI never sees a pointer to GPU memory.
#include "paths/path.hpp"
#include "protocols/message.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (q.move.src_rank == q.move.dst_rank) return Offer::no("same rank");
  if (q.machine.threads) return Offer::no("the ranks are threads of one process");
  return priced_packed(q);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "mpi:staged";
  path.memory = Memory::device;
  path.protocol = std::make_shared<MessageProtocol>(Home::pinned, MessageProtocol::Cut::staged);
  path.joins = [](const Machine& machine, int a, int b) {
    return a != b && !machine.threads && machine.ranks[static_cast<std::size_t>(a)].gpus >= 0 &&
           machine.ranks[static_cast<std::size_t>(b)].gpus >= 0;
  };
  path.offer = offer;
  path.resource = Resource::network;
  path.outside = true;
  path.latencies_overlap = true;
  path.preference = 3;
  path.transport = "mpi staged";
  path.carried = {Verb::send, Verb::recv};
  path.when_needed = true;
  path.in_background = true;
  return path;
}};

}  // namespace
}  // namespace tasuki
