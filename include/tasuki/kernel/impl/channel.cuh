// A rank's channels with the others, and how messages are matched. Part of tasuki/kernel.cuh.
//
// A sender numbers its messages to each rank. Message n uses place n % places of a ring in the receiver's memory.
//   * A small message lies in its place as a whole, in LL lines (words.cuh). The first line holds the tag and the size
//     beside the first bytes.
//   * Of a large message the lines say where its bytes are in the sender's memory. The receiver copies them from there
//     into the posted receive, so the sender need not do anything more.
//
// The receiver looks at messages in their order, and gives each to the earliest open receive that takes its tag. A
// message that no receive takes stays in its place until one is posted that does. When a message has been received, the
// receiver acknowledges it at the sender, in a word for each place. The sender looks at these words before it fills a
// half of the ring again.
//
// One thread does the book-keeping. Where several groups make calls at the same time it holds a lock (counts.cuh).
// Where one group does, it changes the books after the last `sync` of a call, so that no thread of the group reads them
// while they change: the next call begins with a `sync`.
#pragma once

#include "tasuki/kernel/impl/proxy.cuh"
#include "tasuki/kernel/impl/views.cuh"

namespace tasuki::device {

constexpr int kAnyTag = -1;   ///< of a receive: it takes messages of any tag
constexpr int kAnyRank = -2;  ///< of a receive: it takes messages of any other rank (MessagesOptions::any_source)

namespace detail {
struct Box;
struct Sliced;
}  // namespace detail

/// How messages go to ranks whose memory a kernel does not reach (by_host.cuh).
struct ByHost {
  Proxy proxy;
  Byte* staging;           // in host memory: for each place of an answer `room` bytes and a header
  Word* counts;            // in host memory, by place: slices, as slices.cuh says
  detail::Sliced* sliced;  // where kernels run, by place: messages in slices
  Word* sliced_open;       // where kernels run: how many there are
  Word room;
  int largest_tag;  // that MPI takes
  int any_source;   // receives may be from kAnyRank: all messages to others go through the host
};

/// A rank's part of `tasuki::Messages`: a small plain value, passed to a kernel as it is (with TASUKI_PARAMETER).
/// `team` is for the primitives; the rest is Tasuki's own.
struct Messages {
  Team team;
  Word eager;       // bytes of a small message, at most
  Word largest;     // of one from outside the window
  Word log_places;  // places of a ring: a power of two
  Word log_lines;   // of a place: a power of two
  Word receives;    // that may be open for messages of one rank: a power of two
  int concurrent;   // several groups of a rank may make calls at the same time
  detail::Box* boxes;
  Byte* staging;  // for each rank and place `largest` bytes
  ByHost by_host;
};

/// A message that is on its way, or a receive that is open. Every thread of the group keeps it.
struct Request {
  int kind = 0;     // nothing (any more), a small message, a large one, a receive
  int peer = 0;     ///< the other rank; after the wait for a receive from kAnyRank: the message's
  int tag = 0;      ///< after the wait for a receive: the message's
  Word bytes = 0;   ///< after the wait for a receive: the message's
  Word number = 0;  // of the message, or of the receive
  detail::View to;  // of a receive
};

namespace detail {

constexpr int kNothing = 0;
constexpr int kSmall = 1;
constexpr int kLarge = 2;
constexpr int kReceive = 3;

constexpr Word kLargeSize = 0xffff;  // in the place of a small message's bytes

// States of a ring's place that has been looked at.
constexpr unsigned kUnmatched = 1;
constexpr unsigned kMatched = 2;

// States of a receive. kHasMessage + n: it has got message n, which nobody has begun to take.
constexpr Word kClosed = 0;
constexpr Word kOpen = 1;
constexpr Word kTaking = 2;
constexpr Word kTaken = 3;
constexpr Word kHasMessage = 4;

struct alignas(64) OpenReceive {
  Word state;
  int tag;   // that it takes
  int came;  // the message's tag, when it is taken
  View to;
  Word message;  // that it has got
  Word bytes;    // of the message, when it is taken
  // As the receive was opened among several groups: `to`, and as number its own, plus 1, and its tag.
  Line opened[3];
};

/// What a rank knows of its messages from and to another one, in its own memory: counts, and addresses that do not
/// change. A call finds all that it needs in one or two cache lines.
struct alignas(128) Box {
  Word oldest;            // all receives before it are closed
  Word seen;              // messages that were given to receives, or found to have none yet
  Word posted;            // receives
  Word unmatched;         // of these, those that have none
  Word first;             // the earliest unmatched message, if there is one
  Word counts;            // where several groups make calls: see counts.cuh
  const Line* lines;      // where the other's messages arrive
  OpenReceive* receives;  // by the receive's number
  unsigned* states;       // by place
  Word* acks;             // at the other, by place: one more than the number of the last message that was received

