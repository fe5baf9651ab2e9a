// Walk: the plans of all ranks run in virtual time, command by command, as the host's executor and the GPU's kernel run
// them. A rank's core runs a lane until it has to wait, then looks for the next that can proceed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "predict/prices.hpp"
#include "predict/resources.hpp"
#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"

namespace tasuki::detail {

/// What a rank's core is called in `Walked::busy`, before the rank's number.
constexpr std::string_view kCoreOf = "core of rank ";

/// The results of one walk. Times are of the last epoch, which all ranks start together at time 0, unless said
/// otherwise.
struct Walked {
  std::vector<double> ranks;              ///< per rank: when its epoch ended
  std::vector<double> begin, end;         ///< per command of all ranks
  std::vector<std::int32_t> after;        ///< per command: which one it had to wait for in its last round; -1: none
  std::vector<std::int32_t> first_after;  ///< likewise in its first round
  std::vector<std::pair<std::string, double>> busy;
  double back_to_back = 0;  ///< seconds from end to end of the epochs before it
  std::int32_t last = -1;   ///< the command that ended last
  std::string stuck;        ///< not empty: a command that waits for ever
};

class Walk {
 public:
  /// Chunk loops run as if the longest of them had at most `most_rounds` rounds. `epochs` is how many come before the
  /// last one; 0: as many as the plans' credits need. In the last epoch every rank's core computes for `beside` seconds
  /// once it has nothing else to do, as where a caller starts, computes and waits; the epoch ends after that.
  Walk(std::span<const Plan> plans, const Machine& machine, const Prices& prices, std::int64_t most_rounds,
       std::int32_t epochs = 0, double beside = 0);
  Walked run();

 private:
  struct LaneWalk {
    std::int32_t begin = 0, end = 0;  // commands of all ranks
    std::int32_t at = 0;
    std::int64_t round = 0;
    double ready = 0;             // when the lane reached its current command
    std::int32_t after = -1;      // the command that ended at that time
    std::int64_t ticket = -1;     // of a receive that has been posted, or of a send that its receiver has yet to read
    std::int32_t waits_too = -1;  // the next lane that waits for the same command, counter or channel
    bool done() const { return at == end; }
  };
  // Lanes of a rank, by their numbers within it.
  class LaneSet {
   public:
    void resize(std::int32_t count) { words_.assign((static_cast<std::size_t>(count) + 63) / 64, 0); }
    void insert(std::int32_t lane) { word(lane) |= bit(lane); }
    void erase(std::int32_t lane) { word(lane) &= ~bit(lane); }
    /// The first one in either set, the other left out if null, from `from` on and before `to`; -1: none.
    static std::int32_t first(const LaneSet& a, const LaneSet* b, std::int32_t from, std::int32_t to);

