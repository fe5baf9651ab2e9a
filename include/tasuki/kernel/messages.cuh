// Messages with tags between kernels: isend, irecv, wait, test. Part of tasuki/kernel.cuh. Made on the host by
// tasuki::Messages (tasuki/kernel.hpp). How they travel: channel.cuh.
#pragma once

#include "tasuki/kernel/by_host.cuh"
#include "tasuki/kernel/channel.cuh"

namespace tasuki::device {

/// True if something has failed on this rank: every call returns false then.
TASUKI_DEVICE bool failed(const Messages& m) {
  return failed(m.team);
}

namespace detail {

/// `isend`.
template <class Group>
TASUKI_DEVICE bool send(const Messages& m, const Group& group, int to, const void* from, Word bytes, int tag,
                        Request& request) {
  request = {};
  if (!check_message(m, Call::isend, to, tag, 0)) return false;
  const auto* const data = static_cast<const Byte*>(from);
  const Byte* const mine = m.team.base[m.team.rank];
  const bool large = bytes > m.eager;
  const Byte* const window = mine + m.team.window_at;
  const bool in_window =
      data >= window && bytes <= m.team.window_bytes && data <= window + (m.team.window_bytes - bytes);
  if (large && !in_window && bytes > m.largest)
    return fail(m.team, Call::isend, Reason::too_large, to, tag, m.largest, bytes);
  group.sync();
  Outbox& outbox = Channel(m, m.team.rank, to).outbox();
  Word number = 0;
  if (group.thread() == 0) number = m.concurrent != 0 ? add_gpu(&outbox.sent, 1) : outbox.sent++;
  const auto look = [&] { return number - load_acquire(&outbox.freed) < Word{1} << m.log_places ? kEnded : kNotYet; };
  const auto complain = [&](Reason why) {
    fail(m.team, Call::isend, why, to, tag, number, load_relaxed(&outbox.freed), Word{1} << (m.log_places - 1));
  };
  Word what = kNotYet;
  if (!drive(m, group, nullptr, false, look, complain, what, request.tag, request.bytes)) return false;
  number = group.broadcast(number);
  Line* const lines = Channel(m, to, m.team.rank).lines(number);
  if (!large) {
    for (Word i = static_cast<Word>(group.thread()); i == 0 || i * 8 < bytes; i += static_cast<Word>(group.threads())) {
      const Word left = bytes - 8 * i;
      const Word word = bytes > 0 ? load_bytes(data + 8 * i, left) : 0;
      store_line(lines + i, Line{word, i == 0 ? head_of(m, number, bytes, tag) : number + 1});
    }
  } else {
    const Byte* where = data;
    if (!in_window) {
      Byte* const staging = Channel(m, m.team.rank, to).staging(number);
      copy(group, staging, data, bytes);
      group.sync();
      where = staging;
    }
    if (group.thread() == 0) {
      fence();
      store_line(lines + 1, Line{static_cast<Word>(where - mine), number + 1});
      store_line(lines + 2, Line{bytes, number + 1});
      store_line(lines, Line{0, head_of(m, number, kLargeSize, tag)});
    }
  }
  request.kind = large && in_window ? kLarge : kSmall;
  request.peer = to;
  request.tag = tag;
  request.bytes = bytes;
  request.number = number;
  group.sync();  // all have read what they send
  return true;
}

/// `irecv`.
template <class Group>
TASUKI_DEVICE bool receive(const Messages& m, const Group& group, int from, void* to, Word bytes, int tag,
                           Request& request) {
  request = {};
  if (!check_message(m, Call::irecv, from, tag, kAnyTag)) return false;
  bool good = working(m.team);
  Word number = 0;
  if (group.thread() == 0) {
    const Channel channel(m, m.team.rank, from);
    Inbox& inbox = channel.inbox();
    bool full = false;
    locked(m, inbox, [&] {
      number = load_relaxed(&inbox.posted);
      full = number - load_relaxed(&inbox.oldest) == Word{1} << m.log_receives;
      if (full) return;
      OpenReceive& receive = channel.receive(number);
      receive.to = reinterpret_cast<Word>(to);
      receive.bytes = bytes;
      receive.tag = tag;
      Word state = kOpen;
      const Word seen = load_relaxed(&inbox.seen);
      for (Word n = inbox.freed; n < seen; ++n) {
        if (channel.state(n) != kUnmatched || !takes(tag, tag_of(load_line(channel.lines(n)).number))) continue;
        channel.state(n) = kMatched;
        state = kHasMessage + n;
        break;
      }
      store_relaxed(&receive.state, state);
      store_relaxed(&inbox.posted, number + 1);
    });
    if (full) good = fail(m.team, Call::irecv, Reason::too_many_open, from, tag, Word{1} << m.log_receives);
  }
  if (!group.all(good)) return false;
  request.kind = kReceive;
  request.peer = from;
  request.tag = tag;
  request.bytes = bytes;
  request.number = group.broadcast(number);
  request.to = to;
  return true;
}

/// `wait`, or with `once` `test`.
template <class Group>
TASUKI_DEVICE bool finish(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  done = true;
  if (request.kind >= kHostSend) return finish_by_host(m, group, request, once, done);
  if (request.kind == kNothing || request.kind == kSmall) {
    request.kind = kNothing;
    return group.all(working(m.team));
  }
  const Channel channel(m, m.team.rank, request.peer);
  Word what = kNotYet;
  int tag = 0;
  Word bytes = 0;
  if (request.kind == kLarge) {
    const auto look = [&] { return load_acquire(channel.taken(request.number)) > request.number ? kEnded : kNotYet; };
    const auto complain = [&](Reason why) { fail(m.team, Call::wait_send, why, request.peer, request.tag); };
    if (!drive(m, group, nullptr, once, look, complain, what, tag, bytes)) return false;
    done = what == kEnded;
    if (done) request.kind = kNothing;
    return true;
  }
  Look receive(m, channel, request.number);
  const auto look = [&] { return receive.next(); };
  const auto complain = [&](Reason why) { say_what_came(m, channel, why, request); };
  if (!drive(m, group, &request, once, look, complain, what, tag, bytes)) return false;
  done = what != kNotYet;
  if (!done) return true;
  if (what == kEnded) {  // another group has taken it
    tag = channel.receive(request.number).tag;
    bytes = channel.receive(request.number).bytes;
    group.sync();
    if (group.thread() == 0) locked(m, channel.inbox(), [&] { close(channel, request.number); });
  }
  request.kind = kNothing;
  request.tag = tag;
  request.bytes = bytes;
  return true;
}

}  // namespace detail

/// Begins to send `bytes` bytes from `from` to rank `to` (this one too), with a tag of 0 or more. What the group's
/// threads have written before is in it. `from` must stay as it is until `wait` or `test` says that the message is on
/// its way. Waits while `MessagesOptions::depth` messages to that rank, or more, have not been received.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, Word bytes, int tag,
                         Request& request) {
  if (detail::is_apart(m, to)) return detail::send_by_host(m, group, to, from, bytes, tag, request);
  return detail::send(m, group, to, from, bytes, tag, request);
}

/// Opens a receive of at most `bytes` bytes into `to`, any memory of this rank, for the next message of rank `from`
/// with this tag, or with any (kAnyTag). Receives take messages in the order in which they were posted, and messages
/// find receives in the order in which they were sent.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, Word bytes, int tag,
                         Request& request) {
  if (detail::is_apart(m, from)) return detail::receive_by_host(m, group, from, to, bytes, tag, request);
  return detail::receive(m, group, from, to, bytes, tag, request);
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
