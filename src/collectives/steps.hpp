// Steps: what an algorithm is written in. It lists, for all ranks together, what moves from where to where, as if one
// step were done after the other. Each rank keeps the steps it takes part in and makes lanes of them: what touches the
// same bytes keeps its order, by dependencies; all else may go on at once. So a list that is right when it is read from
// top to bottom is right as it runs, over any path, and cannot deadlock: a step waits for earlier ones only.
//
// Steps between the same two ranks, in one direction, that name the same two buffers and the same `link` share a link:
// one path, one set of counters, a round a step. A link opens when all that it writes may be written, and its source
// is free when all of it has been read; where that is too much, give the steps links of their own. Between two ranks
// there are at most 64 (session/channels.hpp).
#pragma once

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
  /// Collects what concerns `rank`.
  Steps(std::shared_ptr<const Collective> collective, int rank);

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

  std::int64_t count() const { return static_cast<std::int64_t>(listed_.steps.size()); }
  /// Bytes of all ranks' steps so far between ranks of different islands.
  std::int64_t across() const { return across_; }
  /// The problem of this rank.
  Problem problem();

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
  struct Lane {
    std::vector<std::size_t> steps;
    std::int64_t chunk = 0;  ///< 0: no loop
    int group = -1;
    bool at_once = false;  ///< rounds in which no rank waits for one that waits for it: telling can wait for the end
  };
  struct Listed {
    std::shared_ptr<const Collective> collective;
    std::vector<Step> steps;
    std::vector<Flow> flows;
    std::vector<Lane> lanes;
  };

 private:
  struct Group {
    bool rounds = false;
    bool in_turn = false;  // a message of some rank depends on an earlier one, or what is done with one hides the next
    std::int64_t chunk = 0;
    int lanes[2] = {-1, -1};  // what leaves, and all else; of chunks all in the first
    // of rounds: by rank, buffer and offset, the flow of this rank's that writes there
    std::map<std::tuple<int, int, std::int64_t>, int> writers;
  };
  void count_across(int from, int to, std::int64_t bytes) {
    const std::vector<int>& island = listed_.collective->island();
    if (island[static_cast<std::size_t>(from)] != island[static_cast<std::size_t>(to)]) across_ += bytes;
  }
  void step(int from, Place src, int to, Place dst, std::int64_t bytes, int link, bool combines) {
    const bool relayed = arrived_ && bytes > 0 && relays(from, src, to, dst, bytes, combines);
    count_across(from, to, bytes);
    const bool mine = from == rank_ || to == rank_;
    if (mine) add(from, src, to, dst, bytes, link, combines);
    const int flow = mine && from != to && bytes > 0 ? listed_.steps.back().flow : -1;
    if (relayed && from != to && group_ >= 0) groups_[static_cast<std::size_t>(group_)].in_turn = true;
    if (relayed && flow >= 0) listed_.flows[static_cast<std::size_t>(flow)].move.relayed = true;
    if (group_ >= 0 && groups_[static_cast<std::size_t>(group_)].rounds) find_summed(flow, to, dst, combines);
  }
  bool relays(int from, Place src, int to, Place dst, std::int64_t bytes, bool combines);
  void find_summed(int flow, int to, Place dst, bool combines);
  void add(int from, Place src, int to, Place dst, std::int64_t bytes, int link, bool combines);
  int flow_of(int from, Place src, int to, Place dst, int link, bool combines);
  int lane_of(const Step& step);

  int rank_;
  std::int64_t across_ = 0;
  Listed listed_;
  std::unique_ptr<Touched> arrived_;  // in GPU memory: what has arrived on each rank, and what was made of it
  std::vector<UserRole> buffers_;
  std::string phase_ = "all";
  std::vector<Group> groups_;
  int group_ = -1;
  std::map<std::tuple<int, int, int, int, int, bool, int>, int> flows_;  // by ends, buffers, link, kind and group
  std::map<int, int> numbers_[2];                                        // per peer: links to and from it so far
  std::map<int, int> lanes_;                                             // per flow
};

/// Emits the lanes of a rank, and the dependencies between them.
void compose_steps(Composer& composer, const Steps::Listed& listed);

}  // namespace tasuki
