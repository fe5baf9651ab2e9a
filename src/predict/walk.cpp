// Walk: epochs, and which lane of which rank runs when. See walk.hpp.
#include "predict/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "plan/label.hpp"
#include "plan/look.hpp"

namespace tasuki::detail {

namespace {

constexpr std::int32_t kLeastEpochs = 4;
constexpr std::int32_t kMostEpochs = 12;
constexpr std::int64_t kVisitsALook = 1 << 14;

}  // namespace

std::int32_t Walk::LaneSet::first(const LaneSet& a, const LaneSet* b, std::int32_t from, std::int32_t to) {
  std::uint64_t from_here = ~std::uint64_t{0} << (from % 64);
  for (std::int32_t begin = from - from % 64; begin < to; begin += 64, from_here = ~std::uint64_t{0}) {
    const std::size_t w = at(begin) / 64;
    const std::uint64_t lanes = (a.words_[w] | (b != nullptr ? b->words_[w] : 0)) & from_here;
    if (lanes == 0) continue;
    const std::int32_t found = begin + std::countr_zero(lanes);
    return found < to ? found : -1;
  }
  return -1;
}

Walk::Walk(std::span<const Plan> plans, const Machine& machine, const Prices& prices, std::int64_t most_rounds,
           std::int32_t epochs, double beside)
    : plans_(plans),
      machine_(machine),
      prices_(prices),
      most_rounds_(most_rounds),
      beside_(beside),
      epochs_(epochs),
      resources_(machine) {
  set_up();
}

const Command& Walk::command(std::int32_t r, std::int32_t id) const {
  return plan(r).commands[at(id - prices_.first[at(r)])];
}

void Walk::set_up() {
  std::int32_t lag = 0;
  for (const Plan& plan : plans_) {
    for (const Loop& loop : plan.loops) longest_ = std::max(longest_, loop.count);
    for (const Command& c : plan.commands) lag = std::max(lag, c.lag);
  }
  // Twice the longest credit: in the first half the credits are used up, the second half shows the steady state.
  if (epochs_ == 0) epochs_ = std::clamp(2 * (std::min(lag, kMostEpochs) + 1), kLeastEpochs, kMostEpochs);
  std::map<int, int> ranks_of, cores_of;
  for (const auto& rank : machine_.ranks) ++ranks_of[rank.host];
  counters_.resize(at(prices_.counters));
  mailboxes_.resize(at(prices_.channels));
  ended_.assign(prices_.work.size(), {0, 0.0});
  rounds_.assign(prices_.work.size(), 1);
  waiting_.assign(prices_.work.size(), -1);
  for (std::int32_t r = 0; r < std::ssize(plans_); ++r) {
    Rank rank;
    const int host = machine_.ranks[at(r)].host;
    rank.core = resources_.add(fmt::format("{}{}", kCoreOf, r));
    for (const std::string& name : prices_.hardware)
      rank.hardware.push_back(resources_.add(fmt::format("{} of rank {}", name, r)));
    if (machine_.cores > 0 && machine_.cores < ranks_of[host]) {
      if (!cores_of.contains(host))
        cores_of[host] = resources_.add(fmt::format("cores of host {}", host), machine_.cores);
      rank.cores = cores_of[host];
    }
    rank.lane_begin = rank.cursor = static_cast<std::int32_t>(lanes_.size());
    const std::int32_t first = prices_.first[at(r)];
    const auto& commands = plan(r).commands;
    for (std::int32_t i = 0; i < std::ssize(commands); ++i) {
      const Command& c = commands[at(i)];
      if (i == 0 || c.lane != commands[at(i - 1)].lane) lanes_.push_back({.begin = first + i});
      lanes_.back().end = first + i + 1;
      const Work& work = prices_.work[at(first + i)];
      if (c.verb == Verb::signal) counters_[at(work.matched_by)].owner = plan(r).buffers[at(c.dst)].rank;
      if (c.verb == Verb::send) {
        mailboxes_[at(work.matched_by)].receiver = c.peer;
        mailboxes_[at(work.matched_by)].sender = r;
      }
      if (c.loop < 0) continue;
      const std::int64_t count = plan(r).loops[at(c.loop)].count;
      const double part = static_cast<double>(most_rounds_) / static_cast<double>(longest_);
      rounds_[at(first + i)] =
          longest_ <= most_rounds_
              ? count
              : std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(static_cast<double>(count) * part)));
    }
    rank.lane_end = static_cast<std::int32_t>(lanes_.size());
    rank.open.resize(rank.lane_end - rank.lane_begin);
    rank.for_core.resize(rank.lane_end - rank.lane_begin);
    ranks_.push_back(std::move(rank));
  }
}

