// How messages are given to receives, in their order. Part of tasuki/kernel.cuh; channel.cuh says what is matched.
#pragma once

#include "tasuki/kernel/counts.cuh"

namespace tasuki::device {

namespace detail {

/// Gives messages that have come to receives, in their order. With the lock.
TASUKI_RARE void match(const Messages& m, int peer) {
  const Channel channel(m, peer);
  Box& box = channel.box;
  const Word posted = recall(m, box.posted);
  Word seen = recall(m, box.seen);
  Word unmatched = recall(m, box.unmatched);
  for (;; ++seen) {
    const Word head = load_line(channel.lines(seen)).number;
    if (!is_message(m, head, seen)) break;
    Word r = recall(m, box.oldest);
    while (r < posted && (recall(m, channel.receive(r).state) != kOpen || !takes(channel.receive(r).tag, tag_of(head))))
      ++r;
    channel.state(seen) = r < posted ? kMatched : kUnmatched;
    if (r < posted) {
      note(m, channel.receive(r).state, kHasMessage + seen);
    } else if (unmatched++ == 0) {
      note(m, box.first, seen);
    }
  }
  note(m, box.unmatched, unmatched);
  note(m, box.seen, seen);
}

/// The state of a receive that is being posted: there is a message for it that nobody has taken yet, or it is open.
/// With the lock.
TASUKI_RARE Word state_of_new(const Messages& m, int peer, int tag) {
  const Channel channel(m, peer);
  Box& box = channel.box;
  const Word seen = recall(m, box.seen);
  Word n = recall(m, box.first);
  while (n < seen && channel.state(n) != kUnmatched) ++n;
  note(m, box.first, n);
  while (n < seen && (channel.state(n) != kUnmatched || !takes(tag, tag_of(load_line(channel.lines(n)).number)))) ++n;
  if (n == seen) return kOpen;
  channel.state(n) = kMatched;
  note(m, box.unmatched, recall(m, box.unmatched) - 1);
  return kHasMessage + n;
}

/// A receive that has got a message is the caller's to take, if nobody has begun to. With the lock.
TASUKI_DEVICE bool claim(const Messages& m, OpenReceive& receive) {
  const Word state = recall(m, receive.state);
  if (state < kHasMessage) return false;
  receive.message = state - kHasMessage;
  note(m, receive.state, kTaking);
  return true;
}

/// Nobody looks at a receive any more. With the lock.
TASUKI_DEVICE void close(const Messages& m, const Channel& channel, Word number, Word oldest) {
  note(m, channel.receive(number).state, kClosed);
  if (oldest == number) note(m, channel.box.oldest, number + 1);  // `post` goes on from there
}

/// False if there is no message for a receive of this rank.
TASUKI_DEVICE bool may_have_come(const Channel& channel) {
  const Messages& m = channel.m;
  const Box& box = channel.box;
  if (m.concurrent == 0) return kept(box.oldest) != kept(box.posted);
  const Word counts = load_relaxed(&box.counts);
  if ((counts & kTangled) != 0) return true;
  const Word next = oldest_of(counts);
  return open_of(counts) > 0 && is_message(m, load_line(channel.lines(next)).number, next);
}

/// A message that has come for any receive of this rank, claimed for the caller. By one thread.
TASUKI_RARE bool claim_any(const Messages& m, int& peer, Word& number) {
  bool claimed = false;
  for (int rank = 0; rank < m.team.ranks && !claimed; ++rank) {
    const Channel channel(m, rank);
    Box& box = channel.box;
    if (!may_have_come(channel)) continue;
    locked(channel, [&] {
      match(m, rank);
      const Word posted = recall(m, box.posted);
      for (Word r = recall(m, box.oldest); r < posted && !claimed; ++r) {
        claimed = claim(m, channel.receive(r));
        if (!claimed) continue;
        peer = rank;
        number = r;
      }
    });
  }
  return claimed;
}

TASUKI_DEVICE bool check_message(const Messages& m, Call call, int peer, int tag, int least) {
  if (!is_rank(m.team, peer)) return fail(m.team, call, Reason::peer, peer, tag);
  if (tag < least) return fail(m.team, call, Reason::tag, peer, tag);
  return true;
}

/// A receive is given up: how many messages have come, how many of them nobody takes, and which tag their oldest has.
/// By one thread.
TASUKI_RARE void say_what_came(const Messages& m, Reason why, int peer, int tag) {
  const Channel channel(m, peer);
  Word seen = 0;
  Word untaken = 0;
  int oldest = 0;
  locked(channel, [&] {
    match(m, peer);
    seen = recall(m, channel.box.seen);
    untaken = recall(m, channel.box.unmatched);
    if (untaken == 0) return;
    Word n = recall(m, channel.box.first);
    while (channel.state(n) != kUnmatched) ++n;
    oldest = tag_of(load_line(channel.lines(n)).number);
  });
  fail(m.team, Call::wait_receive, why, peer, tag, untaken, seen, static_cast<Word>(oldest));
}

}  // namespace detail

}  // namespace tasuki::device
