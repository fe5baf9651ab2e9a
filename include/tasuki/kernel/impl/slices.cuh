// Messages through the host of more bytes than a place of staging has (MessagesOptions::largest): they travel in
// slices. Part of tasuki/kernel.cuh; by_host.cuh begins and ends them.
//
// The staging of a place is a ring of kSliceSlots slots. The first message of MPI brings as many slices at once, and
// says how many bytes there are in all; each further slice is a message by itself, on a communicator of its own. One
// slice is copied while another travels. Two counts in host memory say how far both sides are:
//
//             the kernel counts             the host counts
//   sender    slices that it has packed     slices that MPI has sent, whose slots are free
//   receiver  slices that it has unpacked   slices that have arrived
//
// Which slices can be copied any group of the rank sees that waits, for whatever it waits, and copies them: the other
// rank may wait for them first. So each such message has an entry in the kernels' memory, which groups lock.
#pragma once

#include "tasuki/kernel/impl/matching.cuh"

namespace tasuki::device::detail {

constexpr int kHostSend = 16;  // kinds of Request
constexpr int kHostReceive = 17;

constexpr Word kSliceSlots = 4;
constexpr Word kHeader = 64;       // bytes behind a place's staging, for these words:
constexpr Word kHeaderBytes = 0;   // all bytes of a message in slices
constexpr Word kHeaderNumber = 1;  // its number
constexpr Word kHeaderSource = 2;  // what a receive from any rank has got is this one's; the host has found it out
constexpr Word kCountWords = 16;   // of a place: the kernel's count and the host's, each in a cache line of its own

/// A message in slices, in the kernels' memory, by the place of its answer.
struct alignas(64) Sliced {
  Word lock;    // 1 while a group has it
  Word kind;    // of the request; 0: none
  Word moved;   // slices that have been packed, or unpacked
  Word slices;  // in all; of a receive the host's count says how many there can be
  View view;
};

TASUKI_DEVICE Byte* staging_of(const Messages& m, Word place) {
  return m.by_host.staging + place * (m.by_host.room + kHeader);
}
TASUKI_DEVICE Word slice_bytes(Word room) {
  return room / kSliceSlots / 16 * 16;
}
TASUKI_DEVICE Word slices_of(Word bytes, Word room) {
  return (bytes + slice_bytes(room) - 1) / slice_bytes(room);
}
TASUKI_DEVICE bool is_sliced(const Messages& m, Word bytes) {
  return bytes > m.by_host.room;
}
TASUKI_DEVICE Word header_of(const Messages& m, Word place, Word which) {
  return load_relaxed(reinterpret_cast<const Word*>(staging_of(m, place) + m.by_host.room) + which);
}
/// Of a receive, once slices have arrived.
TASUKI_DEVICE Word all_bytes(const Messages& m, Word place) {
  return header_of(m, place, kHeaderBytes);
}
/// Of a receive from any rank, once the host has answered, or slices have arrived.
TASUKI_DEVICE int source_of(const Messages& m, Word place) {
  return static_cast<int>(header_of(m, place, kHeaderSource));
}
TASUKI_DEVICE Word* kernels_count(const Messages& m, Word place) {
  return m.by_host.counts + place * kCountWords;
}
TASUKI_DEVICE const Word* hosts_count(const Messages& m, Word place) {
  return m.by_host.counts + place * kCountWords + kCountWords / 2;
}

/// By one thread, before it asks the host: others may copy slices of it from here on.
TASUKI_DEVICE void open_sliced(const Messages& m, Word place, Word kind, const View& view) {
  Sliced& sliced = m.by_host.sliced[place];
  const Word moved = kind == kHostSend ? kSliceSlots : 0;
  sliced.view = view;
  store_relaxed(&sliced.moved, moved);
  store_relaxed(&sliced.slices, kind == kHostSend ? slices_of(view.bytes, m.by_host.room) : ~Word{0});
  store_relaxed(kernels_count(m, place), moved);
  store_relaxed(const_cast<Word*>(hosts_count(m, place)), 0);
  store_release_gpu(&sliced.kind, kind);
  change_release_gpu(m.by_host.sliced_open, 1);
}
/// By one thread, when all slices are copied. Nobody has the lock for longer than a look.
TASUKI_DEVICE void close_sliced(const Messages& m, Word place) {
  Sliced& sliced = m.by_host.sliced[place];
  while (exchange_gpu(&sliced.lock, 1) != 0) {
  }
  store_relaxed(&sliced.kind, 0);
  store_release_gpu(&sliced.lock, 0);
  change_release_gpu(m.by_host.sliced_open, ~Word{0});
}

/// Whether a slice can be copied.
TASUKI_DEVICE bool has_slice(const Messages& m, Word place, Word kind) {
  const Sliced& sliced = m.by_host.sliced[place];
  const Word moved = load_relaxed_gpu(&sliced.moved);
  const Word host = load_acquire(hosts_count(m, place));
  if (kind == kHostReceive) return host > moved;
  return host > 0 && moved < host + kSliceSlots && moved < load_relaxed_gpu(&sliced.slices);
}

/// By one thread: finds a message of which a slice can be copied, and locks it.
TASUKI_RARE bool claim_slice(const Messages& m, Word& place) {
  const Word places = Word{1} << m.by_host.proxy.log_places;
  for (place = 0; place < places; ++place) {
    Sliced& sliced = m.by_host.sliced[place];
    const Word kind = load_relaxed_gpu(&sliced.kind);
    if (kind == 0 || !has_slice(m, place, kind) || exchange_gpu(&sliced.lock, 1) != 0) continue;
    const Word now = load_acquire_gpu(&sliced.kind);  // it may be another message's by now
    if (now != 0 && has_slice(m, place, now)) return true;
    store_release_gpu(&sliced.lock, 0);
  }
  return false;
}
TASUKI_DEVICE bool may_claim_slice(const Messages& m) {
  return m.by_host.proxy.slots != nullptr && load_relaxed_gpu(m.by_host.sliced_open) != 0;
}

/// By the group, as `gather` and `scatter`: bytes `begin` and on of a message.
template <class Group>
TASUKI_DEVICE void gather_part(const Group& group, Byte* to, const View& from, Word begin, Word bytes) {
  if (from.blocks == nullptr) return copy(group, to, from.at + begin, bytes);
  for (Word i = 8 * static_cast<Word>(group.thread()); i < bytes; i += 8 * static_cast<Word>(group.threads())) {
    const Word now = bytes - i < 8 ? bytes - i : 8;
    store_bytes(to + i, load_strided(from, begin + i, now), now);
  }
}
template <class Group>
TASUKI_DEVICE void scatter_part(const Group& group, const View& to, Word begin, const Byte* from, Word bytes) {
  if (to.blocks == nullptr) return pull(group, to.at + begin, from, bytes);
  for (Word i = 8 * static_cast<Word>(group.thread()); i < bytes; i += 8 * static_cast<Word>(group.threads())) {
    const Word now = bytes - i < 8 ? bytes - i : 8;
    store_strided(to, begin + i, load_bytes(from + i, now), now);
  }
}

/// By the group, after its first thread has claimed it and a `broadcast` of the place: copies a slice.
template <class Group>
TASUKI_RARE void move_slice(const Messages& m, const Group group, Word place) {
  Sliced& sliced = m.by_host.sliced[place];
  const bool sends = load_relaxed_gpu(&sliced.kind) == kHostSend;
  const Word moved = load_relaxed_gpu(&sliced.moved);
  const View view = sliced.view;
  const Word all = sends ? view.bytes : all_bytes(m, place);
  const Word most = slice_bytes(m.by_host.room);
  const Word begin = moved * most;
  const Word bytes = all - begin < most ? all - begin : most;
  Byte* const slot = staging_of(m, place) + moved % kSliceSlots * most;
  if (sends) {
    gather_part(group, slot, view, begin, bytes);
  } else {
    scatter_part(group, view, begin, slot, bytes);
  }
  group.sync();
  if (group.thread() == 0) {
    fence();  // the host reads what has been packed
    store_release(kernels_count(m, place), moved + 1);
    store_release_gpu(&sliced.moved, moved + 1);
    store_release_gpu(&sliced.lock, 0);
  }
  group.sync();
}

}  // namespace tasuki::device::detail