Walked Walk::run() {
  walked_.begin.assign(prices_.work.size(), 0);
  walked_.end.assign(prices_.work.size(), 0);
  walked_.after.assign(prices_.work.size(), -1);
  walked_.first_after.assign(prices_.work.size(), -1);
  walked_.ranks.assign(plans_.size(), 0);
  const auto drain = [&] {
    running_ = std::ssize(ranks_);
    while (!events_.empty()) {
      const auto [now, order, r] = events_.top();
      events_.pop();
      now_ = now;
      if (++visits_ % kVisitsALook == 0) look();
      visit(r, now);
    }
  };
  const auto stuck = [&] {
    for (std::int32_t r = 0; r < std::ssize(ranks_); ++r) {
      for (std::int32_t l = rank(r).lane_begin; l < rank(r).lane_end && walked_.stuck.empty(); ++l)
        if (!lane(l).done()) walked_.stuck = label(plan(r), lane(l).at - prices_.first[at(r)]);
    }
    return running_ > 0;
  };
  for (std::int32_t r = 0; r < std::ssize(ranks_); ++r) start(r, 0);
  drain();
  if (stuck()) return std::move(walked_);
  double together = 0;
  for (const Rank& rank : ranks_) {
    together = std::max(together, rank.ended);
    walked_.back_to_back =
        std::max(walked_.back_to_back, (rank.ended - rank.half_ended) / static_cast<double>(epochs_ - (epochs_ >> 1)));
  }
  // Permissions that are under way arrive before the last epoch begins, as they do in programs that compute between
  // epochs.
  for (const Counter& counter : counters_)
    if (!counter.history.empty()) together = std::max(together, std::get<1>(counter.history.back()));
  recording_ = true;
  resources_.forget_busy();
  for (std::int32_t r = 0; r < std::ssize(ranks_); ++r) start(r, together);
  drain();
  if (stuck()) return std::move(walked_);
  for (std::int32_t r = 0; r < std::ssize(ranks_); ++r) walked_.ranks[at(r)] = rank(r).ended - together;
  for (std::size_t i = 0; i < prices_.work.size(); ++i) {
    walked_.begin[i] -= together;
    walked_.end[i] -= together;
    if (walked_.last < 0 || walked_.end[i] >= walked_.end[at(walked_.last)])
      walked_.last = static_cast<std::int32_t>(i);
  }
  walked_.busy = resources_.busy();
  return std::move(walked_);
}

void Walk::start(std::int32_t r, double now) {
  Rank& rank = this->rank(r);
  ++rank.epoch;
  rank.idle = false;
  rank.started = now;
  rank.announces = true;
  rank.computes = recording_ && beside_ > 0;
  rank.computed = now;
  rank.cursor = rank.lane_begin;
  for (std::int32_t l = rank.lane_begin; l < rank.lane_end; ++l) {
    LaneWalk& lane = this->lane(l);
    lane = {.begin = lane.begin, .end = lane.end, .at = lane.begin, .ready = now};
    rank.open.insert(l - rank.lane_begin);
  }
  rank.left = rank.lane_end - rank.lane_begin;
  rank.lanes_ended = 0;
  wake(r, now);
}

void Walk::visit(std::int32_t r, double now) {
  Rank& rank = this->rank(r);
  if (rank.idle) return;
  for (; !rank.later.empty() && rank.later.top().first <= now; rank.later.pop())
    rank.open.insert(rank.later.top().second);
  if (rank.announces && announce(r, now)) return;
  while (sweep(r, now)) {
  }
  if (rank.computes && rank.core_free <= now) compute(r, now);
  if (rank.left > 0 || rank.lanes_ended > now) return;
  if (rank.computes) compute(r, std::max(rank.core_free, now));
  end_epoch(r, std::max(rank.lane_begin == rank.lane_end ? now : rank.lanes_ended, rank.computed));
}

// The caller computes: its core does nothing else meanwhile.
void Walk::compute(std::int32_t r, double from) {
  Rank& rank = this->rank(r);
  rank.computes = false;
  if (rank.cores >= 0) from = resources_.serve(rank.cores, from, beside_, -1).begin;
  rank.computed = rank.core_free = resources_.serve(rank.core, from, beside_, -1).end;
  rank.core_after = -1;
  wake(r, rank.core_free);
}

// Signals at the beginnings of lanes go first, so that peers can proceed. True while the core is busy with them.
bool Walk::announce(std::int32_t r, double now) {
  Rank& rank = this->rank(r);
  if (rank.core_free > now) return true;
  for (; rank.cursor < rank.lane_end; ++rank.cursor) {
    LaneWalk& lane = this->lane(rank.cursor);
    while (!lane.done() && command(r, lane.at).verb == Verb::signal) {
      if (lane.ready > now || step(r, lane, now) == Went::nowhere) break;
      if (rank.core_free > now) return true;
    }
  }
  rank.announces = false;
  rank.cursor = rank.lane_begin;
  return false;
}

