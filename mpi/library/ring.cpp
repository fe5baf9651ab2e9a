// See ring.hpp.
#include "ring.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "filling.hpp"
#include "peers.hpp"

namespace tasuki::mpi {

namespace {

// In the two lowest bits of a posting's state; above them is how often it was posted.
enum State : std::uint32_t {
  kFree,
  kPosted,
  kTaken,
};
constexpr std::uint32_t kStates = 4;

constexpr std::size_t kProbes = 8;  // places in which a posting may be

std::size_t place_of(std::uint64_t key, std::int64_t number) {
  return ((key >> 40) + static_cast<std::uint64_t>(number)) % kPostings;
}

// How far a ring is used before it begins anew, though all of it is free: the sender's cache then keeps its lines from
// turn to turn, beside what is packed from, and neither side fetches them from further away. Two messages have room at
// least, as a line that the receiver has read just before takes a round trip to be written again.
std::int64_t turn_of_ring(std::int64_t message) {
  // Rings to several ranks push out each other's lines.
  const std::int64_t share = cache_bytes() / 4 / std::max(peers_reached(), 1);
  constexpr std::int64_t kLeast = 64 << 10;
  return std::max({share, kLeast, 2 * message});
}

// A piece of the ring; -1 if it is full. What was drained first is free first.
std::int64_t give(Peer& peer, std::int64_t bytes, std::uint32_t& entry) {
  while (!peer.given.empty() && peer.box->drained[peer.given.front().entry].load(std::memory_order_acquire) != 0)
    peer.given.pop_front();
  const std::int64_t size = (bytes + 63) / 64 * 64;
  if (peer.given.size() == kEntries || size > kRing) return -1;
  std::int64_t begin = peer.next;
  const std::int64_t first = peer.given.empty() ? kRing + 1 : peer.given.front().begin;
  if (peer.given.empty() || begin > first) {
    const bool own_lines = peer.box == &box_from(own_rank());
    if (begin + size > (own_lines ? 0 : turn_of_ring(size)) && size < first) begin = 0;
    if (begin + size > kRing) return -1;
  } else if (begin + size >= first) {
    return -1;
  }
  entry = peer.next_entry;
  peer.next_entry = (peer.next_entry + 1) % kEntries;
  peer.box->drained[entry].store(0, std::memory_order_relaxed);
  peer.given.push_back({entry, begin, begin + size});
  peer.next = begin + size;
  return begin;
}

}  // namespace

std::uint64_t key_of(const Comm& comm, int tag) {
  return (comm.number ^ static_cast<std::uint64_t>(static_cast<unsigned>(tag)) << 17) * 0x9e3779b97f4a7c15u;
}

PostingWait::PostingWait(const Counted& what)
    : what_(what), limit_ns_(what.ring_gain.load(std::memory_order_relaxed)), waits_(may_spin()) {
  if (const int skip = what.skip_.load(std::memory_order_relaxed); skip > 0) {
    what.skip_.store(skip - 1, std::memory_order_relaxed);
    waits_ = false;
  }
}

PostingWait::~PostingWait() {
  if (begun_ns_ == 0) return;
  constexpr int kMostSkipped = 255;
  const int skip = in_vain_ ? std::min(2 * what_.backoff_.load(std::memory_order_relaxed) + 1, kMostSkipped) : 0;
  what_.backoff_.store(skip, std::memory_order_relaxed);
  what_.skip_.store(skip, std::memory_order_relaxed);
}

bool PostingWait::over() {
  constexpr std::int64_t kMost = 20'000;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (begun_ns_ == 0) begun_ns_ = now;
  if (now - begun_ns_ < std::min(limit_ns_, kMost)) return false;
  in_vain_ = true;
  return true;
}

Passage PostingWait::take(const Comm& comm, int to, int tag, std::int64_t number, std::int64_t bytes) {
  if (number < 0 || static_cast<std::size_t>(to) >= comm.world.size()) return {};
  const int other = comm.world[static_cast<std::size_t>(to)];
  if (other < 0) return {};
  Peer* peer = reached(other);
  if (peer == nullptr) return {};
  const std::uint64_t key = key_of(comm, tag);
  for (;;) {
    for (std::size_t i = 0; i < kProbes; ++i) {
      Posting& posting = peer->box->postings[(place_of(key, number) + i) % kPostings];
      std::uint32_t seen = posting.state.load(std::memory_order_acquire);
      if (seen % kStates != kPosted || posting.key != key || posting.number != number) continue;
      if (posting.room < bytes) return {};  // MPI says that it is too long
      std::uint32_t entry = 0;
      const std::int64_t at = give(*peer, bytes, entry);
      if (at < 0) return {};
      // The receiver looks at these once its receive is completed, after MPI's empty message.
      posting.bytes = bytes;
      posting.at = static_cast<std::uint64_t>(at);
      posting.entry = entry;
      posting.filled.store(0, std::memory_order_relaxed);
      if (posting.state.compare_exchange_strong(seen, seen - kPosted + kTaken, std::memory_order_acq_rel))
        return {&posting, peer->ring + at, &peer->prices};
      peer->box->drained[entry].store(1, std::memory_order_relaxed);  // it was withdrawn
      return {};
    }
    // Nobody else is waited for: what this rank has not posted it does not post meanwhile.
    if (!waits_ || in_vain_ || other == own_rank() || over()) return {};
    relax();
  }
}

void fill(std::byte* to, FillPrices& prices, const Counted& what, const void* buffer,
          const std::function<void(std::int64_t)>& filled) {
  Filling filling(prices, what.bytes());
  std::int64_t done = 0;
  for (const Packer& segment : what.segments()) {
    filling.pack(segment, static_cast<const std::byte*>(buffer), to + done);
    done += segment.size();
    filled(done);
  }
}

void fill(const Passage& passage, const Counted& what, const void* buffer) {
  fill(passage.bytes, *passage.prices, what, buffer,
       [&](std::int64_t done) { passage.posting->filled.store(done, std::memory_order_release); });
}

Posting* post(Comm& comm, int from, int tag, std::int64_t number, std::int64_t bytes) {
  if (number < 0 || comm.wild || static_cast<std::size_t>(from) >= comm.world.size()) return nullptr;
  const int other = comm.world[static_cast<std::size_t>(from)];
  if (other < 0) return nullptr;
  Box& box = box_from(other);
  if (box.attached.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::uint64_t key = key_of(comm, tag);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Posting& posting = box.postings[(place_of(key, number) + i) % kPostings];
    const std::uint32_t seen = posting.state.load(std::memory_order_acquire);
    if (seen % kStates != kFree) continue;
    posting.key = key;
    posting.number = number;
    posting.room = bytes;
    posting.state.store(seen - kFree + kStates + kPosted, std::memory_order_release);
    return &posting;
  }
  return nullptr;
}

bool withdraw(Posting* posting) {
  std::uint32_t seen = posting->state.load(std::memory_order_acquire);
  while (seen % kStates == kPosted)
    if (posting->state.compare_exchange_weak(seen, seen - kPosted + kFree, std::memory_order_acq_rel)) return true;
  return seen % kStates == kFree;  // by `withdraw_all`
}

void withdraw_all() {
  for (int sender = 0; sender < ranks_of_job(); ++sender)
    if (looks(sender))
      for (Posting& posting : box_from(sender).postings) withdraw(&posting);
}

void drain(const std::byte* from, std::int64_t bytes, const Counted& what, void* buffer,
           const std::function<void(std::int64_t)>& wait_for) {
  auto* base = static_cast<std::byte*>(buffer);
  std::int64_t done = 0;
  for (const Packer& segment : what.segments()) {
    if (done + segment.size() > bytes) break;
    wait_for(done + segment.size());
    segment.unpack(from + done, base);
    done += segment.size();
  }
  if (done < bytes) {  // a message that is shorter than its receive
    wait_for(bytes);
    what.unpack_part(from + done, done, bytes - done, base);
  }
}

std::int64_t drain(Posting* posting, const Counted& what, void* buffer) {
  const int sender = sender_of(posting);
  const std::int64_t bytes = posting->bytes;
  drain(ring_from(sender) + posting->at, bytes, what, buffer, [&](std::int64_t enough) {
    for (RankWait wait(sender); posting->filled.load(std::memory_order_acquire) < enough;) wait.turn();
  });
  box_from(sender).drained[posting->entry].store(1, std::memory_order_release);
  posting->state.store(posting->state.load(std::memory_order_relaxed) - kTaken + kFree, std::memory_order_release);
  return bytes;
}

void order_lost() {
  fail(
      "a receive was completed by another message than the one whose bytes are in the ring; are there MPI calls that "
      "this "
      "library does not see? TASUKI_MPI_LAYERS=spelling,packing leaves the ring out");
}

}  // namespace tasuki::mpi
