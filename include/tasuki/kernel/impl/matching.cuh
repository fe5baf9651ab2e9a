// How messages are given to receives, in their order. Part of tasuki/kernel.cuh; channel.cuh says what is matched.
#pragma once

#include "tasuki/kernel/impl/counts.cuh"

namespace tasuki::device {

namespace detail {

/// Gives messages that have come to receives, in their order. With the lock.
TASUKI_RARE Books match(const Channel channel, Books books) {
  const Messages& m = channel.m;
  for (;; ++books.seen) {
    const Word head = load_line(channel.lines(books.seen)).number;
    Word r = books.oldest;  // on its way at the same time
    Word state = recall(m, channel.receive(r).state);
    int tag = channel.receive(r).tag;
    if (!is_message(m, head, books.seen)) return books;
    while (r < books.posted && (state != kOpen || !takes(tag, tag_of(head)))) {
      ++r;
      state = recall(m, channel.receive(r).state);
      tag = channel.receive(r).tag;
    }
    const bool matched = r < books.posted;
    channel.state(books.seen) = matched ? kMatched : kUnmatched;
    if (matched) note(m, channel.receive(r).state, kHasMessage + books.seen);
    if (!matched && books.unmatched++ == 0) books.first = books.seen;
  }
}

/// The state of a receive that is being posted: there is a message for it that nobody has taken yet, or it is open.
/// With the lock. Called while messages are unmatched.
///
/// `first` must be the earliest of these, not an earlier message: once that one is taken, its place gets another
/// message, and the place's state is the other's. From the earliest unmatched one to the last that was looked at each
/// has a place of its own, because nobody has taken the earliest.
TASUKI_RARE Word state_of_new(const Channel channel, Books& books, int tag) {
  Word n = books.first;
  while (n < books.seen && (channel.state(n) != kUnmatched || !takes(tag, tag_of(load_line(channel.lines(n)).number))))
    ++n;
  if (n == books.seen) return kOpen;
  channel.state(n) = kMatched;
  --books.unmatched;
  if (books.unmatched > 0)
    while (channel.state(books.first) != kUnmatched) ++books.first;
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
TASUKI_DEVICE void close(const Channel& channel, Books& books, Word number) {
  note(channel.m, channel.receive(number).state, kClosed);
  if (books.oldest != number) return;
  ++books.oldest;
  while (books.oldest < books.posted && books.oldest != books.seen &&
         recall(channel.m, channel.receive(books.oldest).state) == kClosed)
    ++books.oldest;
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
    if (!may_have_come(channel)) continue;
    locked(channel, [&](Books& books) {
      books = match(channel, books);
      for (Word r = books.oldest; r < books.posted && !claimed; ++r) {
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

/// A receive is given up: how many messages have come, how many of them nobody takes, which tag their oldest has, and
/// how many other receives nobody has waited for to their end. By one thread.
TASUKI_RARE void say_what_came(const Messages& m, Reason why, int peer, int tag) {
  const Channel channel(m, peer);
  Word seen = 0;
  Word untaken = 0;
  int oldest = 0;
  Word receives = 0;
  locked(channel, [&](Books& books) {
    books = match(channel, books);
    seen = books.seen;
    untaken = books.unmatched;
    for (Word r = books.oldest; r < books.posted; ++r)
      if (recall(m, channel.receive(r).state) != kClosed) ++receives;
    if (untaken == 0) return;
    oldest = tag_of(load_line(channel.lines(books.first)).number);
  });
  const Word others = receives > 0 ? receives - 1 : 0;
  fail(m.team, Call::wait_receive, why, peer, tag, untaken, seen, others << 32 | static_cast<unsigned>(oldest));
}

}  // namespace detail

}  // namespace tasuki::device