// Lets every lane run as far as it can. True if one of them advanced without taking time.
bool Walk::sweep(std::int32_t r, double now) {
  Rank& rank = this->rank(r);
  const std::int32_t count = rank.lane_end - rank.lane_begin;
  const std::int32_t from = rank.cursor - rank.lane_begin;
  bool moved = false;
  // From the cursor to the last lane, then from the first lane to the cursor.
  for (const auto& [begin, end] : {std::pair{from, count}, std::pair{0, from}}) {
    for (std::int32_t k = begin; k < end; ++k) {
      k = LaneSet::first(rank.open, rank.core_free <= now ? &rank.for_core : nullptr, k, end);
      if (k < 0) break;
      rank.for_core.erase(k);
      LaneWalk& lane = this->lane(rank.lane_begin + k);
      while (!lane.done() && lane.ready <= now) {
        const std::int32_t id = lane.at;
        const bool core_was_free = rank.core_free <= now;
        if (step(r, lane, now) == Went::nowhere) break;
        moved = moved || lane.ready <= now;
        if (core_was_free && rank.core_free > now) {
          // The core stays with its lane. Only after a slice has been handed over do other lanes get their turn.
          const bool yields = command(r, id).verb == Verb::signal && command(r, id).loop < 0;
          rank.cursor = rank.lane_begin + (yields ? (k + 1) % count : k);
        }
      }
    }
  }
  return moved;
}

// The lane is looked at again when the time has come. A look of its rank at that time has been asked for.
void Walk::wait_until(std::int32_t r, const LaneWalk& lane, double when) {
  rank(r).open.erase(within(r, lane));
  rank(r).later.emplace(when, within(r, lane));
}

// The lane is looked at again after `reopen` of the same list.
void Walk::wait_for(std::int32_t r, LaneWalk& lane, std::int32_t& waiting) {
  rank(r).open.erase(within(r, lane));
  lane.waits_too = waiting;
  waiting = within(r, lane);
}

void Walk::wait_for_core(std::int32_t r, const LaneWalk& lane) {
  rank(r).open.erase(within(r, lane));
  rank(r).for_core.insert(within(r, lane));
}

void Walk::reopen(std::int32_t r, std::int32_t& waiting) {
  for (; waiting >= 0; waiting = lane(rank(r).lane_begin + waiting).waits_too) rank(r).open.insert(waiting);
}

void Walk::end_epoch(std::int32_t r, double ended) {
  Rank& rank = this->rank(r);
  rank.ended = ended;
  if (rank.epoch == epochs_ / 2) rank.half_ended = ended;
  if (rank.epoch < epochs_) return start(r, ended);
  rank.idle = true;
  --running_;
}

// Has the rank looked at again at `time`. Several requests for one time need one look.
void Walk::wake(std::int32_t r, double when) {
  when = std::max(when, now_);
  if (when > now_ && rank(r).woken == when) return;
  rank(r).woken = when;
  events_.emplace(when, ++sequence_, r);
}

// Ends the lane's current command and goes to the next one of the loop or of the lane.
void Walk::advance(std::int32_t r, LaneWalk& lane, const Ended& ended) {
  const auto [end, after] = ended;
  const std::int32_t id = lane.at;
  const std::int32_t loop = command(r, id).loop;
  const bool last_round = lane.round + 1 >= rounds_[at(id)];
  if (recording_) {
    if (lane.round == 0) {
      walked_.begin[at(id)] = lane.ready;
      walked_.first_after[at(id)] = after;
    }
    walked_.end[at(id)] = end;
    walked_.after[at(id)] = after;
  }
  if (last_round) {
    ended_[at(id)] = {rank(r).epoch, end};
    reopen(r, waiting_[at(id)]);
  }
  if (end > now_) wake(r, end);
  lane.ready = end;
  lane.after = id;
  const std::int32_t next = id + 1;
  if (loop >= 0 && next < lane.end && command(r, next).loop == loop) {
    lane.at = next;
  } else if (!last_round) {
    while (lane.at > lane.begin && command(r, lane.at - 1).loop == loop) --lane.at;
    ++lane.round;
  } else {
    lane.at = next;
    lane.round = 0;
  }
  if (lane.done()) {
    rank(r).open.erase(within(r, lane));
    --rank(r).left;
    rank(r).lanes_ended = std::max(rank(r).lanes_ended, end);
  } else if (end > now_) {
    wait_until(r, lane, end);
  }
}

}  // namespace tasuki::detail
