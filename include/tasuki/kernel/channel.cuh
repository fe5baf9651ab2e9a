// A rank's channels with the others, and how messages are matched. Part of tasuki/kernel.cuh.
//
// Between two ranks a sender numbers its messages. Message n has place n % places of a ring in the receiver's memory; a
// small one lies in it as a whole, in lines (words.cuh), of which the first holds tag and size beside the first bytes.
// Of a large one the lines say where its bytes are in the sender's memory, from where the receiver takes them straight
// into the posted receive: so no sender has to look after a message again. The receiver looks at messages in their
// order and gives each to the earliest open receive that takes its tag; what nobody takes stays in its place until a
// receive is posted that does. When it has taken one it says so at the sender, in a word for each place. The sender
// looks at these words before it fills a half of the ring again.
//
// The book-keeping is one thread's: under a lock where several groups make calls at the same time, else after the last
// `sync` of a call, so that all threads of the group find it as it was in the call and as it will be in the next, which
// begins with a `sync`.
#pragma once

#include "tasuki/kernel/proxy.cuh"
#include "tasuki/kernel/shape.cuh"

namespace tasuki::device {

namespace detail {
struct Box;
}

/// How messages go to ranks whose memory a kernel does not reach (by_host.cuh).
struct ByHost {
  Proxy proxy;
  Byte* staging;  // in host memory: `room` bytes for each place of an answer
  Word room;
  int largest_tag;  // that MPI takes
};

/// A rank's part of `tasuki::Messages`: a small plain value, passed to a kernel as it is (with TASUKI_PARAMETER).
/// `team` is for the primitives; the rest is Tasuki's own.
struct Messages {
  Team team;
  Word eager;       // bytes of a small message, at most
  Word largest;     // of one from outside the window
  Word log_places;  // places of a ring: a power of two
  Word log_lines;   // of a place: a power of two
  Word receives;    // that may be open for messages of one rank: a power of two
  int concurrent;   // several groups of a rank may make calls at the same time
  detail::Box* boxes;
  Byte* staging;  // for each rank and place `largest` bytes
  ByHost by_host;
};

/// A message that is on its way, or a receive that is open. Every thread of the group keeps it.
struct Request {
  int kind = 0;     // nothing (any more), a small message, a large one, a receive
  int peer = 0;     ///< the other rank
  int tag = 0;      ///< after the wait for a receive: the message's
  Word bytes = 0;   ///< after the wait for a receive: the message's
  Word number = 0;  // of the message, or of the receive
  detail::View to;  // of a receive
};

namespace detail {

constexpr int kNothing = 0;
constexpr int kSmall = 1;
constexpr int kLarge = 2;
constexpr int kReceive = 3;

constexpr Word kLargeSize = 0xffff;  // in the place of a small message's bytes

// States of a ring's place that has been looked at.
constexpr unsigned kUnmatched = 1;
constexpr unsigned kMatched = 2;

// States of a receive. kHasMessage + n: it has got message n, which nobody has begun to take.
constexpr Word kClosed = 0;
constexpr Word kOpen = 1;
constexpr Word kTaking = 2;
constexpr Word kTaken = 3;
constexpr Word kHasMessage = 4;

struct alignas(64) OpenReceive {
  Word state;
  int tag;  // that it takes; when it is taken, the message's
  View to;
  Word message;  // that it has got
  Word bytes;    // of the message, when it is taken
};

/// What a rank knows of its messages from and to one other, in its own memory: counts, and addresses, which do not
/// change, so that a call finds all that it needs in one or two lines of the nearest cache.
struct alignas(128) Box {
  Word posted;     // receives
  Word oldest;     // all receives before it are closed
  Word seen;       // messages that were given to receives, or found to have none yet
  Word unmatched;  // of these, those that have none
  Word first;      // message: none before it is unmatched
  Word lock;
  const Line* lines;      // where the other's messages arrive
  OpenReceive* receives;  // by the receive's number
  unsigned* states;       // by place
  Word* tells;            // at the other, by place: one more than the number of the last message that was taken

  alignas(128) Word sent;  // messages
  Word clear;              // messages before this one find their places free
  Line* there;             // where they arrive
  const Word* taken;       // what the other tells
};

TASUKI_DEVICE unsigned place_of(const Messages& m, Word number) {
  return static_cast<unsigned>(number) & ((1U << m.log_places) - 1);
}
TASUKI_DEVICE OpenReceive& receive_of(const Messages& m, OpenReceive* receives, Word number) {
  return receives[static_cast<unsigned>(number) & (static_cast<unsigned>(m.receives) - 1)];
}

/// One rank's messages from and to one other.
struct Channel {
  const Messages& m;
  Box& box;

