// How a group stores a message's lines, unpacks a message into a receive, and waits. Part of tasuki/kernel.cuh.
#pragma once

#include "tasuki/kernel/impl/slices.cuh"
#include "tasuki/kernel/impl/word_lines.cuh"

namespace tasuki::device::detail {

/// By the group: the lines of a small message.
template <class Group>
TASUKI_DEVICE void store_lines(const Group& group, Line* lines, const View& from, Word head, Word number) {
  const Word words = from.bytes == 0 ? 1 : (from.bytes + 7) / 8;
  put_lines(
      group, lines, words, [&](Word at) { return from.bytes == 0 ? 0 : load_word(from, at, from.bytes); },
      [&](Word at) { return at == 0 ? head : number + 1; });
}

/// A line of a message whose first has come, for the others may come later: once looked at, until it is there.
TASUKI_DEVICE bool await_line(const Messages& m, const Line* at, Word number, Line& line) {
  if (line.number == number + 1) return true;
  Deadline deadline(m.team);
  do {
    line = load_line(at);
    if (line.number == number + 1) return true;
  } while (deadline.more());
  return false;
}

/// By the group: the words of a small message into its receive, from word `first` on. False if a line does not come.
template <class Group>
TASUKI_DEVICE bool unpack_lines(const Messages& m, const Group& group, const Line* lines, Word number, const View& to,
                                Word bytes, Word first = 0) {
  return unpack_lines(group, lines, first, (bytes + 7) / 8, [&](Word at, Line& line) {
    if (at > 0 && !await_line(m, lines + at, number, line)) return false;
    store_word(to, at, line.data, bytes);
    return true;
  });
}

constexpr Word kNotTaken = ~Word{0};

/// By the group: the bytes of a small message that goes where bytes lie together, when this thread has taken its part
/// of them. kNotTaken if they are more than `most`, or a line does not come.
template <class Group>
TASUKI_RARE Word unpack_together(const Messages& m, const Group group, const Line* lines, Word number, Byte* to,
                                 Word most, Word bytes) {
  return bytes <= most && unpack_lines(m, group, lines, number, View{to, bytes, nullptr}, bytes) ? bytes : kNotTaken;
}

/// Why a group that finds something missing has given up; by its first thread.
TASUKI_RARE bool give_up(const Messages& m, int peer, int tag) {
  if (!working(m.team)) return false;
  say_what_came(m, load_relaxed(m.team.stop.requested) != 0 ? Reason::aborted : Reason::deadline, peer, tag);
  return false;
}

/// What has come in a receive, to all threads of the group.
struct Got {
  bool good;
  int tag;
  Word bytes;
};

/// By the group, begun by a `sync`: unpacks message `number`, of which at least the first line has come, into a
/// receive. At the end all threads have done their part, and the message is acknowledged.
template <class Group>
TASUKI_RARE Got take(const Messages& m, const Group group, int peer, Word number, View to) {
  const Channel channel(m, peer);
  const Line* const lines = channel.lines(number);
  const Word head = load_line(lines).number;
  Got got{true, tag_of(head), size_of(head)};
  const bool large = got.bytes == kLargeSize;
  Line where{};
  if (large) {
    where = load_line(lines + 1);
    Line size = load_line(lines + 2);
    got.good = await_line(m, lines + 1, number, where) && await_line(m, lines + 2, number, size);
    got.good = group.all(got.good);
    got.bytes = size.data;
  }
  if (got.good && got.bytes > to.bytes) {
    got.good = fail(m.team, Call::wait_receive, Reason::truncated, peer, got.tag, to.bytes, got.bytes);
    return got;
  }
  if (got.good && large) {
    load_acquire(&lines[2].number);  // what was written before may be read
    scatter(group, to, m.team.base[peer] + where.data, got.bytes);
    group.sync();
  } else if (got.good) {
    got.good = group.all(unpack_lines(m, group, lines, number, to, got.bytes));
  }
  if (group.thread() == 0) got.good ? channel.acknowledge(number) : void(give_up(m, peer, got.tag));
  if (got.good) return got;
  group.sync();  // it has failed, whichever thread asks
  return got;
}

/// By the group: the message of another's receive, claimed. False if it cannot be taken.
template <class Group>
TASUKI_RARE bool take_for_another(const Messages& m, const Group group, int peer, Word number) {
  OpenReceive& receive = Channel(m, peer).receive(number);
  const Got got = take(m, group, peer, receive.message, receive.to);
  if (!got.good) return false;
  group.sync();  // all have asked the receive where it goes
  if (group.thread() == 0) {
    receive.came = got.tag;
    receive.bytes = got.bytes;
    store_release_gpu(&receive.state, kTaken);
  }
  group.sync();
  return true;
}

// What a group does next while it waits: one word, which its first thread broadcasts.
constexpr Word kGaveUp = 0;
constexpr Word kEnded = 1;  // what it has waited for is there
constexpr Word kNotYet = 2;
constexpr Word kMine = 3;    // the message of its own receive, whose number follows
constexpr Word kOthers = 4;  // that of another: the peer and the receive follow
constexpr Word kDone = 5;    // its own receive is over: the bytes, 8 at most, and the tag follow
constexpr Word kSlice = 6;   // a slice of a message through the host, whose place follows
TASUKI_DEVICE Word next_of(Word what, Word number = 0, int peer = 0) {
  return number << 16 | static_cast<Word>(peer) << 8 | what;
}

constexpr int kTurns = 32;  // looks until others' messages are looked for

/// By the group, begun by a `sync`: its first thread calls `look.look()` until that finds something, and returns it, a
/// word as above. Meanwhile the group receives what comes for other receives of the rank, and copies slices of its
/// messages through the host, because another rank may wait for that. `once`: looks a single time.
/// `look.complain(reason)` says what did not come.
template <class Group, class Look>
TASUKI_RARE Word drive(const Messages& m, const Group group, Look look, bool once) {
  Deadline deadline(m.team);
  int turns = 0;
  for (;;) {
    Word next = kNotYet;
    if (group.thread() == 0) {
      const bool good = working(m.team);
      for (;;) {
        next = look.look();
        if (next != kNotYet) break;
        int peer = 0;
        Word number = 0;
        if ((once || ++turns % kTurns == 0) && claim_any(m, peer, number)) next = next_of(kOthers, number, peer);
        if (next == kNotYet && may_claim_slice(m) && claim_slice(m, number)) next = next_of(kSlice, number);
        if (once || next != kNotYet) break;
        if (deadline.more()) continue;
        if (deadline.why() != Reason::none) look.complain(deadline.why());
        next = kGaveUp;
        break;
      }
      if (!good) next = kGaveUp;
    }
    next = group.broadcast(next);
    if ((next & 0xff) == kSlice) {
      move_slice(m, group, next >> 16);
      deadline.begin_again();
    } else if ((next & 0xff) != kOthers) {
      return next;
    } else if (!take_for_another(m, group, static_cast<int>(next >> 8 & 0xff), next >> 16)) {
      return kGaveUp;
    }
    if (once) return kNotYet;
  }
}

/// By one thread: whether the half of the receiver's ring in which message `number` has its place is free. If it is,
/// the channel knows it from here on.
TASUKI_RARE bool finds_room(const Channel channel, Word number) {
  const Word half = Word{1} << (channel.m.log_places - 1);
  const Word begin = number & ~(half - 1);
  // What was in them before has been taken, most likely the last of it at last.
  constexpr Word kAtOnce = 8;  // loads
  const Word step = half < kAtOnce ? half : kAtOnce;
  bool free = true;
  for (Word n = begin + half; n > begin && n > 2 * half && free; n -= step) {
    Word acked[kAtOnce];
    TASUKI_UNROLLED
    for (Word i = 0; i < kAtOnce; ++i)
      if (i < step) acked[i] = channel.acked(n - 1 - i);
    TASUKI_UNROLLED
    for (Word i = 0; i < kAtOnce; ++i)
      if (i < step) free = free && acked[i] + 2 * half >= n - i;
  }
  if (free) store_leave(&channel.box.clear, begin + half);
  return free;
}

/// A place in the ring of the receiver.
struct LookForPlace {
  const Messages& m;
  int to;
  int tag;
  Word number;

