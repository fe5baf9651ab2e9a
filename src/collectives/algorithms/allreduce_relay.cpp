// Allreduce `relay`: the vector is cut into n blocks; everybody sends each block to the rank that adds it up, itself
// first, and sends the sum back at once, as far as it has come. V bytes.
//
//   1 2 3 -> 0 -> 1 2 3    0 2 3 -> 1 -> 0 2 3    0 1 3 -> 2 -> 0 1 3    0 1 2 -> 3 -> 0 1 2
//   block 0: ((0 1) 2) 3   block 1: ((1 0) 2) 3   block 2: ((2 0) 1) 3   block 3: ((3 0) 1) 2
//
// The messages are those of `direct`, but each block goes its way by itself: nobody waits until all blocks are added
// up. It is for paths that forward what arrives bit by bit, which are the LL lines of GPUs: there it takes
// 2 (n - 1) / n V on every link, and two latencies.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

// What is forwarded needs less than a message by itself before it arrives.
double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const int n = c.ranks();
  return 2 * (n - 1) * price.message(v / n) - 0.6 * (n - 1) * price.latency;
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  for (int to = 0; to < n; ++to) {
    const Place own{c.own(0).buffer, c.begin(to)};
    const Place sum{c.out(), c.begin(to)};
    steps.begin_chunks(c.block(to));  // one chunk: its steps are one lane
    steps.phase("reduce");
    if (!c.both()) steps.copy(to, own, to, sum, c.block(to));
    for (int from = 0; from < n; ++from)
      if (from != to) steps.combine(from, own, to, sum, c.block(to));
    steps.phase("gather");
    for (int d = 1; d < n; ++d) steps.copy(to, sum, (to + d) % n, sum, c.block(to), 1);
    steps.end();
  }
}

// In anything else each block would be added up before it goes back.
std::vector<std::string> paths(const Collective& c, const Parameters&) {
  return c.on_gpu() ? std::vector<std::string>{"peer:ll"} : std::vector<std::string>{};
}

// Between two GPUs `exchange` takes a latency less and as long for the bytes; in place it would first copy them.
bool worth_trying(const Collective& c) {
  return c.on_gpu() && (c.ranks() > 2 || c.both());
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "relay",
                   .collective = CollectiveKind::allreduce,
                   .complexity = 1,
                   .worth_trying = worth_trying,
                   .paths = paths,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
