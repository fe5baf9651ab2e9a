// The quick ways of isend, irecv and wait: one group of a rank makes calls, messages lie together and come
// in the order of their receives. Part of tasuki/kernel.cuh; messages.cuh has the calls.
//
// They are inlined into the user's kernel. Where a call cannot take the quick way, it calls one function for all other
// cases. A call loads all that it needs at its beginning, at once. At its end, while the message travels, it prepares
// what a later call needs and looks whether something has failed, which takes a load from the L2 cache.
//
// As long as Box::seen is Box::oldest, message n is receive n's, for each message that was looked at has gone to a
// receive before `oldest` (counts.cuh says why).
#pragma once

#include "tasuki/kernel/impl/receive.cuh"
#include "tasuki/kernel/impl/send.cuh"

namespace tasuki::device::detail {

/// Whether this thread has one whole word of a message, or none. Threads of a group may differ, as of 20 bytes the
/// third does: so what is done for others must not have a `sync`.
template <class Group>
TASUKI_DEVICE bool is_plain(const Group& group, const Byte* at, Word bytes) {
  const auto begin = 8 * static_cast<Word>(group.thread());
  return bytes <= 8 * static_cast<Word>(group.threads()) && reinterpret_cast<Word>(at) % 8 == 0 &&
         (begin + 8 <= bytes || begin >= bytes);
}

/// By the group: a copy of a message from outside the window, from where the other takes it.
template <class Group>
TASUKI_RARE const Byte* copy_for(const Messages& m, const Group group, int to, const Byte* from, Word bytes,
                                 Word number) {
  Byte* const staging = staging_of(m, to, number);
  copy(group, staging, from, bytes);
  group.sync();
  return staging;
}

/// `isend`. False if it has not been done.
template <class Group>
TASUKI_DEVICE bool send_quick(const Messages& m, const Group& group, int to, const View& from, int tag,
                              Request& request) {
  if (!is_rank(m.team, to) || tag < 0 || from.blocks != nullptr) return false;
  Box& box = m.boxes[to];
  const auto at = 8 * static_cast<Word>(group.thread());
  const bool large = from.bytes > m.eager;
  const bool plain = !large && is_plain(group, from.at, from.bytes);
  const bool copied = large && !in_window(m.team, from);
  if (copied && from.bytes > m.largest) return false;
  group.sync();
  const Word own = plain && at < from.bytes ? *reinterpret_cast<const Word*>(from.at + at) : 0;
  Word next;
  Word number;
  kept_pair(box.next, box.sent, next, number);
  if (next == 0) return false;
  auto* const lines = reinterpret_cast<Line*>(next);
  if (plain) {
    store_short(m, group, lines, own, from.bytes, tag, number);
  } else if (!large) {
    store_together(m, group, lines, from.at, from.bytes, tag, number);
  } else {
    const Byte* const where =
        copied ? by_address(&copy_for<Group>)(m, group, to, from.at, from.bytes, number) : from.at;
    if (at == 0) store_large(m, lines, where, from.bytes, tag, number);
  }
  const bool good = working(m.team);
  group.sync();  // all have read what they send, and the counts
  if (at == 0) keep_sent(m, to, number + 1);
  return group.all(good) && make(request, large && !copied ? kLarge : kSmall, to, tag, from.bytes, number);
}

/// `irecv`. False if it has not been done.
template <class Group>
TASUKI_DEVICE bool post_quick(const Messages& m, const Group& group, int from, const View& to, int tag,
                              Request& request) {
  if (!is_rank(m.team, from) || tag < kAnyTag) return false;
  Box& box = m.boxes[from];
  group.sync();
  Word oldest;
  Word seen;
  kept_pair(box.oldest, box.seen, oldest, seen);
  const Word number = kept(box.posted);
  const bool good = working(m.team);
  if (box.receives == nullptr || oldest != seen || number - oldest >= m.receives) return false;
  group.sync();  // all have read the counts
  if (group.thread() == 0) {
    OpenReceive& receive = receive_of(m, box.receives, number);
    receive.to = to;
    receive.tag = tag;
    keep(receive.state, kOpen);
    keep(box.posted, number + 1);
  }
  request.to = to;
  return group.all(good) && make(request, kReceive, from, tag, to.bytes, number);
}

/// `wait`, or with `once` `test`, for a large message that was sent. False if it has not been taken for some time.
template <class Group>
TASUKI_DEVICE bool taken_quick(const Messages& m, const Group& group, const Request& request, bool once) {
  const Word* const ack = m.boxes[request.peer].taken + place_of(m, request.number);
  const bool alive = working(m.team);
  bool taken = false;
  for (int looks = once ? 1 : kTurns; looks > 0 && !taken; --looks) taken = load_leave(ack) > request.number;
  return group.all(taken && alive);
}

/// `wait`, or with `once` `test`, for a receive. All threads look at the ring, find the same there, and take their
/// words as they come. False if the message has not come for some time, or this is not the way: then the receive is
/// open as before, and some of its words may have been stored.
template <class Group>
TASUKI_DEVICE bool take_quick(const Messages& m, const Group& group, Request& request, bool once) {
  if (request.to.blocks != nullptr) return false;
  Box& box = m.boxes[request.peer];
  group.sync();
  Word oldest;
  Word seen;
  kept_pair(box.oldest, box.seen, oldest, seen);
  const bool alive = working(m.team);
  const Word number = request.number;  // of the receive and the message
  const unsigned place = place_of(m, number);
  Word* const acks = box.acks + place;
  const Line* const lines = box.lines + (place << m.log_lines);
  if (oldest != number || seen != number) return false;
  // What most messages are: as long as their receive, with its tag. Then nothing of it has to be worked out.
  const int thread = group.thread();
  const auto at = 8 * static_cast<Word>(thread);
  const bool plain = request.to.bytes <= m.eager && is_plain(group, request.to.at, request.to.bytes);
  const Word expected = head_of(m, number, request.to.bytes < kLargeSize ? request.to.bytes : kLargeSize, request.tag);
  Line own = load_line(lines);
  for (int looks = once ? 0 : kTurns; looks > 0 && (own.number ^ expected) >> 48 != 0; --looks) own = load_line(lines);
  int tag = request.tag;
  Word bytes = request.to.bytes;
  if (plain && own.number == expected) {
    bool came = true;
    if (thread != 0 && at < bytes) {
      own = load_line(lines + thread);
      came = await_line(m, lines + thread, number, own);
    }
    if (came && at < bytes) *reinterpret_cast<Word*>(request.to.at + at) = own.data;
    if (!came) bytes = kNotTaken;
  } else {
    tag = tag_of(own.number);
    const Word size = size_of(own.number);
    if (!is_message(m, own.number, number) || !takes(request.tag, tag)) {
      bytes = kNotTaken;
    } else if (size == kLargeSize) {
      bytes = size;
    } else {
      bytes = unpack_together(m, group, lines, number, request.to.at, bytes, size);
    }
  }
  if (!group.all(bytes != kNotTaken && alive)) return false;
  if (bytes == kLargeSize) {  // to all threads
    const Got got = by_address(&take<Group>)(m, group, request.peer, number, request.to);
    if (!got.good) return false;
    bytes = got.bytes;
  } else if (thread == 0) {
    store_leave(acks, number + 1);
  }
  if (thread == 0) {
    keep(box.seen, number + 1);
    keep(box.oldest, number + 1);
  }
  return ended(request, tag, bytes);
}

}  // namespace tasuki::device::detail
