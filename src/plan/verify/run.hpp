// Verifier, stage 2: executes the lanes of all ranks greedily, with a vector clock each. If one schedule has no
// hazards, no schedule has, so one is enough.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/verify/verify.hpp"

namespace tasuki::detail {

class Runner {
 public:
  Runner(const World& world, Memory& memory, std::int32_t epochs);

  /// Runs until all lanes have ended or none can go on.
  void run();

  std::int64_t executed() const { return executed_; }
  /// Complaints about messages of unequal size, about signals and messages without an order, and, if the execution got
  /// stuck, about who waits for whom.
  std::vector<std::string> problems() const;

 private:
  struct LaneState {
    std::int32_t command = 0;
    std::int64_t chunk = 0;
    bool posted = false;   ///< a send or recv has been reached ...
    bool matched = false;  ///< ... and has met its counterpart
    std::uint32_t event = 0;
    Clock clock;
  };
  struct RankState {
    std::int32_t epoch = 1;  ///< the current or next one; beyond the last one when the rank has finished
    bool running = false;
    std::int32_t lane_begin = 0, lane_end = 0;
    Clock user;
    std::vector<std::int32_t> ended;       ///< [command] epoch in which it last ended
    std::map<std::int32_t, Clock> end_of;  ///< for commands that others depend on
  };
  struct Tick {
    std::int32_t rank = 0, command = -1;  ///< command -1: none yet
    std::uint32_t lane = 0, tick = 0;
  };
  struct Counter {
    std::int64_t value = 0;
    Tick last;
    std::vector<std::pair<std::int64_t, Clock>> history;  ///< value, and the clock of the signal that set it
  };
  struct Channel {
    std::deque<std::int32_t> sends, recvs;  ///< lanes that are blocked in one
    Tick last_send, last_recv;
  };
  /// What a blocked lane needs: a command in a lane that is blocked itself; none if no command would help.
  struct Need {
    std::optional<std::int32_t> lane;
    std::string what;
  };

  const Plan& plan_of(std::int32_t lane) const { return world_.plans[world_.lanes[lane].rank]; }
  const Command& current(std::int32_t lane) const { return plan_of(lane).commands[states_[lane].command]; }
  bool done(std::int32_t lane) const { return states_[lane].command == world_.lanes[lane].end; }
  std::string name(std::int32_t lane) const;

  void begin_epoch(std::int32_t rank);
  void end_epoch(std::int32_t rank);
  void go_on(std::int32_t rank);
  void wake(std::int32_t rank);

  bool step(std::int32_t lane);
  bool dependencies_ended(std::int32_t lane);
  /// A lane whose moves come before the current command's, because they belong to an earlier stage; -1: none.
  std::int32_t stage_before(std::int32_t lane) const;
  bool wait(std::int32_t lane);
  void signal(std::int32_t lane);
  void move(std::int32_t lane);
  void post(std::int32_t lane);
  void meet(Channel& channel);
  void advance(std::int32_t lane);
  std::uint32_t record(std::int32_t lane);
  void check_order(std::int32_t lane, Tick& last, const std::string& what);
  std::int64_t counter_value(std::int32_t lane) const;

  std::vector<std::string> stuck() const;
  Need need_of(std::int32_t lane) const;
  Need need_signal(std::int32_t lane) const;
  Need need_message(std::int32_t lane) const;
  Need behind(std::int32_t rank, std::int32_t command, std::int32_t epoch) const;

  const World& world_;
  Memory& memory_;
  std::int32_t epochs_;
  std::vector<LaneState> states_;
  std::vector<std::int32_t> moved_;  ///< [lane] past its last move; its begin if it has none
  std::vector<RankState> ranks_;
  std::vector<Counter> counters_;                                                     ///< [area]
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Channel> channels_;  ///< sender, receiver, tag
  std::set<std::pair<std::int32_t, std::int32_t>> awake_;                             ///< epoch, rank
  std::int64_t executed_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace tasuki::detail
