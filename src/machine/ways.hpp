// Ways: the links and ports of a machine's networks between two ranks. Predictions serve bytes on them, placements
// count bytes on them.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "tasuki/machine.hpp"

namespace tasuki {

/// What carries bytes from one point of a network to another. Points are numbered within the network: hosts between
/// islands; in an island its hosts or, if it is one host, its ranks.
struct NetworkLink {
  enum class Kind : std::uint8_t { port_out, link, port_into };
  Kind kind = Kind::link;
  int island = -1;  ///< -1: between islands
  int from = -1;    ///< not of `port_into`
  int to = -1;      ///< not of `port_out`
  friend bool operator<(const NetworkLink& a, const NetworkLink& b) {
    return std::tie(a.kind, a.island, a.from, a.to) < std::tie(b.kind, b.island, b.from, b.to);
  }
};

struct Way {
  std::vector<NetworkLink> links;  ///< a port, the links of a torus, a port; none: no network joins the ranks
  int hops = 0;
};

class Ways {
 public:
  explicit Ways(const Machine& machine);

  /// By the network `outside`, or by the one `inside` of both ranks' island. On a torus the way goes dimension by
  /// dimension, the shorter way round, and upwards if both ways are equally long.
  Way between(int from, int to, bool outside) const;
  const Network& network(const NetworkLink& link) const { return link.island < 0 ? machine_.outside : machine_.inside; }

 private:
  const Machine& machine_;
  std::vector<int> host_;   // per rank: number of its host among all
  std::vector<int> point_;  // per rank: its point in the network of its island
};

}  // namespace tasuki
