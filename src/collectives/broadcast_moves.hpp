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

/// How a broadcast is laid out. 0 means that Tasuki chooses.
struct BroadcastLayout {
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;  ///< bytes
  friend bool operator==(const BroadcastLayout&, const BroadcastLayout&) = default;
};

/// Chooses what is 0. Up to 64 ranks it takes the layout whose plans have the least predicted time
/// (predict/predict.hpp). For more ranks it takes the layout that is fastest by a closed form of the pipeline, with the
/// best path that joins the root and any rank. A function of its arguments: every rank gets the same result. Throws
/// `Error` if no path joins two ranks.
BroadcastLayout choose_layout(const Machine& machine, int root, std::int64_t bytes, const BroadcastLayout& wanted);

/// A broadcast over all ranks of a machine. It is laid out once and then asked for every rank's problem. `bytes`
/// contiguous bytes.
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
  std::shared_ptr<const Laid> laid_;  // shared with the problems
};

}  // namespace tasuki
