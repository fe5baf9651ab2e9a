// Planner: from moves (which bytes, from which rank to which) to one rank's plan. Two functions of data: `choose` picks
// a path for each move that this rank sends, `emit` makes the commands once the peers' choices are known. A live
// operation tells its peers facts and choices, and calls these functions; off line one process calls them for all
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "paths/path.hpp"
#include "plan/builder.hpp"
#include "plan/passes/pass.hpp"
#include "protocols/move.hpp"

namespace tasuki {

/// A buffer of an operation: the user's, or scratch, which Tasuki keeps for it where peers can map it. Ranks list the
/// same buffers in the same order.
struct UserRole {
  std::string name;
  Role role = Role::inout;
  std::int64_t bytes = 0;  ///< scratch only; the user's are told by facts
  /// Scratch only: the number of the user's buffer of which it is a copy, at the same offsets. The bytes of `copies`
  /// are copied before anything else is done in an epoch, and what moves from here is promised from there.
  int copy_of = -1;
  std::vector<StridedCopy> copies = {};  ///< none: this rank has no copy
};

class Composer;

/// What one rank wants of an operation.
struct Problem {
  std::string operation;  ///< for people: `halo p,q`
  int rank = 0;
  std::vector<UserRole> buffers;
  std::vector<Move> moves;                 ///< those that leave or reach this rank, after `mark_mutual`
  std::function<void(Composer&)> compose;  ///< empty: `compose_links`
  std::string wanted = "auto";             ///< forced path or paths; of a halo also by direction (paths/path.hpp)
  int directions = 0;                      ///< of a halo, which `wanted` may name
  /// Of a halo, where `decided_by_directions`: what the rank asks that sends most of all ranks of the grid. All ranks
  /// decide by it which directions take which network. Null: by what they send themselves.
  std::shared_ptr<const Problem> busiest;
  /// Bytes of a buffer of a rank that is no peer, for expectations. Empty: as many as this rank's own buffer has.
  std::function<std::int64_t(int rank, int buffer)> bytes_of;
  /// If moves were cut in parts: what they were before.
  std::shared_ptr<const std::vector<Move>> uncut;
  std::string remark;  ///< ends the table of `explain`: how the operation came to be laid out so
  /// Bytes of scratch that the rank may have; 0: no limit. `emit` throws `Error` for a plan that needs more.
  std::int64_t scratch = 0;
  /// With a limit, by peer: bytes of scratch at either end that links between the two ranks may have in one direction.
  /// Both ranks have the same.
  std::map<int, std::int64_t> scratch_with = {};
  std::int64_t scratch_to(int peer) const;  ///< 0: no limit
};

/// Facts about the user's buffers of a rank and its peers.
class Facts {
 public:
  /// One entry a buffer.
  void set(int rank, std::vector<BufferFact> facts) {
    set(rank, std::make_shared<const std::vector<BufferFact>>(std::move(facts)));
  }
  void set(int rank, std::shared_ptr<const std::vector<BufferFact>> facts);
  bool knows(int rank) const;
  const BufferFact& of(int rank, int buffer) const;

