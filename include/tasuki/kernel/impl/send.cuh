// isend: how a group begins to send any message; quick.cuh has what is quicker. Part of tasuki/kernel.cuh; messages.cuh
// has the calls.
#pragma once

#include "tasuki/kernel/impl/deliver.cuh"

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
/// By the group, of which each thread has one word or none: a short message's lines.
template <class Group>
TASUKI_DEVICE void store_short(const Messages& m, const Group& group, Line* lines, Word own, Word bytes, int tag,
                               Word number) {
  const int thread = group.thread();
  if (thread != 0 && 8 * static_cast<Word>(thread) >= bytes) return;
  store_line(lines + thread, Line{own, thread == 0 ? head_of(m, number, bytes, tag) : number + 1});
}

/// By the group: the lines of any small message; of one that lies together.
template <class Group>
TASUKI_RARE void store_any(const Messages& m, const Group group, Line* lines, View from, int tag, Word number) {
  store_lines(group, lines, from, head_of(m, number, from.bytes, tag), number);
}
template <class Group>
TASUKI_RARE void store_together(const Messages& m, const Group group, Line* lines, Byte* from, Word bytes, int tag,
                                Word number) {
  store_lines(group, lines, View{from, bytes, nullptr}, head_of(m, number, bytes, tag), number);
}

// What became of a message that is sent, in one word: the kind of its request and its number, or that it has failed.
constexpr Word kNotSent = 0;
TASUKI_DEVICE Word sent(int kind, Word number) {
  return number << 8 | static_cast<Word>(kind);
}

TASUKI_DEVICE bool was_sent(Word became, int to, int tag, Word bytes, Request& request) {
  return became != kNotSent && make(request, static_cast<int>(became & 0xff), to, tag, bytes, became >> 8);
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

/// By one thread, where one group makes calls: `number` messages have been sent. Looks for room before the next needs
/// it.
TASUKI_DEVICE void keep_sent(const Messages& m, int to, Word number) {
  Box& box = m.boxes[to];
  bool room = number < kept(box.clear);
  if (!room) room = by_address(&finds_room)(Channel(m, to), number);
  Line* const place = box.there + (place_of(m, number) << m.log_lines);
  keep(box.sent, number);
  keep(box.next, room ? reinterpret_cast<Word>(place) : 0);
}

/// By a group that is the only one to make calls.
template <class Group>
TASUKI_DEVICE Word send_alone(const Messages& m, const Group& group, int to, const View& from, int tag) {
  Box& box = m.boxes[to];
  group.sync();
  const bool good = working(m.team);
  const Word number = kept(box.sent);
  const bool room = number < kept(box.clear);
  const Word became = group.all(good) ? send_rest(m, group, to, from, tag, number, room) : kNotSent;
  if (group.thread() == 0) keep_sent(m, to, number + 1);
  return became;
}

/// Among several groups.
template <class Group>
TASUKI_DEVICE Word send_shared(const Messages& m, const Group& group, int to, const View& from, int tag) {
  Box& box = m.boxes[to];
  const bool few = is_short(m, group, from);
  Line* const there = box.there;
  group.sync();
  const Word own = few ? own_word(group, from) : 0;
  Word number = 0;
  Word clear = 0;
  bool room = true;
  const auto share = [&] {  // what the first thread knows
    const Word both = group.broadcast(number << 1 | (room ? 1 : 0));
    number = both >> 1;
    room = (both & 1) != 0;
  };
  if (group.thread() == 0) {
    clear = load_leave(&box.clear);
    number = count_gpu(&box.sent, 1);
    room = number < clear;
  }
  const bool small = from.bytes <= m.eager;
  const bool large = !small && in_window(m.team, from);
  const bool several = from.bytes > 8 || !few;  // lines, by several threads
  if (several) share();
  Line* const lines = there + (place_of(m, number) << m.log_lines);
  if (room && few) {
    store_short(m, group, lines, own, from.bytes, tag, number);
  } else if (room && small && from.blocks == nullptr) {
    store_together(m, group, lines, from.at, from.bytes, tag, number);
  } else if (room && small) {
    by_address (&store_any<Group>)(m, group, lines, from, tag, number);
  } else if (room && large && group.thread() == 0) {
    store_large(m, lines, from.at, from.bytes, tag, number);
  }
  const bool good = working(m.team);
  if (group.thread() == 0 && number + 1 == clear) by_address (&finds_room)(Channel(m, to), number + 1);  // for the next
  if (group.all(good && room && (small || large))) return sent(large ? kLarge : kSmall, several ? number : 0);
  if (!several) share();
  return group.all(good) ? by_address(&send_rest<Group>)(m, group, to, from, tag, number, room) : kNotSent;
}

}  // namespace tasuki::device::detail
