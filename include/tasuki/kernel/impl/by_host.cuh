// Messages to and from ranks whose memory a kernel does not reach: the process's progress thread makes the calls of
// MPI (src/kernels/host_messages.hpp), which matches them. Part of tasuki/kernel.cuh; messages.cuh calls what is here.
//
//   sender:    pack into host memory, ask ... MPI_Isend, MPI_Test ... answer
//   receiver:  ask ... MPI_Irecv, MPI_Test ... answer, unpack from host memory
//
// A request's message lies in host memory at its answer's place; a larger one than fits there goes in slices
// (slices.cuh).
#pragma once

#include "tasuki/kernel/impl/deliver.cuh"

namespace tasuki::device {
namespace detail {

constexpr Word kEcho = 1;  // HostRequest::what; of messages `a` is the peer and the tag, `b` the bytes
constexpr Word kIsend = 2;
constexpr Word kIrecv = 3;

// An answer about a message: what became of it in two bits, then its bytes and its tag in 31 each. Of more bytes than
// these hold it says kMostBytes, and the header all of them.
constexpr Word kDelivered = 0;
constexpr Word kTooLong = 1;
constexpr Word kMostBytes = 0x7fffffff;

TASUKI_DEVICE Word answer_of(Word outcome, Word bytes, int tag) {
  return outcome << 62 | (bytes < kMostBytes ? bytes : kMostBytes) << 31 | static_cast<unsigned>(tag);
}
TASUKI_DEVICE Word bytes_in(Word answer) {
  return answer >> 31 & kMostBytes;
}
TASUKI_DEVICE Word ends_of(int peer, int tag) {
  return static_cast<Word>(peer) << 32 | static_cast<unsigned>(tag);
}

/// Whether the rank is one whose messages go through the host, or kAnyRank, whose may.
TASUKI_DEVICE bool is_unreachable(const Messages& m, int peer) {
  return peer == kAnyRank || (is_rank(m.team, peer) && m.team.base[peer] == nullptr);
}

/// A place for an answer.
struct LookForAnswersPlace {
  const Messages& m;
  int peer;
  int tag;
  Word& place;

  TASUKI_DEVICE Word look() const { return take_place(m.by_host.proxy, place) ? kEnded : kNotYet; }
  TASUKI_DEVICE void complain(Reason why) const {
    fail(m.team, Call::ask, why, peer, tag, Word{1} << m.by_host.proxy.log_places);
  }
};

/// The answer to a request.
struct LookForAnswer {
  const Messages& m;
  Call call;
  const Request& request;
  Word& answer;

