// isend: how a group begins to send a message. Part of tasuki/kernel.cuh; messages.cuh has the calls.
//
// Where one group of a rank makes calls, each has a quick way, which is in the user's kernel as a whole, and one for
// all else, which is a function. What a call needs is loaded at its begin, all at once, for a GPU takes long for each
// load.
#pragma once

#include "tasuki/kernel/deliver.cuh"

namespace tasuki::device::detail {

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
  Line* const there = box.there;
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
  if (room && few) store_short(m, group, there, own, from.bytes, tag, number);
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

}  // namespace tasuki::device::detail
