// A rank's channels with the others, and how messages are matched. Part of tasuki/kernel.cuh.
//
// Between two ranks a sender numbers its messages. Message n has place n % places of a ring in the receiver's memory; a
// small one lies in it as a whole, in lines (words.cuh), of which the first holds tag and size beside the first bytes.
// Of a large one the lines say where its bytes are in the sender's memory, from where the receiver takes them straight
// into the posted receive: so no sender has to look after a message again. The receiver looks at messages in their
// order and gives each to the earliest open receive that takes its tag; what nobody takes stays in its place until a
// receive is posted that does. It tells the sender up to which message all places are free again.
//
// The book-keeping is one thread's: under a lock where several groups make calls at the same time, else after the last
// `sync` of a call, so that all threads of the group find it as it was in the call and as it will be in the next, which
// begins with a `sync`.
#pragma once

#include "tasuki/kernel/proxy.cuh"
#include "tasuki/kernel/shape.cuh"

namespace tasuki::device {

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
  Word eager;         // bytes of a small message, at most
  Word largest;       // of one from outside the window
  Word log_places;    // places of a ring: a power of two
  Word lines;         // of a place
  Word log_receives;  // that may be open for messages of one rank: a power of two
  int concurrent;     // several groups of a rank may make calls at the same time
  Word channels_at;
  Word channel_bytes;
  Word taken_at;  // in a channel, as all that follows
  Word inbox_at;
  Word outbox_at;
  Word states_at;
  Word receives_at;
  Word ring_at;
  Word staging_at;
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
constexpr unsigned kFree = 3;

// States of a receive. kHasMessage + n: it has got message n, which nobody has begun to take.
constexpr Word kClosed = 0;
constexpr Word kOpen = 1;
constexpr Word kTaking = 2;
constexpr Word kTaken = 3;
constexpr Word kHasMessage = 4;

struct OpenReceive {
  Word state;
  Word message;  // that it has got
  Word bytes;    // of the message, when it is taken
  View to;
  int tag;  // that it takes; when it is taken, the message's
};

/// What a rank knows of the messages of one other.
struct alignas(128) Inbox {
  Word lock;
  Word seen;       // messages that were given to receives, or found to have none yet
  Word unmatched;  // of these, those that have none
  Word freed;      // up to here all places are free
  Word told;       // and the sender has been told so
  Word posted;     // receives
  Word oldest;     // all before it are closed
};

struct alignas(128) Outbox {
  Word sent;
  Word known;               // `freed` as it was when this rank has last looked
  alignas(128) Word freed;  // by the receiver, as it has told
};

/// One rank's channel with another, in its own memory: what comes from that rank, and what it tells about messages to
/// it.
struct Channel {
  Byte* base;
  const Messages& m;

