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

/// `isend`.
template <class Group>
TASUKI_DEVICE bool send(const Messages& m, const Group& group, int to, const View& from, int tag, Request& request) {
  request = {};
  if (!check_message(m, Call::isend, to, tag, 0)) return false;
  const Word bytes = from.bytes;
  const bool large = bytes > m.eager;
  if (large && !in_window(m.team, from) && bytes > m.largest)
    return fail(m.team, Call::isend, Reason::too_large, to, tag, m.largest, bytes);
  const bool good = working(m.team);  // on its way meanwhile, as is all that is loaded until it is asked for
  const auto thread = static_cast<Word>(group.thread());
  const Word places = Word{1} << m.log_places;
  const bool quick = !large && from.blocks == nullptr && bytes <= 8 * static_cast<Word>(group.threads());
  Outbox& outbox = Channel(m, m.team.rank, to).outbox();
  group.sync();
  const Word first = quick && 8 * thread < bytes ? load_bytes(from.at + 8 * thread, bytes - 8 * thread) : 0;
  Word number = 0;
  bool room = true;
  const auto tell = [&] {  // what the first thread knows
    const Word both = group.broadcast(number << 1 | (room ? 1 : 0));
    number = both >> 1;
    room = (both & 1) != 0;
  };
  if (m.concurrent == 0) {
    number = outbox.sent;
    room = number - outbox.known < places;
  } else {
    if (thread == 0) {
      const Word known = load_leave(&outbox.known);
      number = count_gpu(&outbox.sent, 1);
      room = number - known < places;
    }
    if (bytes > 8) tell();
  }
  if (room && quick && (thread == 0 || 8 * thread < bytes))
    store_line(Channel(m, to, m.team.rank).lines(number) + thread,
               Line{first, thread == 0 ? head_of(m, number, bytes, tag) : number + 1});
  bool all_good = group.all(good && room && quick);  // all have read what they send
  if (!all_good) {
    if (m.concurrent != 0 && bytes <= 8) tell();
    all_good = send_later(m, group, to, from, tag, number, room, room && quick);
  }
  if (m.concurrent == 0 && thread == 0) outbox.sent = number + 1;
  if (!all_good) return false;
  request.kind = large && in_window(m.team, from) ? kLarge : kSmall;
  request.peer = to;
  request.tag = tag;
  request.bytes = bytes;
  request.number = number;
  return true;
}

/// `irecv`.
template <class Group>
TASUKI_DEVICE bool receive(const Messages& m, const Group& group, int from, const View& to, int tag, Request& request) {
  request = {};
  if (!check_message(m, Call::irecv, from, tag, kAnyTag)) return false;
  const Channel channel(m, m.team.rank, from);
  Inbox& inbox = channel.inbox();
  const Word most = Word{1} << m.log_receives;
  bool good = working(m.team);
  Word number = 0;
  group.sync();
  const auto refuse = [&] { return fail(m.team, Call::irecv, Reason::too_many_open, from, tag, most); };
  if (m.concurrent == 0) {
    number = recall(m, inbox.posted);
    if (number - recall(m, inbox.oldest) == most) good = refuse();
    if (!group.all(good)) return false;
    if (group.thread() == 0) post(m, from, number, to, tag);
  } else {
    bool full = false;
    if (group.thread() == 0)
      locked(m, inbox, [&] {
        number = load_relaxed(&inbox.posted);
        full = number - load_relaxed(&inbox.oldest) == most;
        if (!full) post(m, from, number, to, tag);
      });
    if (full) good = refuse();
    number = group.broadcast(number);
    if (!group.all(good)) return false;
  }
  request.kind = kReceive;
  request.peer = from;
  request.tag = tag;
  request.bytes = to.bytes;
  request.number = number;
  request.to = to;
  return true;
}

TASUKI_DEVICE bool ended(Request& request, int tag, Word bytes, bool& done) {
  request.kind = kNothing;
  request.tag = tag;
  request.bytes = bytes;
  done = true;
  return true;
}

/// `wait` and `test` for a receive where several groups may be at it: one thread finds the message.
template <class Group>
TASUKI_DEVICE bool finish_shared(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  const Channel channel(m, m.team.rank, request.peer);
  OpenReceive& receive = channel.receive(request.number);
  Inbox& inbox = channel.inbox();
  group.sync();
  const Word next = drive(m, group, LookForMessage(m, request), once);
  if (next == kGaveUp) return false;
  if (next == kNotYet) {
    done = false;
    return true;
  }
  if ((next & 0xff) == kDone) return ended(request, tag_of(next >> 32), next >> 8 & 0xff, done);
  if (next == kEnded) {  // another group has taken it
    const int tag = receive.tag;
    const Word bytes = receive.bytes;
    group.sync();
    if (group.thread() == 0) locked(m, inbox, [&] { close(m, channel, request.number, load_relaxed(&inbox.oldest)); });
    return ended(request, tag, bytes, done);
  }
  const Word message = next >> 16;
  const Got got = take(m, group, request.peer, message, request.to);
  if (!got.good) return false;
  if (group.thread() == 0)
    locked(m, inbox, [&] {
      close(m, channel, request.number, load_relaxed(&inbox.oldest));
      give_back(m, channel, message, request.peer);
    });
  return ended(request, got.tag, got.bytes, done);
}