  TASUKI_DEVICE Word look() const {
    const Proxy& proxy = m.by_host.proxy;
    const Word place = request.number & ((Word{1} << proxy.log_places) - 1);
    if (!is_answered(proxy, place, request.number >> proxy.log_places, answer)) return kNotYet;
    return request.kind != kHostReceive || answer >> 62 == kTooLong || !is_sliced(m, bytes_in(answer)) ||
                   is_unpacked(place)
               ? kEnded
               : kNotYet;
  }
  /// Of a message in slices: whether this group and others have unpacked all.
  TASUKI_DEVICE bool is_unpacked(Word place) const {
    fence();  // the host has stored the header before the answer
    return load_acquire_gpu(&m.by_host.sliced[place].moved) == slices_of(all_bytes(m, place), m.by_host.room);
  }
  TASUKI_DEVICE void complain(Reason why) const { fail(m.team, call, why, request.peer, request.tag); }
};

/// By the group, before it asks: a place for the answer, for which it waits as for a message.
template <class Group>
TASUKI_DEVICE bool begin_by_host(const Messages& m, const Group& group, Call call, int peer, Word bytes, int tag,
                                 Word& place) {
  if (tag > m.by_host.largest_tag)
    return fail(m.team, call, Reason::host_tag, peer, tag, static_cast<Word>(m.by_host.largest_tag));
  if (is_sliced(m, bytes) && slice_bytes(m.by_host.room) == 0)
    return fail(m.team, call, Reason::host_room, peer, tag, m.by_host.room, bytes);
  group.sync();
  if (drive(m, group, LookForAnswersPlace{m, peer, tag, place}, false) != kEnded) return false;
  place = group.broadcast(place);
  return true;
}

/// By the group: asks for the message, and makes the request.
template <class Group>
TASUKI_DEVICE bool ask_for(const Messages& m, const Group& group, Word what, int peer, Word bytes, int tag, Word place,
                           Request& request) {
  bool good = true;
  Word number = 0;
  if (group.thread() == 0)
    good = ask(m.team, m.by_host.proxy, HostRequest{what, place, ends_of(peer, tag), bytes}, number, peer, tag);
  if (!group.all(good)) return false;
  request.kind = what == kIsend ? kHostSend : kHostReceive;
  request.peer = peer;
  request.tag = tag;
  request.bytes = bytes;
  request.number = group.broadcast(number) << m.by_host.proxy.log_places | place;
  return true;
}

template <class Group>
TASUKI_DEVICE bool send_by_host(const Messages& m, const Group& group, int to, const View& from, int tag,
                                Request& request) {
  request = {};
  if (!check_message(m, Call::isend, to, tag, 0)) return false;
  Word place = 0;
  if (!begin_by_host(m, group, Call::isend, to, from.bytes, tag, place)) return false;
  const bool sliced = is_sliced(m, from.bytes);
  gather(group, staging_of(m, place), from, sliced ? kSliceSlots * slice_bytes(m.by_host.room) : from.bytes);
  group.sync();
  if (group.thread() == 0 && sliced) open_sliced(m, place, kHostSend, from);
  if (group.thread() == 0) fence();  // the host reads what has been copied
  return ask_for(m, group, kIsend, to, from.bytes, tag, place, request);
}

template <class Group>
TASUKI_DEVICE bool receive_by_host(const Messages& m, const Group& group, int from, const View& to, int tag,
                                   Request& request) {
  request = {};
  const bool any = from == kAnyRank && m.by_host.any_source != 0;
  if (!check_message(m, Call::irecv, any ? m.team.rank : from, tag, kAnyTag)) return false;
  Word place = 0;
  if (!begin_by_host(m, group, Call::irecv, from, to.bytes, tag, place)) return false;
  if (group.thread() == 0 && is_sliced(m, to.bytes)) {
    open_sliced(m, place, kHostReceive, to);
    fence();
  }
  if (!ask_for(m, group, kIrecv, from, to.bytes, tag, place, request)) return false;
  request.to = to;
  return true;
}

/// `wait`, or with `once` `test`.
template <class Group>
TASUKI_DEVICE bool finish_by_host(const Messages& m, const Group& group, Request& request, bool once, bool& done) {
  const Proxy& proxy = m.by_host.proxy;
  const bool receives = request.kind == kHostReceive;
  const Call call = receives ? Call::wait_host_receive : Call::wait_host_send;
  const Word place = request.number & ((Word{1} << proxy.log_places) - 1);
  Word answer = 0;
  group.sync();
  const Word next = drive(m, group, LookForAnswer{m, call, request, answer}, once);
  if (next == kGaveUp) return false;
  done = next == kEnded;
  if (!done) return true;
  if (receives && group.thread() == 0) fence();  // what MPI has stored may be read
  answer = group.broadcast(answer);
  const Word bytes = bytes_in(answer);
  const int tag = static_cast<int>(answer & 0x7fffffff);
  if (request.peer == kAnyRank) request.peer = source_of(m, place);
  if (answer >> 62 == kTooLong)
    return fail(m.team, Call::wait_host_receive, Reason::truncated, request.peer, tag, request.bytes, bytes);
  const bool sliced = is_sliced(m, request.bytes);
  if (receives) {
    const bool came_in_slices = is_sliced(m, bytes);
    if (!came_in_slices) scatter(group, request.to, staging_of(m, place), bytes);
    request.tag = tag;
    request.bytes = came_in_slices ? all_bytes(m, place) : bytes;
  }
  group.sync();
  if (group.thread() == 0) {
    if (sliced) close_sliced(m, place);
    give_back_place(proxy, place);
  }
  request.kind = kNothing;
  return true;
}

/// By one thread, for `echo`: false if what is looked for does not come in time.
template <class Looking>
TASUKI_DEVICE bool look_until(const Team& team, Looking&& look) {
  Deadline deadline(team);
  while (!look()) {
    if (deadline.more()) continue;
    if (deadline.why() != Reason::none) fail(team, Call::ask, deadline.why(), team.rank, 0);
    return false;
  }
  return true;
}

}  // namespace detail

}  // namespace tasuki::device
