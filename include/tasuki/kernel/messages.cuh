// Messages with tags between kernels: isend, irecv, wait, test. Part of tasuki/kernel.cuh. Made on the host by
// tasuki::Messages (tasuki/kernel.hpp). How they are matched: channel.cuh, counts.cuh, matching.cuh. How they
// travel: deliver.cuh, send.cuh, receive.cuh, quick.cuh.
#pragma once

#include "tasuki/kernel/impl/by_host.cuh"
#include "tasuki/kernel/impl/quick.cuh"

namespace tasuki::device {

/// True if something has failed on this rank, or the host has ended its kernels' waits: as `failed` of a Team.
TASUKI_DEVICE bool failed(const Messages& m) {
  return failed(m.team);
}

namespace detail {

/// `wait`, or with `once` `test`, of what goes through the host; of a large message that was sent.
template <class Group>
TASUKI_RARE bool finish_through_host(const Messages& m, const Group group, Request& request, bool once, bool& done) {
  return finish_by_host(m, group, request, once, done);
}
template <class Group>
TASUKI_RARE bool finish_large(const Messages& m, const Group group, Request& request, bool once, bool& done) {
  if (request.kind != kLarge) return group.all(same_version(m.team.heading) && working(m.team));
  group.sync();
  const Word next = drive(m, group, LookForTaken{m, request.peer, request.tag, request.number}, once);
  if (next == kGaveUp) return false;
  done = next == kEnded;
  if (done) request.kind = kNothing;
  return true;
}

/// `wait`, or with `once` `test`.
template <class Group>
TASUKI_DEVICE bool finish(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  done = true;
  const bool sent = request.kind == kSmall || (request.kind == kLarge && taken_quick(m, group, request, once));
  if (sent) {  // a small one has been since `isend`
    request.kind = kNothing;
    return true;
  }
  if (request.kind == kReceive && m.concurrent == 0 && take_quick(m, group, request, once)) return true;
  if (request.kind == kReceive && m.concurrent != 0) {
    Word head = 0;
    Word bytes = 0;
    const Word quick = take_oldest(m, group, request, once, head, bytes);
    if (quick == kEnded) return ended(request, tag_of(head), bytes);
    if (quick == kGaveUp) return false;
  }
  const auto rest = request.kind >= kHostSend  ? &finish_through_host<Group>
                    : request.kind != kReceive ? &finish_large<Group>
                    : m.concurrent == 0        ? &finish_later<Group>
                                               : &finish_shared<Group>;
  Request later = request;  // so that the request itself stays in registers
  bool ends = true;
  const bool good = by_address(rest)(m, group, later, once, ends);
  request = later;
  done = ends;
  return good;
}

/// `isend` to, `irecv` from a rank whose messages go through the host.
template <class Group>
TASUKI_RARE bool begin_through_host(const Messages& m, const Group group, bool sends, int peer, View view, int tag,
                                    Request& request) {
  return sends ? send_by_host(m, group, peer, view, tag, request) : receive_by_host(m, group, peer, view, tag, request);
}
/// `isend` and `irecv` of all else that is not quick.
template <class Group>
TASUKI_RARE bool begin_rest(const Messages& m, const Group group, bool sends, int peer, View view, int tag,
                            Request& request) {
  request = {};
  if (!check_message(m, sends ? Call::isend : Call::irecv, peer, tag, sends ? 0 : kAnyTag)) return false;
  if (sends) return was_sent(send_alone(m, group, peer, view, tag), peer, tag, view.bytes, request);
  return was_posted(post_alone(m, group, peer, view, tag), peer, view, tag, request);
}
template <class Group>
TASUKI_DEVICE bool begin(const Messages& m, const Group& group, bool sends, int peer, const View& view, int tag,
                         Request& request) {
  request.kind = kNothing;
  if (m.concurrent != 0 && is_rank(m.team, peer) && m.team.base[peer] != nullptr && tag >= (sends ? 0 : kAnyTag)) {
    if (sends) return was_sent(send_shared(m, group, peer, view, tag), peer, tag, view.bytes, request);
    return was_posted(post_shared(m, group, peer, view, tag), peer, view, tag, request);
  }
  if (m.concurrent == 0 &&
      (sends ? send_quick(m, group, peer, view, tag, request) : post_quick(m, group, peer, view, tag, request)))
    return true;
  const auto rest =
      m.team.unreachable != 0 && is_unreachable(m, peer) ? &begin_through_host<Group> : &begin_rest<Group>;
  Request later;
  const bool good = by_address(rest)(m, group, sends, peer, view, tag, later);
  request = later;
  return good;
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