  TASUKI_DEVICE Word look() const { return finds_room(Channel(m, to), number) ? kEnded : kNotYet; }
  TASUKI_DEVICE void complain(Reason why) const {
    Word n = number & ~((Word{1} << (m.log_places - 1)) - 1);
    while (Channel(m, to).is_taken(n - (Word{1} << m.log_places))) ++n;
    fail(m.team, Call::isend, why, to, tag, number, n - (Word{1} << m.log_places), Word{1} << (m.log_places - 1));
  }
};

/// The end of a large message.
struct LookForTaken {
  const Messages& m;
  int to;
  int tag;
  Word number;

  TASUKI_DEVICE Word look() const { return Channel(m, to).is_taken(number) ? kEnded : kNotYet; }
  TASUKI_DEVICE void complain(Reason why) const { fail(m.team, Call::wait_send, why, to, tag); }
};

/// The message of a receive, among several groups.
struct LookForMessage {
  const Messages& m;
  const Channel channel;
  int peer;
  int tag;
  Word number;
  View to;
  Word seen;
  int for_another = 0;  // looks at a message that came while an older receive was open

  TASUKI_DEVICE LookForMessage(const Messages& messages, const Request& request)
      : m(messages),
        channel(messages, request.peer),
        peer(request.peer),
        tag(request.tag),
        number(request.number),
        to(request.to),
        seen(request.number) {}