  TASUKI_DEVICE Channel(const Messages& messages, int at, int with)
      : base(messages.team.base[at] + messages.channels_at + static_cast<Word>(with) * messages.channel_bytes),
        m(messages) {}
  TASUKI_DEVICE Word place(Word number) const { return number & ((Word{1} << m.log_places) - 1); }
  TASUKI_DEVICE Inbox& inbox() const { return *reinterpret_cast<Inbox*>(base + m.inbox_at); }
  TASUKI_DEVICE Outbox& outbox() const { return *reinterpret_cast<Outbox*>(base + m.outbox_at); }
  /// Of large messages that the other rank has taken: the number and one more, by place.
  TASUKI_DEVICE Word* taken(Word number) const { return reinterpret_cast<Word*>(base + m.taken_at) + place(number); }
  TASUKI_DEVICE unsigned& state(Word number) const {
    return reinterpret_cast<unsigned*>(base + m.states_at)[place(number)];
  }
  TASUKI_DEVICE OpenReceive& receive(Word number) const {
    return reinterpret_cast<OpenReceive*>(base + m.receives_at)[number & ((Word{1} << m.log_receives) - 1)];
  }
  TASUKI_DEVICE Line* lines(Word number) const {
    return reinterpret_cast<Line*>(base + m.ring_at) + place(number) * m.lines;
  }
  TASUKI_DEVICE Byte* staging(Word number) const { return base + m.staging_at + place(number) * m.largest; }
};

/// A word of the book-keeping. With one group at a time it may come from the multiprocessor's own cache.
TASUKI_DEVICE Word recall([[maybe_unused]] const Messages& m, const Word& word) {
#if defined(__CUDACC__)
  if (m.concurrent == 0) return word;
#endif
  return load_relaxed(&word);
}
TASUKI_DEVICE void note([[maybe_unused]] const Messages& m, Word& word, Word value) {
#if defined(__CUDACC__)
  if (m.concurrent == 0) {
    word = value;
    return;
  }
#endif
  store_relaxed(&word, value);
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
TASUKI_DEVICE void locked(const Messages& m, Inbox& inbox, F&& f) {
  if (m.concurrent == 0) return f();
  for (bool done = false; !done;) {
    if (exchange_acquire_gpu(&inbox.lock, 1) == 0) {
      f();
      store_release_gpu(&inbox.lock, 0);
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
  const Channel channel(m, m.team.rank, peer);
  Inbox& inbox = channel.inbox();
  const Word posted = recall(m, inbox.posted);
  Word seen = recall(m, inbox.seen);
  Word unmatched = recall(m, inbox.unmatched);
  for (;; ++seen) {
    const Word head = load_line(channel.lines(seen)).number;
    if (!is_message(m, head, seen)) break;
    Word r = recall(m, inbox.oldest);
    while (r < posted && (recall(m, channel.receive(r).state) != kOpen || !takes(channel.receive(r).tag, tag_of(head))))
      ++r;
    channel.state(seen) = r < posted ? kMatched : kUnmatched;
    if (r < posted) note(m, channel.receive(r).state, kHasMessage + seen);
    unmatched += r < posted ? 0 : 1;
  }
  note(m, inbox.unmatched, unmatched);
  note(m, inbox.seen, seen);
}

/// Opens receive `number`, the next, for the earliest message that nobody has taken yet or for one to come. With the
/// lock.
TASUKI_RARE void post(const Messages& m, int peer, Word number, View to, int tag) {
  const Channel channel(m, m.team.rank, peer);
  Inbox& inbox = channel.inbox();
  OpenReceive& receive = channel.receive(number);
  receive.to = to;
  receive.tag = tag;
  Word state = kOpen;
  const Word unmatched = recall(m, inbox.unmatched);
  if (unmatched != 0) {
    const Word seen = recall(m, inbox.seen);
    Word n = recall(m, inbox.freed);
    while (n < seen && (channel.state(n) != kUnmatched || !takes(tag, tag_of(load_line(channel.lines(n)).number)))) ++n;
    if (n < seen) {
      channel.state(n) = kMatched;
      state = kHasMessage + n;
      note(m, inbox.unmatched, unmatched - 1);
    }
  }
  note(m, receive.state, state);
  note(m, inbox.posted, number + 1);
  Word oldest = recall(m, inbox.oldest);
  while (oldest < number && recall(m, channel.receive(oldest).state) == kClosed) ++oldest;
  note(m, inbox.oldest, oldest);
}

/// A receive that has got a message is the caller's to take, if nobody has begun to. With the lock.
TASUKI_DEVICE bool claim(const Messages& m, OpenReceive& receive) {
  const Word state = recall(m, receive.state);
  if (state < kHasMessage) return false;
  receive.message = state - kHasMessage;
  note(m, receive.state, kTaking);
  return true;
}

/// One receive is over. With the lock.
TASUKI_DEVICE void close(const Messages& m, const Channel& channel, Word number, Word oldest) {
  note(m, channel.receive(number).state, kClosed);
  if (oldest == number) note(m, channel.inbox().oldest, number + 1);  // `post` goes on from there
}

/// The place of a message, one of `seen`, is free again. With the lock.
TASUKI_DEVICE void give_back(const Messages& m, const Channel& channel, Word message, Word seen, Word freed, Word told,
                             int peer) {
  if (freed != message) {
    channel.state(message) = kFree;
    return;
  }
  ++freed;
  while (freed < seen && channel.state(freed) == kFree) ++freed;
  note(m, channel.inbox().freed, freed);
  // Half of the places are a reserve, so that not every message has to be told of.
  if (freed - told < Word{1} << (m.log_places - 1)) return;
  note(m, channel.inbox().told, freed);
  store_leave(&Channel(m, peer, m.team.rank).outbox().freed, freed);
}
TASUKI_DEVICE void give_back(const Messages& m, const Channel& channel, Word message, int peer) {
  const Inbox& inbox = channel.inbox();
  give_back(m, channel, message, recall(m, inbox.seen), recall(m, inbox.freed), recall(m, inbox.told), peer);
}

/// A message that has come for any receive of this rank, claimed for the caller. By one thread.
TASUKI_RARE bool claim_any(const Messages& m, int& peer, Word& number) {
  bool claimed = false;
  for (int rank = 0; rank < m.team.ranks && !claimed; ++rank) {
    const Channel channel(m, m.team.rank, rank);
    Inbox& inbox = channel.inbox();
    if (recall(m, inbox.oldest) == recall(m, inbox.posted)) continue;
    locked(m, inbox, [&] {
      match(m, rank);
      const Word posted = recall(m, inbox.posted);
      for (Word r = recall(m, inbox.oldest); r < posted && !claimed; ++r) {
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
  const Channel channel(m, m.team.rank, peer);
  Word seen = 0;
  Word untaken = 0;
  int oldest = 0;
  locked(m, channel.inbox(), [&] {
    match(m, peer);
    seen = recall(m, channel.inbox().seen);
    for (Word n = seen; n > recall(m, channel.inbox().freed); --n) {
      if (channel.state(n - 1) != kUnmatched) continue;
      oldest = tag_of(load_line(channel.lines(n - 1)).number);
      ++untaken;
    }
  });
  fail(m.team, Call::wait_receive, why, peer, tag, untaken, seen, static_cast<Word>(oldest));
}

}  // namespace detail

}  // namespace tasuki::device
