// Messages with tags between kernels: isend, irecv, wait, test. Part of tasuki/kernel.cuh. Made on the host by
// tasuki::Messages (tasuki/kernel.hpp). How they travel: channel.cuh and
// deliver.cuh.
#pragma once

#include "tasuki/kernel/by_host.cuh"
#include "tasuki/kernel/deliver.cuh"

namespace tasuki::device {

/// True if something has failed on this rank: every call returns false then.
TASUKI_DEVICE bool failed(const Messages& m) {
  return failed(m.team);
}

namespace detail {

// Where one group of a rank makes calls, each has a quick way, which is in the user's kernel as a whole, and one for
// all else, which is a function. What a call needs is loaded at its begin, all at once, as a GPU takes long for each
// load.

TASUKI_DEVICE bool make(Request& request, int kind, int peer, int tag, Word bytes, Word number) {
  request.kind = kind;
  request.peer = peer;
  request.tag = tag;
  request.bytes = bytes;
  request.number = number;
  return true;
}

/// Whether a message takes at most one line for each thread.
template <class Group>
TASUKI_DEVICE bool is_short(const Messages& m, const Group& group, const View& from) {
  return from.bytes <= 8 * static_cast<Word>(group.threads()) && from.bytes <= m.eager && from.blocks == nullptr;
}
template <class Group>
TASUKI_DEVICE Word own_word(const Group& group, const View& from) {
  const auto at = 8 * static_cast<Word>(group.thread());
  return at < from.bytes ? load_bytes(from.at + at, from.bytes - at) : 0;
}
/// By the group: a short message's lines.
template <class Group>
TASUKI_DEVICE void store_short(const Messages& m, const Group& group, Line* there, Word own, Word bytes, int tag,
                               Word number) {
  const int thread = group.thread();
  if (thread != 0 && 8 * static_cast<Word>(thread) >= bytes) return;
  store_line(there + (place_of(m, number) << m.log_lines) + thread,
             Line{own, thread == 0 ? head_of(m, number, bytes, tag) : number + 1});
}

// What became of a message that is sent, in one word: the kind of its request and its number, or that it has failed.
constexpr Word kNotSent = 0;
TASUKI_DEVICE Word sent(int kind, Word number) {
  return number << 8 | static_cast<Word>(kind);
}

/// What `isend` has left to do for a message that is not short, or has no place yet.
template <class Group>
TASUKI_RARE Word send_rest(const Messages& m, const Group group, int to, View from, int tag, Word number, bool room) {
  const bool large = from.bytes > m.eager;
  const bool copied = large && !in_window(m.team, from);
  if (copied && from.bytes > m.largest) {
    fail(m.team, Call::isend, Reason::too_large, to, tag, m.largest, from.bytes);
    return kNotSent;
  }
  if (!send_later(m, group, to, from, tag, number, room)) return kNotSent;
  return sent(large && !copied ? kLarge : kSmall, number);
}

template <class Group>
TASUKI_DEVICE Word send_alone(const Messages& m, const Group& group, int to, const View& from, int tag) {
  Box& box = m.boxes[to];
  group.sync();
  const bool good = working(m.team);
  const Word number = kept(box.sent);
  const Word clear = kept(box.clear);
  Line* const there = box.there;
  const bool room = number < clear;
  const bool quick = room && is_short(m, group, from);
  if (quick) store_short(m, group, there, own_word(group, from), from.bytes, tag, number);
  Word became = group.all(good) ? sent(kSmall, number) : kNotSent;  // all have read what they send
  if (!quick && became != kNotSent) became = send_rest(m, group, to, from, tag, number, room);
  if (group.thread() == 0) keep(box.sent, number + 1);
  return became;
}

template <class Group>
TASUKI_RARE Word send_shared(const Messages& m, const Group group, int to, View from, int tag) {
  Box& box = m.boxes[to];
  const bool good = working(m.team);
  const bool few = is_short(m, group, from);
  group.sync();
  const Word own = few ? own_word(group, from) : 0;
  Word number = 0;
  bool room = true;
  const auto tell = [&] {  // what the first thread knows
    const Word both = group.broadcast(number << 1 | (room ? 1 : 0));
    number = both >> 1;
    room = (both & 1) != 0;
  };
  if (group.thread() == 0) {
    const Word clear = load_leave(&box.clear);
    number = count_gpu(&box.sent, 1);
    room = number < clear;
  }
  const bool several = from.bytes > 8;  // lines, by several threads
  if (several) tell();
  if (room && few) store_short(m, group, box.there, own, from.bytes, tag, number);
  if (group.all(good && room && few)) return several ? sent(kSmall, number) : sent(kSmall, 0);
  if (!several) tell();
  return group.all(good) ? send_rest(m, group, to, from, tag, number, room) : kNotSent;
}

/// `isend`.
template <class Group>
TASUKI_DEVICE bool send(const Messages& m, const Group& group, int to, const View& from, int tag, Request& request) {
  request.kind = kNothing;
  if (!check_message(m, Call::isend, to, tag, 0)) return false;
  const Word became = m.concurrent == 0 ? send_alone(m, group, to, from, tag) : send_shared(m, group, to, from, tag);
  return became != kNotSent && make(request, static_cast<int>(became & 0xff), to, tag, from.bytes, became >> 8);
}

/// What `post` has to know.
struct Posted {
  Word number;  // of the receive
  Word oldest;
  Word unmatched;
  Word oldest_state;
};

/// Opens receive `number`, the next, for the earliest message that nobody has taken yet or for one to come. With the
/// lock.
TASUKI_DEVICE void post(const Messages& m, int peer, Box& box, OpenReceive* receives, const Posted& now, const View& to,
                        int tag) {
  OpenReceive& receive = receive_of(m, receives, now.number);
  receive.to = to;
  receive.tag = tag;
  note(m, receive.state, now.unmatched == 0 ? kOpen : state_of_new(m, peer, tag));
  note(m, box.posted, now.number + 1);
  if (now.oldest == now.number || now.oldest_state != kClosed) return;
  Word oldest = now.oldest + 1;
  while (oldest < now.number && recall(m, receive_of(m, receives, oldest).state) == kClosed) ++oldest;
  note(m, box.oldest, oldest);
}

TASUKI_DEVICE bool look_for_room(const Messages& m, const Box& box, OpenReceive* receives, Posted& now) {
  now.number = recall(m, box.posted);
  now.oldest = recall(m, box.oldest);
  now.unmatched = recall(m, box.unmatched);
  // Whether the oldest has closed is asked when another is there, too, which spares most calls a load.
  const bool asks = now.number - now.oldest > 1 || m.receives <= 2;
  now.oldest_state = asks ? recall(m, receive_of(m, receives, now.oldest).state) : kOpen;
  return now.number - now.oldest < m.receives;
}

// The number of a receive that has been posted, or that it has not been.
constexpr Word kNotPosted = ~Word{0};

template <class Group>
TASUKI_DEVICE Word post_alone(const Messages& m, const Group& group, int from, const View& to, int tag) {
  Box& box = m.boxes[from];
  OpenReceive* const receives = box.receives;
  bool good = working(m.team);
  Posted now{};
  group.sync();
  if (!look_for_room(m, box, receives, now))
    good = fail(m.team, Call::irecv, Reason::too_many_open, from, tag, m.receives);
  if (!group.all(good)) return kNotPosted;
  if (group.thread() == 0) post(m, from, box, receives, now, to, tag);
  return now.number;
}

template <class Group>
TASUKI_RARE Word post_shared(const Messages& m, const Group group, int from, View to, int tag) {
  Box& box = m.boxes[from];
  OpenReceive* const receives = box.receives;
  bool good = working(m.team);
  Posted now{};
  group.sync();
  if (group.thread() == 0) {
    bool room = false;
    locked(m, box, [&] {
      room = look_for_room(m, box, receives, now);
      if (room) post(m, from, box, receives, now, to, tag);
    });
    if (!room) good = fail(m.team, Call::irecv, Reason::too_many_open, from, tag, m.receives);
  }
  const Word number = group.broadcast(now.number);
  return group.all(good) ? number : kNotPosted;
}

/// `irecv`.
template <class Group>
TASUKI_DEVICE bool receive(const Messages& m, const Group& group, int from, const View& to, int tag, Request& request) {
  request.kind = kNothing;
  if (!check_message(m, Call::irecv, from, tag, kAnyTag)) return false;
  const Word number = m.concurrent == 0 ? post_alone(m, group, from, to, tag) : post_shared(m, group, from, to, tag);
  if (number == kNotPosted) return false;
  request.to = to;
  return make(request, kReceive, from, tag, to.bytes, number);
}

TASUKI_DEVICE bool ended(Request& request, int tag, Word bytes) {
  request.kind = kNothing;
  request.tag = tag;
  request.bytes = bytes;
  return true;
}

/// `wait` and `test` for a receive where several groups may be at it: one thread finds the message.
template <class Group>
TASUKI_RARE bool finish_shared(const Messages& m, const Group group, Request& request, bool once, bool& done) {
  const Channel channel(m, request.peer);
  group.sync();
  const Word next = drive(m, group, LookForMessage(m, request), once);
  if (next == kGaveUp) return false;
  if (next == kNotYet) {
    done = false;
    return true;
  }
  if ((next & 0xff) == kDone) return ended(request, tag_of(next >> 32), next >> 8 & 0xff);
  if (next == kEnded) {  // another group has taken it
    const OpenReceive& receive = channel.receive(request.number);
    const int tag = receive.tag;
    const Word bytes = receive.bytes;
    group.sync();
    if (group.thread() == 0)
      locked(m, channel.box, [&] { close(m, channel, request.number, load_relaxed(&channel.box.oldest)); });
    return ended(request, tag, bytes);
  }
  const Got got = take(m, group, request.peer, next >> 16, request.to);
  return got.good && ended(request, got.tag, got.bytes);
}

/// The same where this group is the only one, as long as it takes.
template <class Group>
TASUKI_RARE bool finish_later(const Messages& m, const Group group, Request& request, bool once, bool& done) {
  const Channel channel(m, request.peer);
  Box& box = channel.box;
  OpenReceive& receive = channel.receive(request.number);
  const auto thread = static_cast<Word>(group.thread());
  Patience patience(m.team);
  for (;;) {
    group.sync();
    const bool alive = working(m.team);
    const Word state = recall(m, receive.state);
    const Word oldest = recall(m, box.oldest);
    if (state == kTaken) {  // while the group waited for something else
      const int tag = receive.tag;
      const Word bytes = receive.bytes;
      const bool good = group.all(alive);
      if (thread == 0) close(m, channel, request.number, oldest);
      return good && ended(request, tag, bytes);
    }
    const bool matched = state >= kHasMessage;
    const Word message = matched ? state - kHasMessage : recall(m, box.seen);
    bool came = false;
    bool good = true;
    for (int looks = once ? 1 : kTurns; looks > 0 && good; --looks) {
      came = is_message(m, load_line(channel.lines(message)).number, message);
      if (came) break;
      good = patience.more();
    }
    if (group.all(came && good && alive)) {
      if (!matched) {
        if (thread == 0) match(m, request.peer);
        continue;
      }
      const Got got = take(m, group, request.peer, message, request.to);
      if (!got.good) return false;
      if (thread == 0) close(m, channel, request.number, oldest);
      return ended(request, got.tag, got.bytes);
    }
    if (!group.all(good && alive)) {
      if (thread == 0) give_up(m, request.peer, request.tag);
      group.sync();  // it has failed, whichever thread asks
      return false;
    }
    const Word other = drive(m, group, LookForNothing(), true);
    if (other == kGaveUp) return false;
    if (once) {
      done = false;
      return true;
    }
  }
}

/// The same, quick: the next message is short and for this receive, which is the oldest. All threads look at the ring,
/// find the same there, and take their words as they come. False, and nothing has been done, if it is not so. Whatever
/// does not depend on the message is worked out before it comes.
template <class Group>
TASUKI_DEVICE bool take_next(const Messages& m, const Group& group, const Request& request, bool once, Word& head) {
  Box& box = m.boxes[request.peer];
  OpenReceive* const receives = box.receives;
  Word* tells = box.tells;
  const Line* lines = box.lines;
  const bool alive = working(m.team);
  const auto thread = static_cast<Word>(group.thread());
  group.sync();
  const Word message = kept(box.seen);
  const Word oldest = kept(box.oldest);
  Word& state = receive_of(m, receives, request.number).state;
  const bool quick = kept(state) == kOpen && oldest == request.number && request.to.blocks == nullptr;
  if (!quick) return false;
  tells += place_of(m, message);
  lines += place_of(m, message) << m.log_lines;
  const Word any = request.tag == kAnyTag ? 0xffffffffULL : 0;
  const Word expected = head_of(m, message, 0, request.tag) | any;
  const Word all_words = 8 * static_cast<Word>(group.threads());
  const Word most = request.to.bytes < all_words ? request.to.bytes : all_words;
  Byte* const to = request.to.at + 8 * thread;
  constexpr Word kLap = Word{0xffff} << 48;  // parts of the number of a message's first line
  constexpr Word kSize = Word{0xffff} << 32;
  Line own = load_line(lines);
  for (int looks = once ? 0 : kTurns; looks > 0 && ((own.number ^ expected) & kLap) != 0; --looks)
    own = load_line(lines);
  head = own.number;
  const Word bytes = size_of(head);
  bool good = (((head | any) ^ expected) & ~kSize) == 0 && bytes <= most;
  if (good && 8 * thread < bytes) {
    if (thread > 0) {
      own = load_line(lines + thread);
      good = await_line(m, lines + thread, message, own);
    }
    if (good) store_bytes(to, own.data, bytes - 8 * thread);
  }
  if (!group.all(good && alive)) return false;
  if (thread == 0) {
    store_leave(tells, message + 1);
    keep(box.seen, message + 1);
    keep(state, kClosed);
    keep(box.oldest, oldest + 1);
  }
  return true;
}

/// `wait`, or with `once` `test`, for a receive.
template <class Group>
TASUKI_DEVICE bool finish_receive(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  Word head = 0;
  if (m.concurrent == 0 && take_next(m, group, request, once, head)) return ended(request, tag_of(head), size_of(head));
  Request later = request;  // so that the request itself stays in registers
  bool ends = true;
  const bool good =
      m.concurrent == 0 ? finish_later(m, group, later, once, ends) : finish_shared(m, group, later, once, ends);
  request = later;
  done = ends;
  return good;
}

/// `wait`, or with `once` `test`, of what goes through the host.
template <class Group>
TASUKI_RARE bool finish_apart(const Messages& m, const Group group, Request& request, bool once, bool& done) {
  return finish_by_host(m, group, request, once, done);
}

/// `wait`, or with `once` `test`.
template <class Group>
TASUKI_DEVICE bool finish(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  done = true;
  if (request.kind == kReceive) return finish_receive(m, group, request, once, done);
  if (request.kind == kSmall) {  // `isend` has ended it
    request.kind = kNothing;
    return true;
  }
  if (request.kind >= kHostSend) {
    Request later = request;
    bool ends = true;
    const bool good = finish_apart(m, group, later, once, ends);
    request = later;
    done = ends;
    return good;
  }
  if (request.kind != kLarge) return group.all(working(m.team));
  group.sync();
  const Word next = drive(m, group, LookForTaken{m, request.peer, request.tag, request.number}, once);
  if (next == kGaveUp) return false;
  done = next == kEnded;
  if (done) request.kind = kNothing;
  return true;
}

/// `isend` to, `irecv` from a rank whose messages go through the host.
template <class Group>
TASUKI_RARE bool begin_apart(const Messages& m, const Group group, bool sends, int peer, View view, int tag,
                             Request& request) {
  return sends ? send_by_host(m, group, peer, view, tag, request) : receive_by_host(m, group, peer, view, tag, request);
}
template <class Group>
TASUKI_DEVICE bool begin(const Messages& m, const Group& group, bool sends, int peer, const View& view, int tag,
                         Request& request) {
  if (m.team.apart != 0 && is_apart(m, peer)) {
    Request later;
    const bool good = begin_apart(m, group, sends, peer, view, tag, later);
    request = later;
    return good;
  }
  return sends ? send(m, group, peer, view, tag, request) : receive(m, group, peer, view, tag, request);
}

}  // namespace detail

/// Begins to send `bytes` bytes from `from` to rank `to` (this one too), with a tag of 0 or more. What the group's
/// threads have written before is in it. `from` must stay as it is until `wait` or `test` says that the message is on
/// its way. Waits while `MessagesOptions::depth` messages to that rank, or more, have not been received.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, Word bytes, int tag,
                         Request& request) {
  return detail::begin(m, group, true, to, detail::contiguous(from, bytes), tag, request);
}
/// The same for the bytes of a shape, which MessageLayout::device() makes, relative to `from`. They count as bytes from
/// outside the window.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, const Shape& shape, int tag,
                         Request& request) {
  return detail::begin(m, group, true, to, detail::shaped(from, shape), tag, request);
}

