// Begins and finishes sends and receives, each in the way that its message needs. Part of tasuki/kernel.cuh;
// messages.cuh has the calls.
//
// How messages are matched: channel.cuh, matching.cuh. How they travel: deliver.cuh, send.cuh, receive.cuh, quick.cuh,
// and through the host by_host.cuh.
//
// The form for several groups (MessagesOptions::concurrent) stays beside the one without a lock. A `Messages` for each
// block would make it superfluous, but each has 2 MiB of rings for every rank by default, more than 2 GiB for the
// blocks of a full GPU among eight; and a block could then send only to the block with its own number, in an order that
// holds between these two.
#pragma once

#include "tasuki/kernel/impl/by_host.cuh"
#include "tasuki/kernel/impl/quick.cuh"

namespace tasuki::device {

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

}  // namespace tasuki::device