 private:
  std::vector<std::pair<int, std::shared_ptr<const std::vector<BufferFact>>>> ranks_;  // ascending
};

/// The path that a move takes.
struct Choice {
  const Path* path = nullptr;
  double latency = 0;
  double seconds = 0;
};

/// What the sender of a move tells its receiver. Plain data. Paths are numbered as in `all_paths()`.
struct Decision {
  std::int32_t dst_rank = 0;
  std::int32_t path = 0;
  std::int64_t seq = 0;
  std::int32_t part = 0;   ///< as of `Move`
  std::int32_t share = 0;  ///< of a part: as `in_parts` cuts the move
  double latency = 0;
  double seconds = 0;
};

/// Ranks in `moves` other than `rank`, ascending.
std::vector<int> peers_of(const std::vector<Move>& moves, int rank);

/// Sets `mutual` for every move for which another one goes the opposite way. Both ranks of a move get the same result,
/// for they list the same moves.
void mark_mutual(std::vector<Move>& moves);

/// Bytes that reach the rank in an epoch, or leave it, whichever are more; what stays on it counts as both.
std::int64_t moved(const Problem& problem);

/// Every path's offer for a move, in the order of `all_paths()`. Without `reasons` paths for another kind of memory do
/// not say why they are not usable. `bytes_moved`: what `moved` says of the problem.
std::vector<Offer> offers_for(const Machine& machine, const Problem& problem, const Facts& facts, const Move& move,
                              std::int64_t bytes_moved, bool reasons = true);

/// Whether a halo on the machine has all pieces of a direction on one network: where a network loses by collisions,
/// rounds keep ranks apart only if all ranks send alike.
bool decided_by_directions(const Machine& machine);

/// Decides for the moves that leave the rank. Minimises the time of the slowest resource plus a small share of the sum
/// of all. Throws `PathUnusable` if a move has no usable path, saying what each path answered.
std::vector<Decision> choose(const Machine& machine, const Problem& problem, const Facts& facts);

/// What one of two networks does, of those that both could carry some of a rank's moves.
struct NetworkShare {
  Resource network = Resource::links;
  std::int64_t bytes = 0;   ///< that leave the rank through it
  double seconds = 0;       ///< until it has carried them
  double alone = 0;         ///< what it would take for all that it can carry
  bool carries_all = true;  ///< that is all that leaves the rank
};
/// Empty if there are no such moves.
std::vector<NetworkShare> balance(const Machine& machine, const Problem& problem, const Facts& facts,
                                  const std::vector<Choice>& choices);

/// The decisions of a rank.
using DecisionsOf = std::function<std::span<const Decision>(int rank)>;
/// The problem with moves cut in parts, as this rank and its peers have decided. Empty: none is cut.
std::optional<Problem> in_parts(const Problem& problem, const DecisionsOf& decisions_of);
/// The choice for each move of the problem, after `in_parts`, from this rank's decisions and those of its peers. Throws
/// `Error` if a sender has decided nothing for a move.
std::vector<Choice> settle(const Problem& problem, const DecisionsOf& decisions_of);

/// The plan, after the passes (plan/passes/pass.hpp). `observer` sees the plan as it was emitted and after every pass.
/// Throws `Error` if it needs more scratch than the problem allows.
Plan emit(const Machine& machine, const Problem& problem, const Facts& facts, const std::vector<Choice>& choices,
          const PassObserver& observer = {});

/// Makes links from moves and adds the user's buffers to the plan, while `emit` composes.
class Composer {
 public:
  Composer(const Machine& machine, const Problem& problem, const Facts& facts, const std::vector<Choice>& choices,
           Builder& builder)
      : machine_(machine), problem_(problem), facts_(facts), choices_(choices), builder_(builder) {}

  const Problem& problem() const { return problem_; }
  Builder& builder() { return builder_; }
  /// A link for moves (indices) that go in one direction between the same ranks over the same path.
  Link link(const std::vector<std::size_t>& moves, int number);
  const Path& path(std::size_t move) const { return *choices_[move].path; }
  bool outgoing(std::size_t move) const { return problem_.moves[move].src_rank == builder_.rank(); }
  bool incoming(std::size_t move) const { return problem_.moves[move].dst_rank == builder_.rank(); }
  /// By peer: the round in which this rank sends to it. Empty where the machine's network does not lose by collisions.
  std::map<int, std::int64_t> rounds() const;
  /// The plan's buffer for a user's buffer of a rank.
  int user_buffer(int rank, int buffer);
  /// The plan's buffer for the one that the user sees the move begin in.
  int promised_source(const Move& move);

 private:
  std::int64_t scratch_of_link(const Move& first, int peer) const;

  const Machine& machine_;
  const Problem& problem_;
  const Facts& facts_;
  const std::vector<Choice>& choices_;
  Builder& builder_;
};

/// The plan of independent moves (halo, transfer): a lane for every link, an expectation for every move that arrives,
/// additions in the order of `seq`.
void compose_links(Composer& composer);

}  // namespace tasuki
