// The ring to the host: how kernels ask the process's progress thread for something, and are answered. Part of
// tasuki/kernel.cuh. The thread's side is src/kernels/ring.hpp.
//
// A request lies in a slot of a ring in host memory (pinned, for a GPU). One thread of the kernel stores it, 16 bytes
// at a time, each with the request's number. So slots need not be cleared, and a request needs no fence. The thread
// claims a slot only after it has seen a free one: while it waits for a full ring it holds nothing, and can give up at
// the deadline.
//
// The host's thread counts the requests that it has copied out of the ring, which frees their slots at once. When a
// request is done, however long that takes, it stores the answer in a place that belongs to the request until the
// kernel has seen the answer. Places are given back in any order, so that a slow request delays no other.
#pragma once

#include "tasuki/kernel/impl/team_memory.cuh"

namespace tasuki::device {

/// A rank's ring to its host: a plain value, part of those that are passed to kernels.
struct Proxy {
  Line* slots;           // in host memory
  const Word* consumed;  // in host memory: requests that the thread has taken out of the ring
  const Line* answers;   // in host memory
  Word* claimed;         // where kernels run, as what follows: requests so far
  Word* seen;            // `consumed` as a kernel has last read it
  Word* taken;           // by place of an answer: 1 while a request has it
  Word log_slots;
  Word log_places;
};

namespace detail {

constexpr int kSlotLines = 4;   // 64 bytes, of which a request has half
constexpr int kPlaceLines = 4;  // an answer is one line; the rest keeps it from sharing the processor's cache line

/// What a kernel asks for.
struct HostRequest {
  Word what;
  Word place;  // of the answer
  Word a;
  Word b;
};

#if defined(__CUDACC__)
// A place goes from one thread to another. Its last owner has the answer, and what came with it: those loads have
// ended, so that no fence need wait for the stores that are under way.
TASUKI_DEVICE Word exchange_place(Word* p) {
  Word before;
  asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], 1;" : "=l"(before) : "l"(p) : "memory");
  return before;
}
TASUKI_DEVICE void free_place(Word* p) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], 0;" ::"l"(p) : "memory");
}
#else
inline Word exchange_place(Word* p) {
  return exchange_gpu(p, 1);
}
inline void free_place(Word* p) {
  store_release_gpu(p, 0);
}
#endif

/// By one thread: a place for an answer, which is the caller's until `give_back`. False if all are taken.
TASUKI_DEVICE bool take_place(const Proxy& proxy, Word& place) {
  const Word last = (Word{1} << proxy.log_places) - 1;
  const auto first = static_cast<Word>(this_block().block());  // so that blocks do not contend for one place
  place = first & last;
  if (exchange_place(proxy.taken + place) == 0) return true;
  for (Word n = 1; n <= last; ++n) {
    place = (first + n) & last;
    if (load_relaxed(proxy.taken + place) == 0 && exchange_place(proxy.taken + place) == 0) return true;
  }
  return false;
}
TASUKI_DEVICE void give_back_place(const Proxy& proxy, Word place) {
  free_place(proxy.taken + place);
}

/// By one thread: a slot of the ring. False if all are full, or another thread was quicker: try again.
TASUKI_DEVICE bool claim_slot(const Proxy& proxy, Word& number) {
  const Word slots = Word{1} << proxy.log_slots;
  number = load_relaxed(proxy.claimed);
  if (number - load_relaxed(proxy.seen) >= slots) {
    const Word consumed = load_acquire(proxy.consumed);  // takes a microsecond from a GPU
    store_relaxed(proxy.seen, consumed);
    if (number - consumed >= slots) return false;
  }
  return replace_gpu(proxy.claimed, number, number + 1);
}

/// By the thread that has claimed slot `number`.
TASUKI_DEVICE void fill_slot(const Proxy& proxy, Word number, const HostRequest& request) {
  Line* const slot = proxy.slots + (number & ((Word{1} << proxy.log_slots) - 1)) * kSlotLines;
  store_line(slot + 3, Line{request.b, number + 1});
  store_line(slot + 2, Line{request.a, number + 1});
  store_line(slot + 1, Line{request.place, number + 1});
  store_line(slot, Line{request.what, number + 1});
}

/// By one thread: whether request `number` has been answered, and what with. What the thread of the host had stored
/// before may be read after a `fence`.
TASUKI_DEVICE bool is_answered(const Proxy& proxy, Word place, Word number, Word& answer) {
  const Line* const at = proxy.answers + place * kPlaceLines;
  const Line line = load_line(at);
  if (line.number != number + 1) return false;
  answer = line.data;
  return true;
}

/// By one thread: asks, once there is a slot. False if there is none in time.
TASUKI_DEVICE bool ask(const Team& team, const Proxy& proxy, const HostRequest& request, Word& number, int peer,
                       int tag) {
  Deadline deadline(team);
  while (!claim_slot(proxy, number)) {
    if (deadline.more()) continue;
    if (deadline.why() != Reason::none)
      fail(team, Call::ask, deadline.why(), peer, tag, Word{1} << proxy.log_slots, number);
    return false;
  }
  fill_slot(proxy, number, request);
  return true;
}

}  // namespace detail
}  // namespace tasuki::device
