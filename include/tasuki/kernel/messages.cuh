// Messages with tags between kernels: isend, irecv, wait, test. Part of tasuki/kernel.cuh. Made on the host by
// tasuki::Messages (tasuki/kernel.hpp). `Request` has `tag` and `bytes`; its other members are Tasuki's own.
//
// Who calls, errors and deadline: as team.cuh says. A request is kept by every thread of the group that began it, and
// the same group waits for it. Groups of a rank call at the same time only if MessagesOptions::concurrent is true.
//
// Matching. As in MPI: of the messages of a rank whose tag a receive takes, the earliest sent goes to the earliest
// posted receive. A group that waits receives meanwhile what has come for other open receives of its rank.
//
// Order. What the group has written before `isend` is in the message. What a message brings, all threads of the group
// may read after `wait`, or after `test` has said that the request is done. Nothing else is ordered.
#pragma once

#include "tasuki/kernel/impl/message_calls.cuh"
#include "tasuki/kernel/team.cuh"

namespace tasuki::device {

/// As `failed` of a Team: any thread may call it, and it does not wait.
TASUKI_DEVICE bool failed(const Messages& m) {
  return failed(m.team);
}

/// Begins to send `bytes` bytes from `from`, any memory of this rank, to rank `to` (this one too), with a tag of 0 or
/// more. `from` must not change until the request is done. The receiver need not have posted a receive, but one of more
/// than MessagesOptions::largest bytes through the host needs both ranks: its slices are copied while groups of them
/// wait, or test, for whatever it is. Waits, up to the deadline, while MessagesOptions::depth messages to that rank or
/// more have not been received. Errors: no such rank, a negative tag, more than MessagesOptions::largest bytes from
/// outside the window unless through the host, the deadline.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, Word bytes, int tag,
                         Request& request) {
  return detail::begin(m, group, true, to, detail::contiguous(from, bytes), tag, request);
}
/// The same for the bytes of a shape (MessageLayout::device()) relative to `from`. They count as bytes from outside the
/// window.
template <class Group>
TASUKI_DEVICE bool isend(const Messages& m, const Group& group, int to, const void* from, const Shape& shape, int tag,
                         Request& request) {
  return detail::begin(m, group, true, to, detail::shaped(from, shape), tag, request);
}

/// Opens a receive of at most `bytes` bytes into `to`, any memory of this rank, for the next message of rank `from`
/// with this tag, or with any tag (kAnyTag). `to` belongs to the receive until the request is done. Does not wait; only
/// through the host it waits, up to the deadline, while `by_host` messages are under way. With
/// MessagesOptions::any_source `from` may be kAnyRank: any other rank, which the request names after the wait. Errors:
/// no such rank, a tag below kAnyTag, more than MessagesOptions::receives open for that rank.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, Word bytes, int tag,
                         Request& request) {
  return detail::begin(m, group, false, from, detail::contiguous(to, bytes), tag, request);
}
/// The same into the bytes of a shape relative to `to`; a shorter message fills the first of them. Errors: also a shape
/// that names a byte twice.
template <class Group>
TASUKI_DEVICE bool irecv(const Messages& m, const Group& group, int from, void* to, const Shape& shape, int tag,
                         Request& request) {
  request = {};
  if (shape.twice) return detail::fail(m.team, Call::irecv, Reason::twice, from, tag);
  return detail::begin(m, group, false, from, detail::shaped(to, shape), tag, request);
}

/// Sets `done` to whether the request has ended. If it has, the call was its `wait`. Does not wait for the other rank.
/// Errors: as of `wait`, but no deadline.
template <class Group>
TASUKI_DEVICE bool test(const Messages& m, const Group& group, Request& request, bool& done) {
  return detail::finish(m, group, request, true, done);
}

/// Returns when the request has ended: what was sent may change; what was received may be read, and the request says
/// the message's tag and bytes. At once for a request that has ended before. Errors: the deadline, and a message that
/// is longer than its receive.
template <class Group>
TASUKI_DEVICE bool wait(const Messages& m, const Group& group, Request& request) {
  bool done = false;
  return detail::finish(m, group, request, false, done);
}

/// Asks the process's progress thread, which answers with the same word: the time that a message through the host takes
/// besides MPI. Errors: no message of `m` goes through the host; the deadline.
template <class Group>
TASUKI_DEVICE bool echo(const Messages& m, const Group& group, Word word, Word& back) {
  if (!detail::same_version(m.team.heading)) return false;
  const Proxy& proxy = m.by_host.proxy;
  if (proxy.slots == nullptr) return detail::fail(m.team, Call::ask, Reason::no_host, m.team.rank, 0);
  Word answer = 0;
  bool good = true;
  if (group.thread() == 0) {
    Word place = 0;
    Word number = 0;
    good = detail::look_until(m.team, [&] { return detail::take_place(proxy, place); });
    const detail::HostRequest request{detail::kEcho, place, word, 0};
    good = good && detail::ask(m.team, proxy, request, number, m.team.rank, 0);
    good = good && detail::look_until(m.team, [&] { return detail::is_answered(proxy, place, number, answer); });
    if (good) detail::give_back_place(proxy, place);
  }
  if (!group.all(good)) return false;
  back = group.broadcast(answer);
  return true;
}

}  // namespace tasuki::device