  // Address of the place of the next message. 0 if its place may not be free yet, if several groups make calls, or if
  // messages to the other go through the host.
  alignas(128) Word next;
  Word sent;          // messages
  Word clear;         // messages before this one find their places free
  Line* there;        // where they arrive
  const Word* taken;  // by place: the other's acknowledgements
};

/// The counts of a box.
struct Books {
  Word posted;
  Word oldest;
  Word seen;
  Word unmatched;
  Word first;
};

TASUKI_DEVICE unsigned place_of(const Messages& m, Word number) {
  return static_cast<unsigned>(number) & ((1U << m.log_places) - 1);
}
TASUKI_DEVICE OpenReceive& receive_of(const Messages& m, OpenReceive* receives, Word number) {
  return receives[static_cast<unsigned>(number) & (static_cast<unsigned>(m.receives) - 1)];
}

/// One rank's messages from and to another one. Addresses that are often needed are loaded once, because an acquire
/// empties the L1 cache.
struct Channel {
  const Messages& m;
  Box& box;
  const Line* const first_lines;
  OpenReceive* const receives;
  unsigned* const states;

  TASUKI_DEVICE Channel(const Messages& messages, int with)
      : m(messages), box(messages.boxes[with]), first_lines(box.lines), receives(box.receives), states(box.states) {}
  TASUKI_DEVICE unsigned place(Word number) const { return place_of(m, number); }
  TASUKI_DEVICE OpenReceive& receive(Word number) const { return receive_of(m, receives, number); }
  TASUKI_DEVICE const Line* lines(Word number) const { return first_lines + (place(number) << m.log_lines); }
  TASUKI_DEVICE unsigned& state(Word number) const { return states[place(number)]; }
  TASUKI_DEVICE Line* there(Word number) const { return box.there + (place(number) << m.log_lines); }
  /// One more than the number of the last message in this one's place that the other has taken.
  TASUKI_DEVICE Word acked(Word number) const { return load_leave(box.taken + place(number)); }
  TASUKI_DEVICE bool is_taken(Word number) const { return acked(number) > number; }
  /// By one thread, when what is in the message's place has been read: the sender may store into it.
  TASUKI_DEVICE void acknowledge(Word number) const { store_leave(box.acks + place(number), number + 1); }
};

/// Where a message from outside the window lies until the other has taken it.
TASUKI_DEVICE Byte* staging_of(const Messages& m, int with, Word number) {
  return m.staging + ((static_cast<Word>(with) << m.log_places) + place_of(m, number)) * m.largest;
}

/// A word of the book-keeping, where one group at a time makes calls: it may come from the L1 cache.
TASUKI_DEVICE Word kept(const Word& word) {
#if defined(__CUDACC__)
  return load_near(&word);
#else
  return load_relaxed(&word);
#endif
}
TASUKI_DEVICE void keep(Word& word, Word value) {
#if defined(__CUDACC__)
  word = value;
#else
  store_relaxed(&word, value);
#endif
}
/// Two words side by side.
TASUKI_DEVICE void kept_pair(const Word& one, const Word& next, Word& first, Word& second) {
#if defined(__CUDACC__)
  load_near_pair(&one, first, second);
#else
  first = load_relaxed(&one);
  second = load_relaxed(&next);
#endif
}
/// A word of the book-keeping, whether one group makes calls or several.
TASUKI_DEVICE Word recall(const Messages& m, const Word& word) {
  return m.concurrent == 0 ? kept(word) : load_relaxed(&word);
}
TASUKI_DEVICE void note(const Messages& m, Word& word, Word value) {
  m.concurrent == 0 ? keep(word, value) : store_relaxed(&word, value);
}

/// The number of a place's first line: which lap, how many bytes, which tag.
TASUKI_DEVICE Word head_of(const Messages& m, Word number, Word size, int tag) {
  return ((number >> m.log_places) + 1) << 48 | size << 32 | static_cast<unsigned>(tag);
}
TASUKI_DEVICE bool is_message(const Messages& m, Word head, Word number) {
  return head >> 48 == (((number >> m.log_places) + 1) & 0xffff);
}
TASUKI_DEVICE int tag_of(Word head) {
  return static_cast<int>(static_cast<unsigned>(head));
}
TASUKI_DEVICE Word size_of(Word head) {
  return head >> 32 & 0xffff;
}
TASUKI_DEVICE bool takes(int wanted, int tag) {
  return wanted == kAnyTag || wanted == tag;
}

}  // namespace detail

}  // namespace tasuki::device
