// irecv, and wait and test for a receive. Part of tasuki/kernel.cuh; messages.cuh has the calls. As in send.cuh, each
// has a quick way where one group of a rank makes calls.
#pragma once

#include "tasuki/kernel/deliver.cuh"
#include "tasuki/kernel/send.cuh"

namespace tasuki::device::detail {

/// What `post` has to know.
struct Posted {
  Word number;  // of the receive
  Word oldest;
  Word unmatched;
  Word oldest_state;
};

/// Opens receive `number`, the next, for the earliest message that nobody has taken yet or for one to come.
TASUKI_DEVICE void post(const Messages& m, int peer, Box& box, OpenReceive* receives, const Posted& now, const View& to,
                        int tag) {
  OpenReceive& receive = receive_of(m, receives, now.number);
  receive.to = to;
  receive.tag = tag;
  Word state = kOpen;
  if (now.unmatched != 0) {
    const Channel channel(m, peer);
    locked(channel, [&](Books& books) { state = state_of_new(channel, books, tag); });
  }
  keep(receive.state, state);
  keep(box.posted, now.number + 1);
  if (now.oldest == now.number || now.oldest_state != kClosed) return;
  Word oldest = now.oldest + 1;
  while (oldest < now.number && kept(receive_of(m, receives, oldest).state) == kClosed) ++oldest;
  keep(box.oldest, oldest);
}

TASUKI_DEVICE bool look_for_room(const Messages& m, const Box& box, OpenReceive* receives, Posted& now) {
  now.number = kept(box.posted);
  now.oldest = kept(box.oldest);
  now.unmatched = kept(box.unmatched);
  // Whether the oldest has closed is asked when another is there, too, which spares most calls a load.
  const bool asks = now.number - now.oldest > 1 || m.receives <= 2;
  now.oldest_state = asks ? kept(receive_of(m, receives, now.oldest).state) : kOpen;
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

/// By one thread, among several groups: the same if the channel is not tangled. False if it is, or if too many are
/// open.
TASUKI_DEVICE bool post_next(const Messages& m, Box& box, OpenReceive* receives, const View& to, int tag,
                             Word& number) {
  bool good = false;
  change_counts(box, [&](Word counts) {
    good = (counts & kTangled) == 0 && open_of(counts) < m.receives;
    if (!good) return counts;
    number = oldest_of(counts) + open_of(counts);
    tell_opened(receive_of(m, receives, number), number, to, tag);
    return counts + kOneOpen;
  });
  return good;
}

template <class Group>
TASUKI_RARE Word post_shared(const Messages& m, const Group group, int from, View to, int tag) {
  Box& box = m.boxes[from];
  Word number = kNotPosted;
  group.sync();
  if (group.thread() == 0) {
    const bool good = working(m.team);
    const Channel channel(m, from);
    bool room = true;
    if (good && !post_next(m, box, channel.receives, to, tag, number))
      locked(channel, [&](Books& books) {
        room = books.posted - books.oldest < m.receives;
        if (!room) return;
        number = books.posted++;
        OpenReceive& receive = channel.receive(number);
        receive.to = to;
        receive.tag = tag;
        store_relaxed(&receive.state, books.unmatched == 0 ? kOpen : state_of_new(channel, books, tag));
      });
    if (!room) fail(m.team, Call::irecv, Reason::too_many_open, from, tag, m.receives);
    if (!good) number = kNotPosted;
  }
  return group.broadcast(number);
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

/// `wait` and `test` for a receive where several groups may be at it, quick: the receive is the oldest, and the next
/// message is short and for it. One thread takes it from the counts; meanwhile the others look for their lines. kEnded,
/// with the message's head; kNotYet if it is not so, and then the receive is open as before; kGaveUp if a line of the
/// message does not come.
template <class Group>
TASUKI_DEVICE Word take_oldest(const Messages& m, const Group& group, const Request& request, bool once, Word& head) {
  if (request.to.blocks != nullptr) return kNotYet;
  Box& box = m.boxes[request.peer];
  const Word number = request.number;  // of the receive and the message
  const Line* const lines = box.lines + (place_of(m, number) << m.log_lines);
  Word* const tells = box.tells + place_of(m, number);
  const auto thread = static_cast<Word>(group.thread());
  const Word all_words = 8 * static_cast<Word>(group.threads());
  const Word most = request.to.bytes < all_words ? request.to.bytes : all_words;
  group.sync();
  const bool alive = thread != 0 || working(m.team);
  Line own{};
  bool good = false;
  for (int looks = once ? 1 : kTurns; looks > 0 && !good; --looks) {
    const Word counts = load_relaxed(&box.counts);
    own = load_line(lines);
    if (!is_oldest(counts, number)) break;
    good = is_message(m, own.number, number);
  }
  head = own.number;
  good = good && alive && takes(request.tag, tag_of(head)) && size_of(head) <= most;
  if (thread == 0 && good) {
    good = claim_oldest(box, number);
    if (good && size_of(head) > 0) store_bytes(request.to.at, own.data, size_of(head));
    if (good && size_of(head) <= 8) store_leave(tells, number + 1);
  }
  if (thread != 0 && good && 8 * thread < size_of(head)) own = load_line(lines + thread);
  if (!group.all(good)) {  // the first has not taken it, or another has not seen it
    if (group.broadcast(thread == 0 && good ? 1 : 0) == 0) return kNotYet;
    head = group.broadcast(head);
    if (thread != 0 && 8 * thread < size_of(head)) own = load_line(lines + thread);
  }
  if (size_of(head) <= 8) return kEnded;
  bool came = true;
  if (thread != 0 && 8 * thread < size_of(head)) {
    came = await_line(m, lines + thread, number, own);
    if (came) store_bytes(request.to.at + 8 * thread, own.data, size_of(head) - 8 * thread);
  }
  came = group.all(came);
  if (thread == 0) came ? store_leave(tells, number + 1) : void(give_up(m, request.peer, tag_of(head)));
  if (came) return kEnded;
  group.sync();  // it has failed, whichever thread asks
  return kGaveUp;
}

/// The same, as long as it takes: one thread finds the message.
template <class Group>
TASUKI_RARE bool finish_shared(const Messages& m, const Group group, Request& request, bool once, bool& done) {
  Word head = 0;
  const Word quick = take_oldest(m, group, request, once, head);
  if (quick == kGaveUp) return false;
  if (quick == kEnded) return ended(request, tag_of(head), size_of(head));
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
    const int tag = receive.came;
    const Word bytes = receive.bytes;
    group.sync();
    if (group.thread() == 0) locked(channel, [&](Books& books) { close(channel, books, request.number); });
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
  const auto close_alone = [&](Word oldest) {
    keep(receive.state, kClosed);
    if (oldest == request.number) keep(box.oldest, oldest + 1);  // `post` goes on from there
  };
  Patience patience(m.team);
  for (;;) {
    group.sync();
    const bool alive = working(m.team);
    const Word state = kept(receive.state);
    const Word oldest = kept(box.oldest);
    if (state == kTaken) {  // while the group waited for something else
      const int tag = receive.came;
      const Word bytes = receive.bytes;
      const bool good = group.all(alive);
      if (thread == 0) close_alone(oldest);
      return good && ended(request, tag, bytes);
    }
    const bool matched = state >= kHasMessage;
    const Word message = matched ? state - kHasMessage : kept(box.seen);
    Word head = 0;
    bool came = false;
    bool good = true;
    for (int looks = once ? 1 : kTurns; looks > 0 && good; --looks) {
      head = load_line(channel.lines(message)).number;
      came = is_message(m, head, message);
      if (came) break;
      good = patience.more();
    }
    if (group.all(came && good && alive)) {
      if (!matched && thread == 0) locked(channel, [&](Books& books) { books = match(channel, books); });
      if (!matched && (oldest != request.number || !takes(request.tag, tag_of(head)))) continue;
      const Got got = take(m, group, request.peer, message, request.to);
      if (!got.good) return false;
      if (thread == 0) close_alone(oldest);
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
/// find the same there, and take their words as they come. False if it is not so: then the receive is open as before,
/// and some of its words may have been stored. Whatever does not depend on the message is worked out before it comes.
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

}  // namespace tasuki::device::detail
