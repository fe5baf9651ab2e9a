// irecv, and wait and test for a receive, of any message; quick.cuh has what is quicker. Part of tasuki/kernel.cuh;
// messages.cuh has the calls.
#pragma once

#include "tasuki/kernel/impl/deliver.cuh"
#include "tasuki/kernel/impl/send.cuh"

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
    publish_opened(receive_of(m, receives, number), number, to, tag);
    return counts + kOneOpen;
  });
  return good;
}

/// By one thread, among several groups: the same if the channel is tangled. False if too many are open.
TASUKI_RARE bool post_locked(const Channel channel, View to, int tag, Word& number) {
  bool room = true;
  locked(channel, [&](Books& books) {
    room = books.posted - books.oldest < channel.m.receives;
    if (!room) return;
    number = books.posted++;
    OpenReceive& receive = channel.receive(number);
    receive.to = to;
    receive.tag = tag;
    store_relaxed(&receive.state, books.unmatched == 0 ? kOpen : state_of_new(channel, books, tag));
  });
  return room;
}

template <class Group>
TASUKI_DEVICE Word post_shared(const Messages& m, const Group& group, int from, const View& to, int tag) {
  Box& box = m.boxes[from];
  Word number = kNotPosted;
  group.sync();
  if (group.thread() == 0 && working(m.team) && !post_next(m, box, box.receives, to, tag, number)) {
    Word later = kNotPosted;
    if (!by_address(&post_locked)(Channel(m, from), to, tag, later))
      fail(m.team, Call::irecv, Reason::too_many_open, from, tag, m.receives);
    number = later;
  }
  return group.broadcast(number);
}

TASUKI_DEVICE bool was_posted(Word number, int from, const View& to, int tag, Request& request) {
  request.to = to;
  return number != kNotPosted && make(request, kReceive, from, tag, to.bytes, number);
}
TASUKI_DEVICE bool ended(Request& request, int tag, Word bytes) {
  request.kind = kNothing;
  request.tag = tag;
  request.bytes = bytes;
  return true;
}

/// By the group: the lines of a small message beyond one for each thread.
template <class Group>
TASUKI_RARE bool unpack_more_lines(const Messages& m, const Group group, const Line* lines, Word number, Byte* to,
                                   Word bytes) {
  return unpack_lines(m, group, lines, number, View{to, bytes, nullptr}, bytes, static_cast<Word>(group.threads()));
}

/// `wait` and `test` for a receive where several groups may be at it, quick: the receive is the oldest, and the next
/// message is for it. One thread takes it from the counts; meanwhile the others look for their lines. kEnded,
/// with the message's head and bytes; kNotYet if it is not so, and then the receive is open as before; kGaveUp if a
/// line of the message does not come.
template <class Group>
TASUKI_DEVICE Word take_oldest(const Messages& m, const Group& group, const Request& request, bool once, Word& head,
                               Word& bytes) {
  if (request.to.blocks != nullptr) return kNotYet;
  Box& box = m.boxes[request.peer];
  const Word number = request.number;  // of the receive and the message
  const Line* const lines = box.lines + (place_of(m, number) << m.log_lines);
  Word* const acks = box.acks + place_of(m, number);
  const auto thread = static_cast<Word>(group.thread());
  const Word most = request.to.bytes < m.eager ? request.to.bytes : m.eager;
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
  bytes = size_of(head);
  if (good && bytes == kLargeSize) {
    const Line size = load_line(lines + 2);
    good = size.number == number + 1 && size.data <= request.to.bytes;
  } else {
    good = good && bytes <= most;
  }
  good = good && alive && takes(request.tag, tag_of(head));
  if (thread == 0 && good) {
    good = claim_oldest(box, number);
    if (good && bytes > 0 && bytes != kLargeSize) store_bytes(request.to.at, own.data, bytes);
    if (good && bytes <= 8) store_leave(acks, number + 1);
  }
  if (thread != 0 && good && 8 * thread < bytes) own = load_line(lines + thread);
  if (!group.all(good)) {  // the first has not taken it, or another has not seen it
    if (group.broadcast(thread == 0 && good ? 1 : 0) == 0) return kNotYet;
    head = group.broadcast(head);
    bytes = size_of(head);
    if (thread != 0 && 8 * thread < bytes) own = load_line(lines + thread);
  }
  if (bytes <= 8) return kEnded;
  if (bytes == kLargeSize) {
    const Got got = by_address(&take<Group>)(m, group, request.peer, number, request.to);
    bytes = got.bytes;
    return got.good ? kEnded : kGaveUp;
  }
  bool came = true;
  if (thread != 0 && 8 * thread < bytes) {
    came = await_line(m, lines + thread, number, own);
    if (came) store_bytes(request.to.at + 8 * thread, own.data, bytes - 8 * thread);
  }
  if (bytes > 8 * static_cast<Word>(group.threads()))
    came = unpack_more_lines(m, group, lines, number, request.to.at, bytes) && came;
  came = group.all(came);
  if (thread == 0) came ? store_leave(acks, number + 1) : void(by_address(&give_up)(m, request.peer, tag_of(head)));
  if (came) return kEnded;
  group.sync();  // it has failed, whichever thread asks
  return kGaveUp;
}

/// The same, not quick: one thread finds the message.
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
    if (oldest == request.number) keep(box.oldest, oldest + 1);  // `post` continues from there
  };
  Deadline deadline(m.team);
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
      good = deadline.more();
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

}  // namespace tasuki::device::detail