  TASUKI_DEVICE Word look() {
    OpenReceive& receive = channel.receive(number);
    // All loads are on their way at once.
    const Word counts = load_relaxed(&channel.box.counts);
    const Word state = load_relaxed(&receive.state);
    const Word in_books = load_relaxed(&channel.box.seen);
    const Line line = load_line(channel.lines(seen));
    const bool tangled = (counts & kTangled) != 0;
    const Word now = tangled ? in_books : oldest_of(counts);
    const bool came = now == seen && is_message(m, line.number, seen);
    seen = now;
    // The state is of this receive if the channel has been tangled since it was posted.
    if (tangled && state == kTaken && (load_acquire_gpu(&channel.box.counts) & kTangled) != 0 &&
        load_acquire_gpu(&receive.state) == kTaken)  // what the other has stored may be read
      return kEnded;
    if (!tangled && came && is_oldest(counts, number) && takes(tag, tag_of(line.number)))
      return claim_oldest(channel.box, number) ? taken(number, line) : kNotYet;
    if (!(tangled ? state >= kHasMessage || (state == kOpen && came) : came && is_to_be_matched(counts, line)))
      return kNotYet;
    return found(receive, tangled ? state : kOpen);
  }
  /// One that another group may be about to take is left to it for a while.
  TASUKI_DEVICE bool is_to_be_matched(Word counts, const Line& line) {
    constexpr int kLooks = 2;
    constexpr int kMoreLooks = 8;
    return is_oldest(counts, number) || ++for_another > (takes(tag, tag_of(line.number)) ? kLooks : kMoreLooks);
  }
  /// The message is this group's. One line is taken at once.
  TASUKI_DEVICE Word taken(Word message, const Line& line) const {
    const Word bytes = size_of(line.number);
    if (bytes > 8 || bytes > to.bytes || to.blocks != nullptr) return next_of(kMine, message);
    if (bytes > 0) store_bytes(to.at, line.data, bytes);
    channel.acknowledge(message);
    return static_cast<Word>(static_cast<unsigned>(tag_of(line.number))) << 32 | bytes << 8 | kDone;
  }
  /// Something has come. What is for this receive is this group's to take from here on, and nobody looks at the receive
  /// any more.
  TASUKI_DEVICE Word found(OpenReceive& receive, Word state) const {
    Word message = 0;
    bool mine = false;
    locked(channel, [&](Books& books) {
      if (state < kHasMessage) books = match(channel, books);
      const Word now = load_relaxed(&receive.state);
      mine = now >= kHasMessage;
      if (!mine) return;
      message = now - kHasMessage;
      close(channel, books, number);
    });
    return mine ? taken(message, load_line(channel.lines(message))) : kNotYet;
  }
  TASUKI_DEVICE void complain(Reason why) const { say_what_came(m, why, peer, tag); }
};

/// Nothing: only what comes for others is taken.
struct LookForNothing {
  TASUKI_DEVICE Word look() const { return kNotYet; }
  TASUKI_DEVICE void complain(Reason) const {}
};

TASUKI_DEVICE bool in_window(const Team& team, const View& view) {
  const Byte* const window = team.base[team.rank] + team.window_at;
  return view.blocks == nullptr && view.at >= window && view.bytes <= team.window_bytes &&
         view.at <= window + (team.window_bytes - view.bytes);
}

/// By one thread, after a `sync`: the lines of a large message, whose bytes lie at `where`.
TASUKI_DEVICE void store_large(const Messages& m, Line* lines, const Byte* where, Word bytes, int tag, Word number) {
  fence();
  store_line(lines + 1, Line{static_cast<Word>(where - m.team.base[m.team.rank]), number + 1});
  store_line(lines + 2, Line{bytes, number + 1});
  store_line(lines, Line{0, head_of(m, number, kLargeSize, tag)});
}

/// By the group, after a `sync`: what of `isend` takes longer: many lines, a layout, a large message, or one whose
/// place in the ring is not known to be free.
template <class Group>
TASUKI_RARE bool send_later(const Messages& m, const Group group, int to, View from, int tag, Word number, bool room) {
  const Channel channel(m, to);
  if (!room && drive(m, group, LookForPlace{m, to, tag, number}, false) != kEnded) return false;
  Line* const lines = channel.there(number);
  if (from.bytes <= m.eager) {
    store_lines(group, lines, from, head_of(m, number, from.bytes, tag), number);
    return group.all(working(m.team));
  }
  const Byte* where = from.at;
  if (!in_window(m.team, from)) {
    Byte* const staging = staging_of(m, to, number);
    gather(group, staging, from, from.bytes);
    group.sync();
    where = staging;
  }
  if (group.thread() == 0) store_large(m, lines, where, from.bytes, tag, number);
  return group.all(working(m.team));
}

}  // namespace tasuki::device::detail
