// `post` and `wait`: a node signals another one, which has not announced that it will wait. Both sides prepare Tasuki's
// operations, so this is a message of MPI.
#include "post.hpp"

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "objects.hpp"
#include "tasuki/error.hpp"
#include "whereabouts.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

constexpr int kTag = 0;

struct Posts {
  MPI_Comm comm = MPI_COMM_NULL;
  std::deque<std::pair<std::unique_ptr<int>, MPI_Request>> sent;  // until MPI has taken them
  std::vector<std::pair<int, int>> arrived;                       // rank and tag, nobody has waited for
};
Posts posts;

void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(ErrorKind::system, std::string(call) + " failed");
}

void drop_sent() {
  while (!posts.sent.empty()) {
    int done = 0;
    check(MPI_Test(&posts.sent.front().second, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) return;
    posts.sent.pop_front();
  }
}

void take_arrived() {
  int there = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, kTag, posts.comm, &there, &status), "MPI_Iprobe");
  if (there == 0) return;
  int tag = 0;
  check(MPI_Recv(&tag, 1, MPI_INT, status.MPI_SOURCE, kTag, posts.comm, MPI_STATUS_IGNORE), "MPI_Recv");
  posts.arrived.emplace_back(status.MPI_SOURCE, tag);
}

int rank_of(const NodeShape& nodes, int number) {
  if (number < 0 || number >= nodes.size())
    refuse("argument 'number' is {}; the nodes have the numbers 0 to {}", number, nodes.size() - 1);
  return nodes.ranks[static_cast<std::size_t>(number)];
}

void wait_for(int rank, int tag) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (;;) {
    for (auto it = posts.arrived.begin(); it != posts.arrived.end(); ++it) {
      if ((rank >= 0 && it->first != rank) || (tag != XMP_ANY && it->second != tag)) continue;
      posts.arrived.erase(it);
      return;
    }
    take_arrived();
    drop_sent();
    world().progress();
    answer();
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited.count() > world().context().deadline())
      throw Error(ErrorKind::deadline,
                  fmt::format("rank {}: nobody has posted: no message of {} with {} came in {} s", world().rank(),
                              rank < 0 ? "any node" : fmt::format("rank {}", rank),
                              tag == XMP_ANY ? "any tag" : fmt::format("tag {}", tag), world().context().deadline()));
  }
}

}  // namespace

void start_posts(const Context& context) {
  check(MPI_Comm_dup(context.comm(), &posts.comm), "MPI_Comm_dup");
}

MPI_Comm posts_comm() {
  return posts.comm;
}

void end_posts() {
  drop_sent();
  for (auto& [tag, request] : posts.sent) {  // for which nobody has waited: MPI may still read them
    check(MPI_Request_free(&request), "MPI_Request_free");
    static_cast<void>(tag.release());
  }
  posts.sent.clear();
  posts.arrived.clear();
  check(MPI_Comm_free(&posts.comm), "MPI_Comm_free");
}

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)

extern "C" {

int xmp_post(xmp_desc_t nodes, int number, int tag) {
  return guarded("xmp_post", [&] {
    world();
    if (tag < 0) refuse("argument 'tag' is {}; it must be 0 or more", tag);
    const int rank = rank_of(nodes == nullptr ? world().executing() : nodes_of(nodes, "nodes").shape, number);
    drop_sent();
    auto& [sent, request] = posts.sent.emplace_back(std::make_unique<int>(tag), MPI_REQUEST_NULL);
    check(MPI_Isend(sent.get(), 1, MPI_INT, rank, kTag, posts.comm, &request), "MPI_Isend");
  });
}

int xmp_wait(xmp_desc_t nodes, int number, int tag) {
  return guarded("xmp_wait", [&] {
    world();
    if (tag < 0 && tag != XMP_ANY) refuse("argument 'tag' is {}; it must be 0 or more, or XMP_ANY", tag);
    const NodeShape& set = nodes == nullptr ? world().executing() : nodes_of(nodes, "nodes").shape;
    doing_now->nodes = &set;
    wait_for(number == XMP_ANY ? -1 : rank_of(set, number), tag);
  });
}
}
