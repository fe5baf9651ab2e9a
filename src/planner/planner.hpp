// Planner: from moves (which bytes, from whom to whom) to one rank's plan, by way of the paths' offers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "paths/path.hpp"
#include "plan/builder.hpp"

namespace tasuki {

/// Memory of the user that an operation touches. Ranks list the same buffers in the same order; a rank that has no part
/// in one gives no memory.
struct UserBuffer {
  std::string name;
  Role role = Role::inout;
  std::int64_t bytes = 0;          ///< of one copy
  std::vector<std::byte*> memory;  ///< one pointer a copy
  const int* current = nullptr;    ///< which copy the user shows now; nullptr: there is one
  bool alternating = false;        ///< the user promises to change copies between starts
  Memory where = Memory::host;
};

/// What was decided about a move, and what else could have been.
struct Choice {
  const Path* path = nullptr;
  double latency = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, Offer>> offers;  ///< of every path; empty on the receiving side
};

/// Everything that the plan of one rank is made from.
struct Planning {
  Runtime& runtime;
  PathSet& paths;
  std::string operation;  ///< `halo p,q`
  std::string wanted;     ///< forced path, or `auto`
  const std::vector<UserBuffer>& buffers;
  const std::vector<Move>& moves;          ///< those that leave or reach this rank
  std::vector<int> peers;                  ///< the other ranks in the moves, ascending
  std::vector<std::vector<Place>> places;  ///< per peer, then this rank's own last: one a buffer
  std::vector<Choice> choices;             ///< per move

  const Place& place(int rank, int buffer) const;  ///< of this rank or a peer
  bool knows(int rank) const;
};

/// Ranks in `moves` other than `rank`, ascending.
std::vector<int> peers_of(const std::vector<Move>& moves, int rank);

/// Tells the moves to which others run opposite. Both ranks of a move come to the same, for they list the same moves.
void mark_mutual(std::vector<Move>& moves);

/// Peers tell each other where their buffers are. Collective over the ranks concerned.
void exchange_places(Planning& planning);

/// Every rank decides for the moves that leave it, minimising the time of its slowest resource and a little of
/// the sum of all, and tells the receivers. Collective. Returns a complaint if a move has no usable path, empty
/// otherwise.
std::string choose(Planning& planning);

/// Hands out links for the moves and keeps the plan's user buffers.
class Composer {
 public:
  Composer(const Planning& planning, Builder& builder) : planning_(planning), builder_(builder) {}

  const Planning& planning() const { return planning_; }
  Builder& builder() { return builder_; }
  /// A link for moves (indices) that go the same way between the same ranks over the same path.
  Link link(const std::vector<std::size_t>& moves, int number);
  const Path& path(std::size_t move) const { return *planning_.choices[move].path; }
  bool outgoing(std::size_t move) const { return planning_.moves[move].src_rank == builder_.rank(); }
  bool incoming(std::size_t move) const { return planning_.moves[move].dst_rank == builder_.rank(); }
  int user_buffer(int rank, int buffer);

 private:
  const Planning& planning_;
  Builder& builder_;
};

/// The plan of independent moves (halo, transfer): a lane for every link, an expectation for every move that arrives,
/// additions in the order of `seq`.
void compose_links(Composer& composer);

/// Runs `compose`, which also states the plan's expectations. Local.
Draft make_plan(const Planning& planning, const std::function<void(Composer&)>& compose);

/// The table behind `Operation::explain`.
std::string explain(const Planning& planning, const Plan& plan);

}  // namespace tasuki
