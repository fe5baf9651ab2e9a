// The state of a channel that several groups of a rank share, and its lock. Part of tasuki/kernel.cuh.
//
// As long as messages come in the order in which their receives were posted, a call needs only two counts: how many
// receives have ended, and how many are open. Both lie in one word together with the lock's bit. One atomic operation
// takes the lock and returns the counts; another one, whose result nobody awaits, changes them and unlocks. Such a call
// has no fence, and is right nevertheless:
//   * Message n belongs to receive n. A group gets it if it has found the message's first line in its place and then,
//     under the lock, that its receive is the oldest. Each line carries the message's number (words.cuh), so it is
//     recognised by itself.
//   * A receive is opened by lines of its own, which have its number. Who has to know another group's receive waits for
//     these lines. They were stored before the count that includes the receive, and so are on their way.
//   * The lines of receive n are stored again for receive n + `receives`, which is opened only when the counts say that
//     n has ended. Those who have read them for another group did so under the lock, before they changed the counts;
//     a GPU begins no such change before the loads and the branches that it hangs on have ended (words.cuh).
//
// If a message is not for the oldest receive, or the oldest's has not been taken though a later one's has, the channel
// is tangled, until all receives that have ended are older than all that are open and no message is left over. Then the
// book-keeping of channel.cuh holds. It is written out by whoever finds the tangle, and every lock acquires what the
// one before has released. A quick call between two of these does not break that: all changes of the word are atomic
// operations that read it, and a release is acquired through any number of them.
//
// Every ended receive has got a message of its own. So the count of messages that were looked at is the ended ones
// before the oldest, plus those behind it, plus the messages left over: a channel is tangled if and only if that count,
// Box::seen, is not Box::oldest.
#pragma once

#include "tasuki/kernel/impl/channel.cuh"

namespace tasuki::device::detail {

constexpr Word kLocked = 1;
constexpr Word kTangled = 2;
constexpr int kOpenAt = 2;  // receives from the oldest on, in 17 bits: 2^16 at most
constexpr int kOldestAt = 19;
constexpr Word kOneOpen = Word{1} << kOpenAt;
constexpr Word kOneEnded = Word{1} << kOldestAt;
TASUKI_DEVICE Word open_of(Word counts) {
  return (counts & (kOneEnded - 1)) >> kOpenAt;
}
TASUKI_DEVICE Word oldest_of(Word counts) {
  return counts >> kOldestAt;
}
/// The channel is not tangled, and receive `number` is the oldest that is open. It may be locked.
TASUKI_DEVICE bool is_oldest(Word counts, Word number) {
  return (counts & kTangled) == 0 && oldest_of(counts) == number && open_of(counts) > 0;
}

/// Calls `f`, which gets the counts and returns what they are to be, under the lock. Inside the loop: threads of one
/// warp may be after the same lock.
template <class F>
TASUKI_DEVICE void change_counts(Box& box, F&& f) {
  for (bool done = false; !done;) {
    const Word before = mark_gpu(&box.counts, kLocked);
    if ((before & kLocked) == 0) {
      change_gpu(&box.counts, f(before) - before - kLocked);
      done = true;
    } else {
#if !defined(__CUDACC__)
      std::this_thread::yield();
#endif
    }
  }
}

/// By one thread that has seen message `number` come: it is the caller's to take, and the receive of that number ends.
/// False if the receive is not the oldest or the channel is tangled.
TASUKI_DEVICE bool claim_oldest(Box& box, Word number) {
  bool claimed = false;
  change_counts(box, [&](Word counts) {
    claimed = is_oldest(counts, number);
    return claimed ? counts + kOneEnded - kOneOpen : counts;
  });
  return claimed;
}

/// Under the lock, before the counts include receive `number`.
TASUKI_DEVICE void publish_opened(OpenReceive& receive, Word number, const View& to, int tag) {
  const Word key = static_cast<Word>(static_cast<unsigned>(tag)) << 32 | static_cast<unsigned>(number + 1);
  store_line(receive.opened + 0, Line{reinterpret_cast<Word>(to.at), key});
  store_line(receive.opened + 1, Line{to.bytes, key});
  store_line(receive.opened + 2, Line{reinterpret_cast<Word>(to.blocks), key});
}
TASUKI_DEVICE Line await_opened(const Line* at, Word number) {
  Line line = load_line(at);
  while (static_cast<unsigned>(line.number) != static_cast<unsigned>(number + 1)) line = load_line(at);
  return line;
}
/// Under the lock: a receive that another thread has opened by lines, into the book-keeping.
TASUKI_DEVICE void write_out(OpenReceive& receive, Word number) {
  const Line at = await_opened(receive.opened + 0, number);
  const Line bytes = await_opened(receive.opened + 1, number);
  const Line blocks = await_opened(receive.opened + 2, number);
  receive.to = {reinterpret_cast<Byte*>(at.data), bytes.data, reinterpret_cast<const ShapeBlock*>(blocks.data)};
  receive.tag = static_cast<int>(static_cast<unsigned>(at.number >> 32));
  store_relaxed(&receive.state, kOpen);
}

/// Under the lock: the book-keeping. If the channel has not been tangled, the counts have it, but for the receives that
/// were opened by lines; those before the last `posted` were not.
TASUKI_RARE Books write_out_all(const Channel channel, Word counts) {
  const Word oldest = oldest_of(counts);
  const Word posted = oldest + open_of(counts);
  const Word known = load_relaxed(&channel.box.posted);
  for (Word r = known > oldest ? known : oldest; r < posted; ++r) write_out(channel.receive(r), r);
  return {posted, oldest, oldest, 0, oldest};
}
TASUKI_DEVICE Books open_books(const Channel& channel, Word counts) {
  if ((counts & kTangled) == 0) return write_out_all(channel, counts);
  const Word oldest = oldest_of(counts);
  const Box& box = channel.box;
  return {oldest + open_of(counts), oldest, load_relaxed(&box.seen), load_relaxed(&box.unmatched),
          load_relaxed(&box.first)};
}
/// Under the lock: what the counts are to be.
TASUKI_DEVICE Word close_books(const Channel& channel, const Books& books) {
  Box& box = channel.box;
  store_relaxed(&box.posted, books.posted);
  store_relaxed(&box.seen, books.seen);
  store_relaxed(&box.unmatched, books.unmatched);
  store_relaxed(&box.first, books.first);
  return books.oldest << kOldestAt | (books.posted - books.oldest) << kOpenAt |
         (books.seen == books.oldest ? 0 : kTangled);
}

/// Calls `f` with the books, while no other thread of this rank is in the channel's book-keeping, which holds
/// meanwhile.
template <class F>
TASUKI_DEVICE void locked(const Channel& channel, F&& f) {
  Box& box = channel.box;
  if (channel.m.concurrent == 0) {
    Books books{kept(box.posted), kept(box.oldest), kept(box.seen), kept(box.unmatched), kept(box.first)};
    f(books);
    keep(box.oldest, books.oldest);
    keep(box.seen, books.seen);
    keep(box.unmatched, books.unmatched);
    keep(box.first, books.first);
    return;
  }
  for (bool done = false; !done;) {
    const Word before = mark_acquire_gpu(&box.counts, kLocked);
    if ((before & kLocked) == 0) {
      Books books = open_books(channel, before);
      f(books);
      change_release_gpu(&box.counts, close_books(channel, books) - before - kLocked);
      done = true;
    } else {
#if !defined(__CUDACC__)
      std::this_thread::yield();
#endif
    }
  }
}

}  // namespace tasuki::device::detail