   private:
    std::uint64_t& word(std::int32_t lane) { return words_[static_cast<std::size_t>(lane) / 64]; }
    static std::uint64_t bit(std::int32_t lane) { return std::uint64_t{1} << (lane % 64); }
    std::vector<std::uint64_t> words_;
  };
  struct Rank {
    std::int32_t lane_begin = 0, lane_end = 0;
    std::int32_t cursor = 0;  // lane at which the core looks first
    // Where its lanes are: those that may be able to proceed, those that could if the core were free, and those that
    // can from a later time on. The others wait for a command, a counter or a channel, which know them, or are done.
    LaneSet open, for_core;
    std::priority_queue<std::pair<double, std::int32_t>, std::vector<std::pair<double, std::int32_t>>, std::greater<>>
        later;
    std::int32_t left = 0;   // lanes that are not done
    double lanes_ended = 0;  // when the last of the others was
    bool idle = true;
    bool announces = false;  // it still sends signals that cost no work, before it works
    int core = -1;           // resource
    double woken = -1;       // the time for which a look was last requested
    int cores = -1;          // of the host, if there are fewer than ranks
    double core_free = 0;
    std::int32_t core_after = -1;
    std::int32_t epoch = 0;
    double started = 0, ended = 0;  // of the epoch at which it is
    double half_ended = 0;          // the epoch in the middle
    bool computes = false;          // it has yet to begin what it computes beside the epoch
    double computed = 0;            // when that ended
    std::vector<int> hardware;      // resources
  };
  struct Counter {
    std::int32_t owner = 0;
    std::int32_t waiting = -1;                                            // the first of the lanes that do
    std::vector<std::tuple<std::int64_t, double, std::int32_t>> history;  // value, when it is seen, who set it
  };
  struct Mailbox {
    std::int32_t receiver = 0;
    std::int32_t waiting = -1;  // the first of the lanes that do
    std::int64_t tickets = 0;
    std::vector<std::pair<double, std::int32_t>> arrivals;
    std::int32_t sender = 0;
    std::int32_t sent = -1;  // the first of the sender's lanes that wait until the receiver has read
    std::vector<std::pair<double, std::int32_t>> reads;  // of what it reads: when it has, and by which command; -1: not
  };
  struct Ended {
    double at = 0;
    std::int32_t after = -1;  // what it had to wait for
  };
  enum class Went : std::uint8_t { on, nowhere };

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  const Plan& plan(std::int32_t rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  Rank& rank(std::int32_t r) { return ranks_[static_cast<std::size_t>(r)]; }
  LaneWalk& lane(std::int32_t l) { return lanes_[static_cast<std::size_t>(l)]; }
  const Command& command(std::int32_t r, std::int32_t id) const;

  void set_up();
  void start(std::int32_t r, double at);
  void visit(std::int32_t r, double now);
  bool announce(std::int32_t r, double now);
  bool sweep(std::int32_t r, double now);
  void end_epoch(std::int32_t r, double at);
  void compute(std::int32_t r, double from);
  Went step(std::int32_t r, LaneWalk& lane, double now);
  bool wait(std::int32_t r, LaneWalk& lane, double now);
  bool receive(std::int32_t r, LaneWalk& lane, double now);
  bool sent(std::int32_t r, LaneWalk& lane, double now);
  bool read_by_receiver(const Work& work);
  void wait_until(std::int32_t r, const LaneWalk& lane, double when);
  void wait_for(std::int32_t r, LaneWalk& lane, std::int32_t& waiting);
  void wait_for_core(std::int32_t r, const LaneWalk& lane);
  void reopen(std::int32_t r, std::int32_t& waiting);
  std::int32_t within(std::int32_t r, const LaneWalk& lane) const {
    return static_cast<std::int32_t>(&lane - lanes_.data()) - ranks_[static_cast<std::size_t>(r)].lane_begin;
  }
  void signal(std::int32_t r, LaneWalk& lane, double now);
  Resources::Served arrive(const Work& work, double asked, std::int32_t id);
  void work(std::int32_t r, LaneWalk& lane, double now);
  Ended on_core(std::int32_t r, const LaneWalk& lane, double now, double seconds);
  std::int64_t counter_value(std::int32_t r, const LaneWalk& lane) const;
  void advance(std::int32_t r, LaneWalk& lane, const Ended& ended);
  void wake(std::int32_t r, double when);

  std::span<const Plan> plans_;
  const Machine& machine_;
  const Prices& prices_;
  std::int64_t most_rounds_;
  double beside_ = 0;
  std::int64_t longest_ = 1;
  std::int32_t epochs_ = 0;  // before the last
  Resources resources_;
  std::vector<LaneWalk> lanes_;
  std::vector<Rank> ranks_;
  std::vector<Counter> counters_;
  std::vector<Mailbox> mailboxes_;
  std::vector<std::pair<std::int32_t, double>> ended_;  // per command: epoch and time
  std::vector<std::int64_t> rounds_;                    // per command
  std::vector<std::int32_t> waiting_;                   // per command: the first lane that waits for its end
  using Event = std::tuple<double, std::int64_t, std::int32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t sequence_ = 0;
  std::int64_t visits_ = 0;
  bool recording_ = false;
  std::ptrdiff_t running_ = 0;  // ranks that have epochs to end
  double now_ = 0;
  Walked walked_;
};

}  // namespace tasuki::detail