  TASUKI_DEVICE Channel(const Messages& messages, int with) : m(messages), box(messages.boxes[with]) {}
  TASUKI_DEVICE unsigned place(Word number) const { return place_of(m, number); }
  TASUKI_DEVICE OpenReceive& receive(Word number) const { return receive_of(m, box.receives, number); }
  TASUKI_DEVICE const Line* lines(Word number) const { return box.lines + (place(number) << m.log_lines); }
  TASUKI_DEVICE unsigned& state(Word number) const { return box.states[place(number)]; }
  TASUKI_DEVICE Line* there(Word number) const { return box.there + (place(number) << m.log_lines); }
  /// One more than the number of the last message in this one's place that the other has taken.
  TASUKI_DEVICE Word told(Word number) const { return load_leave(box.taken + place(number)); }
  TASUKI_DEVICE bool is_taken(Word number) const { return told(number) > number; }
  /// By one thread, when what is in the message's place has been read: the sender may store into it.
  TASUKI_DEVICE void tell(Word number) const { store_leave(box.tells + place(number), number + 1); }
};

/// Where a message from outside the window lies until the other has taken it.
TASUKI_DEVICE Byte* staging_of(const Messages& m, int with, Word number) {
  return m.staging + ((static_cast<Word>(with) << m.log_places) + place_of(m, number)) * m.largest;
}

/// A word of the book-keeping, where one group at a time makes calls: it may come from the multiprocessor's own cache.
TASUKI_DEVICE Word kept(const Word& word) {
#if defined(__CUDACC__)
  return word;
#else
  return load_relaxed(&word);
#endif
}
TASUKI_DEVICE void keep(Word& word, Word value) {
#if defined(__CUDACC__)
  word = value;
#else
  store_relaxed(&word, value);
#endif
}
/// A word of the book-keeping, whether one group makes calls or several.
TASUKI_DEVICE Word recall(const Messages& m, const Word& word) {
  return m.concurrent == 0 ? kept(word) : load_relaxed(&word);
}
TASUKI_DEVICE void note(const Messages& m, Word& word, Word value) {
  m.concurrent == 0 ? keep(word, value) : store_relaxed(&word, value);
}

/// The number of a place's first line: which lap, how many bytes, which tag.
TASUKI_DEVICE Word head_of(const Messages& m, Word number, Word size, int tag) {
  return ((number >> m.log_places) + 1) << 48 | size << 32 | static_cast<unsigned>(tag);
}
TASUKI_DEVICE bool is_message(const Messages& m, Word head, Word number) {
  return head >> 48 == (((number >> m.log_places) + 1) & 0xffff);
}
TASUKI_DEVICE int tag_of(Word head) {
  return static_cast<int>(static_cast<unsigned>(head));
}
TASUKI_DEVICE Word size_of(Word head) {
  return head >> 32 & 0xffff;
}
TASUKI_DEVICE bool takes(int wanted, int tag) {
  return wanted == kAnyTag || wanted == tag;
}

/// Calls `f` while no other thread of this rank is in the channel's book-keeping. Inside the loop: threads of one warp
/// may be after the same lock.
template <class F>
TASUKI_DEVICE void locked(const Messages& m, Box& box, F&& f) {
  if (m.concurrent == 0) return f();
  for (bool done = false; !done;) {
    if (exchange_acquire_gpu(&box.lock, 1) == 0) {
      f();
      store_release_gpu(&box.lock, 0);
      done = true;
    } else {
#if !defined(__CUDACC__)
      std::this_thread::yield();
#endif
    }
  }
}

/// Whether a message with this tag goes to that receive, which takes it, and not to one that was posted before.
TASUKI_DEVICE bool is_first(const Messages& m, const Channel& channel, Word oldest, Word number, int tag) {
  for (Word r = oldest; r < number; ++r) {
    const OpenReceive& receive = channel.receive(r);
    if (recall(m, receive.state) == kOpen && takes(receive.tag, tag)) return false;
  }
  return true;
}

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

/// A message that has come for any receive of this rank, claimed for the caller. By one thread.
TASUKI_RARE bool claim_any(const Messages& m, int& peer, Word& number) {
  bool claimed = false;
  for (int rank = 0; rank < m.team.ranks && !claimed; ++rank) {
    const Channel channel(m, rank);
    Box& box = channel.box;
    if (recall(m, box.oldest) == recall(m, box.posted)) continue;
    locked(m, box, [&] {
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
  locked(m, channel.box, [&] {
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
