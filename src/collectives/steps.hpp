// Steps: what an algorithm is written in. It lists, for all ranks together, what moves from where to where, as if one
// step were done after the other. Each rank keeps the steps that it takes part in and makes lanes of them: what touches
// the same bytes keeps its order, by dependencies; all else may go on at once. So a list that is right when it is read
// from top to bottom is right as it runs, over any path, and cannot deadlock: a step waits for earlier ones only.
//
// Steps between the same two ranks, in one direction, that name the same two buffers and the same `link` share a link:
// one path, one set of counters, a round a step. A link opens when all that it writes may be written, and its source
// is free when all of it has been read; where that is too much, give the steps links of their own. Between two ranks
// there are at most 64 (session/channels.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/touched.hpp"

namespace tasuki {

class Steps {
 public:
  /// Collects what concerns ranks `first` to `last` - 1. An algorithm goes through the steps of all ranks, so who wants
  /// the problems of many asks for them together.
  Steps(std::shared_ptr<const Collective> collective, int first, int last);

  /// Memory of the algorithm's own, so much on every rank that uses it; where peers can map it. Returns its number.
  int scratch(const std::string& name, std::int64_t bytes);
  /// What the steps that follow are called in tables.
  void phase(const std::string& name) { phase_ = name; }

  /// `bytes` from `src` of rank `from` to `dst` of rank `to`, which may be the same rank. None if `bytes` is 0.
  void copy(int from, Place src, int to, Place dst, std::int64_t bytes, int link = 0) {
    step(from, src, to, dst, bytes, link, false);
  }
  /// The same, combined with what is there: dst = dst op src.
  void combine(int from, Place src, int to, Place dst, std::int64_t bytes, int link = 0) {
    step(from, src, to, dst, bytes, link, true);
  }

  /// The steps from here to `end`, all of as many bytes, are done for one chunk after the other: on each rank in one
  /// lane, in a symbolic loop.
  void begin_chunks(std::int64_t chunk);
  /// The steps from here to `end` keep their order: on each rank one after the other sends, in one lane, and one after
  /// the other receives or stays on the rank, in another. `in_parts`: each message is dealt with while the next
  /// travels.
  void begin_rounds(bool in_parts = false);
  void end() { group_ = -1; }

  /// The steps that follow are a stage of their own: a GPU does with all its thread blocks what came before, and then,
  /// with all of them, what follows. Not among chunks or rounds. For few stages in which much is moved: blocks meet
  /// between them, and what some of them wait for keeps all.
  void stage() { ++stage_; }

  /// Steps in which these ranks take part, summed over the ranks.
  std::int64_t count() const;
  /// Bytes of all ranks' steps so far between ranks of different islands.
  std::int64_t across() const { return across_; }
  /// The problem of each of these ranks. What was collected is moved there.
  std::vector<Problem> problems();

  // What was listed; for composing (compose_steps.cpp).
  struct Step {
    Place src, dst;
    std::int64_t bytes = 0;
    int flow = -1;  ///< -1: within this rank
    int lane = 0;
    bool combines = false;
  };
  /// The steps of a link.
  struct Flow {
    Move move;  ///< all of them
    int number = 0;
    bool leaves = false;
    int group = -1;
  };
  struct LaneSteps {
    std::vector<std::size_t> steps;
    std::int64_t chunk = 0;  ///< 0: no loop
    int group = -1;
    int stage = 0;
    bool at_once = false;  ///< rounds in which no rank waits for one that waits for it: telling can wait for the end
  };
  struct Listed {
    std::shared_ptr<const Collective> collective;
    std::vector<Step> steps;
    std::vector<Flow> flows;
    std::vector<LaneSteps> lanes;
  };

 private:
  // The numbers of a flow with its sender and its receiver; -1: none, or a rank whose steps are not collected.
  struct Ends {
    int from = -1;
    int to = -1;
    int sender = 0;  ///< the rank
  };
  struct Group {
    bool rounds = false;
    bool in_turn = false;  // a message of some rank depends on an earlier one, or what is done with one hides the next
    std::int64_t chunk = 0;
    // of rounds: by rank, buffer and offset, the flow that writes there
    std::map<std::tuple<int, int, std::int64_t>, Ends> writers;
  };
  // What concerns one rank.
  struct Part {
    int rank = 0;
    Listed listed;
    std::map<std::tuple<int, int, int, int, int, bool, int, int>, int>
        flows;                                    // by ends, buffers, link, kind, group, stage
    std::map<int, int> numbers[2];                // per peer: links to and from it so far
    std::map<int, int> lanes;                     // per flow
    std::vector<std::array<int, 2>> group_lanes;  // what leaves, and all else; of chunks all in the first
  };
  void count_across(int from, int to, std::int64_t bytes) {
    const std::vector<int>& island = collective_->island();
    if (island[static_cast<std::size_t>(from)] != island[static_cast<std::size_t>(to)]) across_ += bytes;
  }
  void step(int from, Place src, int to, Place dst, std::int64_t bytes, int link, bool combines) {
    const bool relayed = arrived_ && bytes > 0 && relays(from, src, to, dst, bytes, combines);
    count_across(from, to, bytes);
    if (relayed && from != to && group_ >= 0) groups_[static_cast<std::size_t>(group_)].in_turn = true;
    const bool rounds = group_ >= 0 && groups_[static_cast<std::size_t>(group_)].rounds;
    if (!collects(from) && !collects(to) && !rounds) return;
    Ends flow;
    if (collects(from)) flow.from = add(part(from), from, src, to, dst, bytes, link, combines, relayed);
    if (collects(to) && from != to) flow.to = add(part(to), from, src, to, dst, bytes, link, combines, relayed);
    if (rounds) find_summed(flow, from, to, dst, combines);
  }
  bool collects(int rank) const { return rank >= first_ && rank < last_; }
  Part& part(int rank) { return parts_[static_cast<std::size_t>(rank - first_)]; }
  bool relays(int from, Place src, int to, Place dst, std::int64_t bytes, bool combines);
  void find_summed(const Ends& flow, int from, int to, Place dst, bool combines);
  int add(Part& its, int from, Place src, int to, Place dst, std::int64_t bytes, int link, bool combines, bool relayed);
  int flow_of(Part& part, int from, Place src, int to, Place dst, int link, bool combines);
  int lane_of(Part& part, const Step& step);
  Problem problem(Part& part);

  std::shared_ptr<const Collective> collective_;
  int first_, last_;
  std::int64_t across_ = 0;
  std::vector<Part> parts_;
  std::unique_ptr<Touched> arrived_;  // in GPU memory: what has arrived on each rank, and what was made of it
  std::vector<UserRole> buffers_;
  std::string phase_ = "all";
  std::vector<Group> groups_;
  int group_ = -1;
  int stage_ = 0;
};

/// Emits the lanes of a rank, and the dependencies between them.
void compose_steps(Composer& composer, const Steps::Listed& listed);

}  // namespace tasuki
