// Broadcast moves: the message is cut into parts; each part runs down its own tree in chunks, a symbolic loop in the
// plan.
//
//   every rank, a lane a part:  open link from parent, links to children
//                               loop: receive chunk c from the parent, send chunk c to each child
//                               the rest that fills no chunk, close
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/trees.hpp"
#include "planner/planner.hpp"

namespace tasuki {

/// How a broadcast is laid out; 0 is open.
struct BroadcastLayout {
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;  ///< bytes
  friend bool operator==(const BroadcastLayout&, const BroadcastLayout&) = default;
};

/// Fills in what is open: of some layouts the one whose plans are predicted to take least (predict/predict.hpp), or,
/// for more than 64 ranks, that a closed form of the pipeline finds fastest with the best path that joins the root to
/// any rank. A function of its arguments: every rank comes to the same. Throws `Error` if no path joins two ranks.
BroadcastLayout choose_layout(const Machine& machine, int root, std::int64_t bytes, const BroadcastLayout& wanted);

/// A broadcast over all ranks of a machine: laid out once, asked for every rank. `bytes` contiguous bytes.
class BroadcastMoves {
 public:
  BroadcastMoves(const Machine& machine, int root, std::int64_t bytes, const BroadcastLayout& wanted);
  static std::string name(int root);
  Problem problem(int rank) const;

 private:
  struct Part {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    Tree tree;
  };
  struct Laid {
    std::vector<Part> parts;
    std::int64_t chunk = 0;
    int root = 0;
    std::int64_t bytes = 0;
  };
  class Lane;
  std::shared_ptr<const Laid> laid_;  // also the problems' own
};

}  // namespace tasuki
