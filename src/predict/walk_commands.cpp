// Walk: what a lane's command waits for, how long it takes and what it occupies. See walk.hpp.
#include <algorithm>
#include <utility>

#include "predict/walk.hpp"

namespace tasuki::detail {

// Runs the lane's current command, if nothing blocks it.
Walk::Went Walk::step(std::int32_t r, LaneWalk& lane, double now) {
  const Command& c = command(r, lane.at);
  const std::int32_t first = prices_.first[at(r)];
  for (std::int32_t d = c.first_dep; d < c.first_dep + c.dep_count; ++d) {
    const std::int32_t dep = first + plan(r).deps[at(d)];
    const auto& [epoch, ended] = ended_[at(dep)];
    if (epoch != rank(r).epoch || ended > now) {
      epoch != rank(r).epoch ? wait_for(r, lane, waiting_[at(dep)]) : wait_until(r, lane, ended);
      return Went::nowhere;
    }
    if (ended > lane.ready) {
      lane.ready = ended;
      lane.after = dep;
    }
  }
  switch (c.verb) {
    case Verb::wait:
      return wait(r, lane, now) ? Went::on : Went::nowhere;
    case Verb::recv:
      return receive(r, lane, now) ? Went::on : Went::nowhere;
    case Verb::send:
      if (lane.ticket >= 0) return sent(r, lane, now) ? Went::on : Went::nowhere;
      break;
    default:
      break;
  }
  const Work& work = prices_.work[at(lane.at)];
  const bool takes_core = work.on_core && (c.verb == Verb::signal ? work.latency_keeps && work.latency > 0 : true);
  if (takes_core && rank(r).core_free > now) {
    wait_for_core(r, lane);
    return Went::nowhere;
  }
  if (work.collision < 1) {
    const double free = resources_.free_at(rank(r).hardware[at(work.resource)]);
    if (free > now) {
      wait_until(r, lane, free);
      wake(r, free);
      return Went::nowhere;
    }
  }
  c.verb == Verb::signal ? signal(r, lane, now) : this->work(r, lane, now);
  return Went::on;
}

// As in the verifier: the value that the lane's current wait waits for (0: none), or that its current signal sets.
std::int64_t Walk::counter_value(std::int32_t r, const LaneWalk& lane) const {
  const Command& c = command(r, lane.at);
  std::int64_t epoch = std::int64_t{ranks_[at(r)].epoch} - (c.verb == Verb::wait ? c.lag : 0);
  if (epoch < 1 && c.credit) return 0;
  epoch = std::max<std::int64_t>(epoch, 1);
  return (epoch - 1) * prices_.work[at(lane.at)].per_epoch + c.index + lane.round + 1;
}

bool Walk::wait(std::int32_t r, LaneWalk& lane, double now) {
  const std::int64_t value = counter_value(r, lane);
  double end = lane.ready;
  std::int32_t after = lane.after;
  if (value > 0) {
    Counter& counter = counters_[at(prices_.work[at(lane.at)].matched_by)];
    const auto& history = counter.history;
    const auto found =
        std::lower_bound(history.begin(), history.end(), value,
                         [](const auto& entry, std::int64_t wanted) { return std::get<0>(entry) < wanted; });
    if (found == history.end() || std::get<1>(*found) > now) {
      found == history.end() ? wait_for(r, lane, counter.waiting) : wait_until(r, lane, std::get<1>(*found));
      return false;
    }
    // What was there when the epoch began has delayed nobody.
    if (std::get<1>(*found) >= end && std::get<1>(*found) > rank(r).started) {
      end = std::get<1>(*found);
      after = std::get<2>(*found);
    }
  }
  advance(r, lane, {end, after});
  return true;
}

bool Walk::receive(std::int32_t r, LaneWalk& lane, double now) {
  Mailbox& mailbox = mailboxes_[at(prices_.work[at(lane.at)].matched_by)];
  if (lane.ticket < 0) lane.ticket = mailbox.tickets++;
  if (lane.ticket >= std::ssize(mailbox.arrivals)) {
    wait_for(r, lane, mailbox.waiting);
    return false;
  }
  const auto [arrival, sender] = mailbox.arrivals[static_cast<std::size_t>(lane.ticket)];
  if (arrival > now) {
    wait_until(r, lane, arrival);
    return false;
  }
  const Work& message = prices_.work[at(sender)];
  const bool reads = read_by_receiver(message);
  if (reads && rank(r).core_free > now) {
    wait_for_core(r, lane);
    return false;
  }
  const auto number = static_cast<std::size_t>(std::exchange(lane.ticket, -1));
  Ended ended = arrival > lane.ready ? Ended{arrival, sender} : Ended{lane.ready, lane.after};
  if (reads) {
    lane.ready = ended.at;
    lane.after = ended.after;
    ended = on_core(r, lane, now, message.seconds);
    if (mailbox.reads.size() <= number) mailbox.reads.resize(number + 1, {0.0, -1});
    mailbox.reads[number] = {ended.at, lane.at};
    reopen(mailbox.sender, mailbox.sent);
    wake(mailbox.sender, ended.at);
  }
  advance(r, lane, ended);
  return true;
}

// A network's own hardware moves the bytes.
bool Walk::read_by_receiver(const Work& work) {
  return work.by_receiver && !resources_.has_way(work.from, work.to, work.outside);
}

// A send whose receiver reads the bytes ends when it has.
bool Walk::sent(std::int32_t r, LaneWalk& lane, double now) {
  Mailbox& mailbox = mailboxes_[at(prices_.work[at(lane.at)].matched_by)];
  const bool read =
      lane.ticket < std::ssize(mailbox.reads) && mailbox.reads[static_cast<std::size_t>(lane.ticket)].second >= 0;
  if (!read) {
    wait_for(r, lane, mailbox.sent);
    return false;
  }
  const auto [end, reader] = mailbox.reads[static_cast<std::size_t>(lane.ticket)];
  if (end > now) {
    wait_until(r, lane, end);
    return false;
  }
  lane.ticket = -1;
  advance(r, lane, {end, reader});
  return true;
}

void Walk::signal(std::int32_t r, LaneWalk& lane, double now) {
  const std::int32_t id = lane.at;
  const Work& work = prices_.work[at(id)];
  const std::int64_t value = counter_value(r, lane);
  Ended signalled{lane.ready, lane.after};
  double seen = lane.ready + work.latency;
  if (work.on_core && work.latency_keeps && work.latency > 0) {
    signalled = on_core(r, lane, now, work.latency);
    seen = signalled.at;
  }
  if (!work.on_core) signalled.at += work.seconds;
  advance(r, lane, signalled);
  Counter& counter = counters_[at(work.matched_by)];
  // Values appear one after the other: a later value is never seen before an earlier one.
  if (!counter.history.empty()) seen = std::max(seen, std::get<1>(counter.history.back()));
  if (counter.history.empty()) counter.history.reserve(at(epochs_) + 1);  // most often one an epoch
  counter.history.emplace_back(value, seen, id);
  reopen(counter.owner, counter.waiting);
  wake(counter.owner, seen);
}

// When the core begins: now, or when the host has a free core for the rank.
Walk::Ended Walk::on_core(std::int32_t r, const LaneWalk& lane, double now, double seconds) {
  Rank& rank = this->rank(r);
  std::int32_t after = now > lane.ready ? rank.core_after : lane.after;
  double begin = now;
  if (rank.cores >= 0) {
    const auto served = resources_.serve(rank.cores, now, seconds, lane.at);
    begin = served.begin;
    if (served.after >= 0) after = served.after;
  }
  rank.core_free = resources_.serve(rank.core, begin, seconds, lane.at).end;
  rank.core_after = lane.at;
  wake(r, rank.core_free);  // for its other lanes
  return {rank.core_free, after};
}

// A command that moves bytes: done by the core or by other hardware, and through a network if there is one between the
// ranks.
void Walk::work(std::int32_t r, LaneWalk& lane, double now) {
  const std::int32_t id = lane.at;
  const Work& work = prices_.work[at(id)];
  const bool sends = command(r, id).verb == Verb::send;
  const bool by_network = work.from >= 0 && resources_.has_way(work.from, work.to, work.outside);
  Ended ended;
  double travels = 0;  // from then until the bytes have arrived
  const auto carry = [&](double from, double least) {
    const auto served = resources_.carry(work.from, work.to, work.outside, from, work.bytes, id);
    if (served.end > least && served.after >= 0) ended.after = served.after;
    return std::max(served.end, least);
  };
  if (sends && by_network && work.on_core) {
    // The network's own hardware moves a message, and takes at least the path's price. The core is busy for a share of
    // the latency: the share that a further link costs where latencies pass at the same time.
    const double keeps = machine_.constants.second_link * work.latency;
    ended = on_core(r, lane, now, keeps);
    ended.at = carry(ended.at, ended.at + work.seconds);
    travels = work.latency - keeps;
  } else if (work.on_core) {
    ended = on_core(r, lane, now, (read_by_receiver(work) ? 0 : work.seconds) + (sends ? work.latency : 0));
    if (by_network) wake(r, rank(r).core_free = ended.at = carry(now, ended.at));
  } else if (work.resource < 0) {
    ended = {lane.ready + work.seconds, lane.after};
  } else {
    const auto served = resources_.serve(rank(r).hardware[at(work.resource)], lane.ready, work.seconds, id);
    ended = {served.end, served.after >= 0 ? served.after : lane.after};
    if (work.into >= 0) {
      // Asked for at the same time: what several lanes move they move at once, whatever their order is here.
      auto in = arrive(work, work.collision < 1 ? served.begin : lane.ready, id);
      if (work.collision < 1 && in.end > served.end)
        resources_.serve(rank(r).hardware[at(work.resource)], served.end, in.end - served.end, id);
      if (in.end > ended.at) ended = {in.end, in.after >= 0 ? in.after : ended.after};
    }
    if (by_network) ended.at = carry(served.begin, ended.at);
    ended.at -= work.tail;
    travels = work.latency;
  }
  if (!read_by_receiver(work)) advance(r, lane, ended);
  if (!sends) return;
  const double arrival = ended.at + travels + (by_network ? resources_.latency(work.from, work.to, work.outside) : 0);
  Mailbox& mailbox = mailboxes_[at(work.matched_by)];
  if (read_by_receiver(work)) lane.ticket = std::ssize(mailbox.arrivals);
  mailbox.arrivals.emplace_back(arrival, id);
  reopen(mailbox.receiver, mailbox.waiting);
  wake(mailbox.receiver, arrival);
}

// The bytes enter the receiver's hardware. While bytes of another rank enter it, too, both lose bandwidth.
Resources::Served Walk::arrive(const Work& work, double asked, std::int32_t id) {
  const int into = rank(work.to).hardware[at(work.into)];
  auto in = resources_.serve(into, asked, work.seconds, id);
  if (work.collision >= 1 || in.begin <= asked) return in;
  const double together = 2 * std::min(in.begin - asked, work.seconds);
  in.end = resources_.serve(into, in.end, together * (1 / work.collision - 1), id).end;
  return in;
}

}  // namespace tasuki::detail
