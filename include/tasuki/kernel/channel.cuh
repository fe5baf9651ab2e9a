// A rank's channels with the others, and how messages are matched and taken. Part of tasuki/kernel.cuh.
//
// Between two ranks a sender numbers its messages. Message n has place n % places of a ring in the receiver's memory; a
// small one lies in it as a whole, in lines (words.cuh), of which the first holds tag and size beside the first bytes.
// Of a large one the lines say where its bytes are in the sender's memory, from where the receiver takes them straight
// into the posted receive: so no sender has to look after a message again. The receiver looks at messages in their
// order and gives each to the earliest open receive that takes its tag; what nobody takes stays in its place until a
// receive is posted that does. It tells the sender up to which message all places are free again.
#pragma once

#include "tasuki/kernel/proxy.cuh"
#include "tasuki/kernel/team.cuh"

namespace tasuki::device {

/// How messages go to ranks whose memory a kernel does not reach (by_host.cuh).
struct ByHost {
  Proxy proxy;
  Byte* staging;  // in host memory: `room` bytes for each place of an answer
  Word room;
  int largest_tag;  // that MPI takes
};

/// A rank's part of `tasuki::Messages`: a small plain value, passed to a kernel as it is (with __grid_constant__ on a
/// GPU). `team` is for the primitives; the rest is Tasuki's own.
struct Messages {
  Team team;
  Word eager;         // bytes of a small message, at most
  Word largest;       // of one from outside the window
  Word log_places;    // places of a ring: a power of two
  Word lines;         // of a place
  Word log_receives;  // that may be open for messages of one rank: a power of two
  int concurrent;     // several groups of a rank may send to or receive from one rank at the same time
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
  void* to = nullptr;
};

namespace detail {

constexpr int kNothing = 0;
constexpr int kSmall = 1;
constexpr int kLarge = 2;
constexpr int kReceive = 3;

constexpr Word kLargeSize = 0xffff;  // in the place of a small message's bytes

// States of a ring's place.
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
  Word message;
  Word to;     // an address
  Word bytes;  // that it takes at most; when it is taken, the message's
  int tag;     // that it takes; when it is taken, the message's
};

/// What a rank knows of the messages of one other.
struct alignas(128) Inbox {
  Word lock;
  Word seen;    // messages that were given to receives, or found to have none yet
  Word freed;   // up to here all places are free
  Word told;    // and the sender has been told so
  Word posted;  // receives
  Word oldest;  // of those that are not closed
};

struct alignas(128) Outbox {
  Word sent;
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
TASUKI_DEVICE bool takes(int wanted, int tag) {
  return wanted == kAnyTag || wanted == tag;
}

/// Calls `f` while no other thread of this rank is in the channel's book-keeping. Inside the loop: threads of one warp
/// may be after the same lock.
template <class F>
TASUKI_DEVICE void locked(const Messages& m, Inbox& inbox, F&& f) {
  if (m.concurrent == 0) return f();
  for (bool done = false; !done;) {
    if (exchange_gpu(&inbox.lock, 1) == 0) {
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

/// Gives messages that have come to receives, in their order. With the lock.
TASUKI_DEVICE void match(const Messages& m, const Channel& channel) {
  Inbox& inbox = channel.inbox();
  Word seen = load_relaxed(&inbox.seen);
  for (;; ++seen) {
    const Word head = load_line(channel.lines(seen)).number;
    if (!is_message(m, head, seen)) break;
    channel.state(seen) = kUnmatched;
    for (Word r = load_relaxed(&inbox.oldest); r < load_relaxed(&inbox.posted); ++r) {
      OpenReceive& receive = channel.receive(r);
      if (load_relaxed(&receive.state) != kOpen || !takes(receive.tag, tag_of(head))) continue;
      channel.state(seen) = kMatched;
      store_relaxed(&receive.state, kHasMessage + seen);
      break;
    }
  }
  store_relaxed(&inbox.seen, seen);
}

/// A receive that has got a message is the caller's to take, if nobody has begun to. With the lock.
TASUKI_DEVICE bool claim(OpenReceive& receive) {
  const Word state = load_relaxed(&receive.state);
  if (state < kHasMessage) return false;
  receive.message = state - kHasMessage;
  store_relaxed(&receive.state, kTaking);
  return true;
}

/// One receive is over. With the lock.
TASUKI_DEVICE void close(const Channel& channel, Word number) {
  Inbox& inbox = channel.inbox();
  store_relaxed(&channel.receive(number).state, kClosed);
  Word oldest = load_relaxed(&inbox.oldest);
  while (oldest < load_relaxed(&inbox.posted) && load_relaxed(&channel.receive(oldest).state) == kClosed) ++oldest;
  store_relaxed(&inbox.oldest, oldest);
}

/// The place of a message is free again. With the lock.
TASUKI_DEVICE void give_back(const Messages& m, const Channel& channel, Word message, int peer) {
  Inbox& inbox = channel.inbox();
  channel.state(message) = kFree;
  const Word seen = load_relaxed(&inbox.seen);
  while (inbox.freed < seen && channel.state(inbox.freed) == kFree) ++inbox.freed;
  // Half of the places are a reserve, so that not every message has to be told of.
  if (inbox.freed - inbox.told < Word{1} << (m.log_places - 1)) return;
  inbox.told = inbox.freed;
  store_release(&Channel(m, peer, m.team.rank).outbox().freed, inbox.freed);
}

// What a group does next while it waits.
constexpr Word kGaveUp = 0;
constexpr Word kEnded = 1;
constexpr Word kTake = 2;
constexpr Word kNotYet = 3;

/// One thread's looks for the message of a receive.
class Look {
 public:
  TASUKI_DEVICE Look(const Messages& m, const Channel& channel, Word number)
      : m_(m), channel_(channel), receive_(channel.receive(number)), seen_(load_relaxed(&channel.inbox().seen)) {}

  /// kTake: it has come, and is this thread's to take. kEnded: another has taken it.
  TASUKI_DEVICE Word next() {
    // All three loads are on their way at once.
    const Word state = load_relaxed(&receive_.state);
    const Word seen = load_relaxed(&channel_.inbox().seen);
    const Word head = load_line(channel_.lines(seen_)).number;
    if (state == kTaken) {
      load_acquire_gpu(&receive_.state);  // what the other has stored may be read
      return kEnded;
    }
    bool claimed = false;
    if (state >= kHasMessage || (state == kOpen && seen == seen_ && is_message(m_, head, seen))) {
      locked(m_, channel_.inbox(), [&] {
        if (load_relaxed(&receive_.state) == kOpen) match(m_, channel_);
        claimed = claim(receive_);
      });
    }
    seen_ = seen;
    return claimed ? kTake : kNotYet;
  }

 private:
  const Messages& m_;
  const Channel& channel_;
  OpenReceive& receive_;
  Word seen_;
};

/// A message that has come for any receive of this rank, claimed for the caller. By one thread.
TASUKI_DEVICE bool claim_any(const Messages& m, int& peer, Word& number) {
  bool claimed = false;
  for (int rank = 0; rank < m.team.ranks && !claimed; ++rank) {
    const Channel channel(m, m.team.rank, rank);
    Inbox& inbox = channel.inbox();
    if (load_relaxed(&inbox.oldest) == load_relaxed(&inbox.posted)) continue;
    locked(m, inbox, [&] {
      match(m, channel);
      const Word posted = load_relaxed(&inbox.posted);
      for (Word r = load_relaxed(&inbox.oldest); r < posted && !claimed; ++r) {
        claimed = claim(channel.receive(r));
        if (!claimed) continue;
        peer = rank;
        number = r;
      }
    });
  }
  return claimed;
}

/// 8 bytes of a message, or as many as are left.
TASUKI_DEVICE Word load_bytes(const Byte* from, Word bytes) {
  if (bytes >= 8 && reinterpret_cast<Word>(from) % 8 == 0) return *reinterpret_cast<const Word*>(from);
  Word word = 0;
  for (Word i = 0; i < 8 && i < bytes; ++i) word |= static_cast<Word>(from[i]) << 8 * i;
  return word;
}
TASUKI_DEVICE void store_bytes(Byte* to, Word word, Word bytes) {
  if (bytes >= 8 && reinterpret_cast<Word>(to) % 8 == 0) {
    *reinterpret_cast<Word*>(to) = word;
    return;
  }
  for (Word i = 0; i < 8 && i < bytes; ++i) to[i] = static_cast<Byte>(word >> 8 * i);
}

/// By one thread: line i of a message whose first has come, for the others may come later. False if it does not.
TASUKI_DEVICE bool rest_line(const Messages& m, const Channel& channel, Word number, Word i, int peer, int tag,
                             Word& data) {
  Patience patience(m.team);
  for (;;) {
    const Line line = load_line(channel.lines(number) + i);
    data = line.data;
    if (line.number == number + 1) return true;
    if (patience.more()) continue;
    if (patience.why() != Reason::none) fail(m.team, Call::wait_receive, patience.why(), peer, tag, 0, number);
    return false;
  }
}

/// Takes the message of a claimed receive. By the group, which asked for it itself (`own`) and is told tag and bytes,
/// or not. What has come for others is taken while a group waits, as they may wait for what this rank does later.
template <class Group>
TASUKI_DEVICE bool take(const Messages& m, const Group& group, int peer, Word number, bool own, int& tag, Word& bytes) {
  const Channel channel(m, m.team.rank, peer);
  OpenReceive& receive = channel.receive(number);
  const Word message = receive.message;
  const Word most = receive.bytes;
  auto* const to = reinterpret_cast<Byte*>(receive.to);
  const Line first = load_line(channel.lines(message));
  tag = tag_of(first.number);
  bytes = first.number >> 32 & 0xffff;
  const bool large = bytes == kLargeSize;
  Word at = 0;
  bool good = true;
  if (large) {
    good = rest_line(m, channel, message, 1, peer, tag, at) && rest_line(m, channel, message, 2, peer, tag, bytes);
    if (!group.all(good)) return false;
    load_acquire(&channel.lines(message)[2].number);  // what was written before may be read
  }
  if (bytes > most) return fail(m.team, Call::wait_receive, Reason::truncated, peer, tag, most, bytes);
  if (large) {
    copy(group, to, m.team.base[peer] + at, bytes);
  } else {
    const auto threads = static_cast<Word>(group.threads());
    for (Word i = static_cast<Word>(group.thread()); good && i * 8 < bytes; i += threads) {
      Word data = first.data;
      if (i > 0) good = rest_line(m, channel, message, i, peer, tag, data);
      if (good) store_bytes(to + 8 * i, data, bytes - 8 * i);
    }
  }
  if (!group.all(good)) return false;
  if (group.thread() != 0) return true;
  if (large) store_release(Channel(m, peer, m.team.rank).taken(message), message + 1);
  locked(m, channel.inbox(), [&] {
    give_back(m, channel, message, peer);
    if (own) return close(channel, number);
    receive.tag = tag;
    receive.bytes = bytes;
    store_release_gpu(&receive.state, kTaken);
  });
  return true;
}

/// By the group: until `look`, which its first thread calls, says kEnded, or kTake for the receive `own` that it waits
/// for. Meanwhile it takes what comes for others. `once`: no longer than there is something to take. `complain` says
/// that this is given up, and why.
template <class Group, class Looking, class Complain>
TASUKI_DEVICE bool drive(const Messages& m, const Group& group, const Request* own, bool once, Looking&& look,
                         Complain&& complain, Word& what, int& tag, Word& bytes) {
  constexpr int kTurns = 16;  // looks until others' messages are looked for
  Patience patience(m.team);
  int turns = 0;
  for (;;) {
    int peer = own != nullptr ? own->peer : 0;
    Word number = own != nullptr ? own->number : 0;
    if (group.thread() == 0) {
      const bool good = working(m.team);
      for (;;) {
        what = look();
        if (what == kEnded || what == kTake) break;
        what = kNotYet;
        if ((once || ++turns % kTurns == 0) && claim_any(m, peer, number)) what = kTake;
        if (once || what == kTake) break;
        if (patience.more()) continue;
        if (patience.why() != Reason::none) complain(patience.why());
        what = kGaveUp;
        break;
      }
      if (!good) what = kGaveUp;
    }
    what = group.broadcast(what);
    if (what == kGaveUp) return false;
    if (what != kTake) return true;
    peer = static_cast<int>(group.broadcast(static_cast<Word>(peer)));
    number = group.broadcast(number);
    const bool mine = own != nullptr && peer == own->peer && number == own->number;
    if (!take(m, group, peer, number, mine, tag, bytes)) return false;
    if (mine) return true;
  }
}

TASUKI_DEVICE bool check_message(const Messages& m, Call call, int peer, int tag, int least) {
  if (!is_rank(m.team, peer)) return fail(m.team, call, Reason::peer, peer, tag);
  if (tag < least) return fail(m.team, call, Reason::tag, peer, tag);
  return true;
}

/// A receive is given up: how many messages have come, how many of them nobody takes, and which tag their oldest has.
TASUKI_DEVICE void say_what_came(const Messages& m, const Channel& channel, Reason why, const Request& request) {
  Word seen = 0;
  Word untaken = 0;
  int tag = 0;
  locked(m, channel.inbox(), [&] {
    seen = load_relaxed(&channel.inbox().seen);
    for (Word n = seen; n > channel.inbox().freed; --n) {
      if (channel.state(n - 1) != kUnmatched) continue;
      tag = tag_of(load_line(channel.lines(n - 1)).number);
      ++untaken;
    }
  });
  fail(m.team, Call::wait_receive, why, request.peer, request.tag, untaken, seen, static_cast<Word>(tag));
}

}  // namespace detail

}  // namespace tasuki::device
