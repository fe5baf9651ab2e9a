// Path `mpi`: packed contiguous messages over persistent requests. Reaches every rank that is a process of its own.
#include "paths/path.hpp"
#include "protocols/message.hpp"

namespace tasuki {
namespace {

Offer offer(const Question& q) {
  if (q.move.src_rank == q.move.dst_rank) return Offer::no("same rank");
  if (q.machine.threads) return Offer::no("the ranks are threads of one process");
  return priced_as_message(q);
}

const PathRegistration registration{[] {
  Path path;
  path.name = "mpi";
  path.protocol = std::make_shared<MessageProtocol>(Home::own, MessageProtocol::Cut::limit);
  path.joins = [](const Machine& machine, int a, int b) { return a != b && !machine.threads; };
  path.offer = offer;
  path.outside = true;
  path.both_cores = true;
  path.preference = 3;
  path.transport = "mpi";
  path.carried = {Verb::send, Verb::recv};
  return path;
}};

}  // namespace
}  // namespace tasuki