/// Opens a receive of at most `bytes` bytes into `to`, any memory of this rank, for the next message of rank `from`
/// with this tag, or with any (kAnyTag). Receives take messages in the order in which they were posted, and messages
/// find receives in the order in which they were sent.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, Word bytes, int tag,
                         Request& request) {
  return detail::begin(m, group, false, from, detail::contiguous(to, bytes), tag, request);
}
/// The same into the bytes of a shape relative to `to`, the first of them for a shorter message.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, const Shape& shape, int tag,
                         Request& request) {
  request = {};
  if (shape.twice) return detail::fail(m.team, Call::irecv, Reason::twice, from, tag);
  return detail::begin(m, group, false, from, detail::shaped(to, shape), tag, request);
}

/// Whether the request has ended, in `done`; if it has, as `wait`. Does not wait for the other rank.
template <class Group>
TASUKI_DEVICE bool test(const Messages& m, const Group& group, Request& request, bool& done) {
  return detail::finish(m, group, request, true, done);
}

/// Returns when the request has ended: what was sent may be changed; what was received may be read by all threads of
/// the group, and the request says its tag and its bytes. At once for a request that has ended before.
template <class Group>
TASUKI_DEVICE bool wait(const Messages& m, const Group& group, Request& request) {
  bool done = false;
  return detail::finish(m, group, request, false, done);
}

}  // namespace tasuki::device