/// The same where this group is the only one: all its threads look at the ring, find the same there, and take their
/// words as they come.
template <class Group>
TASUKI_DEVICE bool finish_alone(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  const Channel channel(m, m.team.rank, request.peer);
  OpenReceive& receive = channel.receive(request.number);
  Inbox& inbox = channel.inbox();
  const auto thread = static_cast<Word>(group.thread());
  Patience patience(m.team);
  for (;;) {
    group.sync();
    const bool alive = working(m.team);  // as all of these, on its way until it is asked for
    const Word state = recall(m, receive.state);
    const Word seen = recall(m, inbox.seen);
    const Word oldest = recall(m, inbox.oldest);
    const Word freed = recall(m, inbox.freed);
    const Word told = recall(m, inbox.told);
    if (state == kTaken) {  // while the group waited for something else
      const int tag = receive.tag;
      const Word bytes = receive.bytes;
      const bool good = group.all(alive);
      if (thread == 0) close(m, channel, request.number, oldest);
      return good && ended(request, tag, bytes, done);
    }
    const bool matched = state >= kHasMessage;
    const Word message = matched ? state - kHasMessage : seen;
    const Line* const lines = channel.lines(message);
    Line first{};
    bool came = false;
    bool good = true;
    for (int looks = once ? 1 : kTurns; looks > 0 && good; --looks) {
      first = load_line(lines);
      came = is_message(m, first.number, message);
      if (came) break;
      good = patience.more();
    }
    const int tag = tag_of(first.number);
    const Word bytes = size_of(first.number);
    const bool ours =
        came && (matched || (takes(request.tag, tag) && is_first(m, channel, oldest, request.number, tag)));
    const bool simple = ours && request.to.blocks == nullptr && bytes <= request.to.bytes &&
                        bytes <= 8 * static_cast<Word>(group.threads());
    if (simple && 8 * thread < bytes) {
      Line own = first;
      if (thread > 0) {
        own = load_line(lines + thread);
        good = await_line(m, lines + thread, message, own);
      }
      if (good) store_bytes(request.to.at + 8 * thread, own.data, bytes - 8 * thread);
    }
    if (group.all(came && good && alive)) {
      if (simple) {
        if (thread == 0) {
          const Word next = matched ? seen : seen + 1;
          if (!matched) note(m, inbox.seen, next);
          close(m, channel, request.number, oldest);
          give_back(m, channel, message, next, freed, told, request.peer);
        }
        return ended(request, tag, bytes, done);
      }
      if (thread == 0) match(m, request.peer);
      if (!ours) continue;
      const Got got = take(m, group, request.peer, message, request.to);
      if (!got.good) return false;
      if (thread == 0) {
        close(m, channel, request.number, oldest);
        give_back(m, channel, message, request.peer);
      }
      return ended(request, got.tag, got.bytes, done);
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

/// `wait`, or with `once` `test`.
template <class Group>
TASUKI_DEVICE bool finish(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  done = true;
  if (request.kind >= kHostSend) return finish_by_host(m, group, request, once, done);
  if (request.kind == kReceive)
    return m.concurrent == 0 ? finish_alone(m, group, request, once, done)
                             : finish_shared(m, group, request, once, done);
  if (request.kind == kSmall) {  // `isend` has ended it
    request.kind = kNothing;
    return true;
  }
  if (request.kind != kLarge) return group.all(working(m.team));
  group.sync();
  const Word next = drive(m, group, LookForTaken{m, request.peer, request.tag, request.number}, once);
  if (next == kGaveUp) return false;
  done = next == kEnded;
  if (done) request.kind = kNothing;
  return true;
}

}  // namespace detail

/// Begins to send `bytes` bytes from `from` to rank `to` (this one too), with a tag of 0 or more. What the group's
/// threads have written before is in it. `from` must stay as it is until `wait` or `test` says that the message is on
/// its way. Waits while `MessagesOptions::depth` messages to that rank, or more, have not been received.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, Word bytes, int tag,
                         Request& request) {
  const detail::View view = detail::contiguous(from, bytes);
  if (detail::is_apart(m, to)) return detail::send_by_host(m, group, to, view, tag, request);
  return detail::send(m, group, to, view, tag, request);
}
/// The same for the bytes of a shape, which MessageLayout::device() makes, relative to `from`. They count as bytes from
/// outside the window.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, const Shape& shape, int tag,
                         Request& request) {
  const detail::View view = detail::shaped(from, shape);
  if (detail::is_apart(m, to)) return detail::send_by_host(m, group, to, view, tag, request);
  return detail::send(m, group, to, view, tag, request);
}

/// Opens a receive of at most `bytes` bytes into `to`, any memory of this rank, for the next message of rank `from`
/// with this tag, or with any (kAnyTag). Receives take messages in the order in which they were posted, and messages
/// find receives in the order in which they were sent.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, Word bytes, int tag,
                         Request& request) {
  const detail::View view = detail::contiguous(to, bytes);
  if (detail::is_apart(m, from)) return detail::receive_by_host(m, group, from, view, tag, request);
  return detail::receive(m, group, from, view, tag, request);
}
/// The same into the bytes of a shape relative to `to`, the first of them for a shorter message.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, const Shape& shape, int tag,
                         Request& request) {
  request = {};
  if (shape.twice) return detail::fail(m.team, Call::irecv, Reason::twice, from, tag);
  const detail::View view = detail::shaped(to, shape);
  if (detail::is_apart(m, from)) return detail::receive_by_host(m, group, from, view, tag, request);
  return detail::receive(m, group, from, view, tag, request);
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
