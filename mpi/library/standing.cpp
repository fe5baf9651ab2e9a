// The receiver's side of standing.hpp: bundles are offered, posted and emptied.
#include "standing.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "bundle.hpp"
#include "requests.hpp"
#include "ring.hpp"

namespace tasuki::mpi {

namespace {

auto& standing_by_bundle = *new std::unordered_map<const Bundle*, std::weak_ptr<Standing>>;  // of this rank's to itself

// The receiver's side: what is posted. Under a lock, as any thread may receive, and give posted receives to MPI.
std::recursive_mutex receiving;
auto& posted_bundles = *new std::vector<Standing*>;
std::atomic<int> any_posted{0};

Bundles& bundles_from(int sender) {
  return *reinterpret_cast<Bundles*>(standing_from(sender));
}

}  // namespace

std::shared_ptr<Standing> offer(int sender, const std::vector<Message*>& members) {
  if (!looks(sender) || members.empty() || members.size() > kMostSlots) return nullptr;
  Bundles& bundles = bundles_from(sender);
  std::int64_t size = 0;
  constexpr std::int64_t kLine = 64, kUsual = 2 << 20, kMostCopies = 16;
  std::vector<std::int64_t> places;
  for (const Message* message : members) {
    places.push_back(size);
    size += (message->what->bytes() + kLine - 1) / kLine * kLine;
  }
  // Several copies, so that the sender need not take back lines that the receiver has just read (ring.cpp).
  const std::int64_t copies = std::clamp<std::int64_t>(kUsual / std::max<std::int64_t>(size, 1), 1, kMostCopies);
  // Memory behind that of all others that live.
  std::int64_t begin = kMemoryBegins;
  Bundle* free = nullptr;
  for (Bundle& one : bundles.all) {
    if (one.agreed.load(std::memory_order_acquire) % kAgreed != kUnused)
      begin = std::max(begin, one.begin + one.copies * one.size);
    else if (free == nullptr)
      free = &one;
  }
  if (free == nullptr || begin + copies * size > kStandingBytes) return nullptr;
  free->slots = static_cast<std::int32_t>(members.size());
  free->copies = static_cast<std::int32_t>(copies);
  free->begin = begin;
  free->size = size;
  auto standing = std::make_shared<Standing>();
  standing->bundle = free;
  standing->sender = sender;
  standing->members = members;
  for (std::size_t i = 0; i < members.size(); ++i) {
    free->keys[i] = key_of(*members[i]->counted, members[i]->tag);
    free->rooms[i] = members[i]->what->bytes();
    free->places[i] = places[i];
    members[i]->slot = static_cast<int>(i);
    members[i]->standing = standing;
  }
  if (sender == own_rank()) standing_by_bundle[free] = standing;
  free->agreed.store((free->agreed.load(std::memory_order_relaxed) / kAgreed + 1) * kAgreed + kOffered,
                     std::memory_order_release);
  bundles.changes.fetch_add(1, std::memory_order_release);
  return standing;
}

bool post(Standing& standing) {
  Bundle& bundle = *standing.bundle;
  if (standing.ended || standing.open > 0 || bundle.agreed.load(std::memory_order_acquire) % kAgreed != kPromised)
    return false;
  std::uint64_t word = bundle.word.load(std::memory_order_acquire);
  for (;;) {
    const std::uint32_t round = round_of(word) + 1;
    for (std::size_t i = 0; i < standing.members.size(); ++i) {
      const std::int64_t number = standing.members[i]->number, base = number - static_cast<std::int64_t>(round);
      if (number < 0 || standing.members[i]->loose || number < bundle.floors[i].load(std::memory_order_relaxed))
        return false;
      if (bundle.bases[i].load(std::memory_order_relaxed) != base)
        bundle.bases[i].store(base, std::memory_order_relaxed);
    }
    const std::uint64_t next = round * kRound + (word & kPassedBits) + kPosted;
    if (bundle.word.compare_exchange_strong(word, next, std::memory_order_acq_rel)) break;
  }
  const std::scoped_lock lock(receiving);
  posted_bundles.push_back(&standing);
  any_posted.fetch_add(1, std::memory_order_acq_rel);
  standing.open = standing.members.size();
  for (Message* message : standing.members) {
    message->waiting = true;
    message->direct = false;
  }
  return true;
}

namespace {

void give_to_mpi(Message& message) {
  start_in_mpi(message, message.request);
  leave(message);  // after that, as another thread may wait for it
}

// Takes the slot from the sender. False if its message is there or comes.
bool withdraw(const Message& message) {
  const Bundle& bundle = *message.standing->bundle;
  auto& filled = message.standing->bundle->filled[static_cast<std::size_t>(message.slot)];
  const std::uint64_t round = round_of(bundle.word.load(std::memory_order_relaxed));
  std::uint64_t seen = filled.load(std::memory_order_acquire);
  return round_of(seen) != round &&
         filled.compare_exchange_strong(seen, round * kRound + kWithdrawn, std::memory_order_acq_rel);
}

// Those that `hand_over` is told of, by number.
std::vector<Message*> posted_receives(const Comm* comm, int from, int tag, std::int64_t after, std::int64_t before) {
  std::vector<Message*> found;
  for (const Standing* standing : posted_bundles)
    for (Message* message : standing->members)
      if (message != nullptr && message->waiting && (comm == nullptr || message->counted.get() == comm) &&
          (from == MPI_ANY_SOURCE || message->peer == from) && (tag == MPI_ANY_TAG || message->tag == tag) &&
          message->number > after && message->number < before)
        found.push_back(message);
  std::sort(found.begin(), found.end(), [](const Message* a, const Message* b) { return a->number < b->number; });
  return found;
}

// Those that it could take.
std::vector<Message*> withdraw_all(const std::vector<Message*>& receives) {
  std::vector<Message*> taken;
  for (Message* message : receives)
    if (withdraw(*message)) taken.push_back(message);
  return taken;
}

}  // namespace

bool arrived(Message& message) {
  const Bundle& bundle = *message.standing->bundle;
  const std::uint64_t word = bundle.filled[static_cast<std::size_t>(message.slot)].load(std::memory_order_acquire);
  if (round_of(word) != round_of(bundle.word.load(std::memory_order_relaxed))) return false;
  if ((word & (kDeclined | kWithdrawn)) == 0) return true;
  const std::scoped_lock lock(receiving);
  if (message.waiting && (word & kDeclined) != 0) give_to_mpi(message);
  return true;
}

bool hand_over(const Comm* comm, int from, int tag, std::int64_t after, std::int64_t before) {
  if (any_posted.load(std::memory_order_acquire) == 0) return false;
  const std::scoped_lock lock(receiving);
  const std::vector<Message*> all = posted_receives(comm, from, tag, after, before);
  const std::vector<Message*> taken = withdraw_all(all);
  for (Message* message : taken) give_to_mpi(*message);
  return taken.size() < all.size();
}

bool take_back(Message& message) {
  const std::scoped_lock lock(receiving);
  if (!message.waiting || !withdraw(message)) return false;
  const std::vector<Message*> later = posted_receives(message.counted.get(), message.peer, message.tag, message.number,
                                                      std::numeric_limits<std::int64_t>::max());
  const std::vector<Message*> taken = withdraw_all(later);
  const bool sent = taken.size() < later.size();  // a later message comes, so this one's is on its way by MPI
  // Before another thread that waits for it sees that it waits no more.
  message.withdrawn = !sent;
  if (sent)
    give_to_mpi(message);
  else
    leave(message);
  for (Message* one : taken) give_to_mpi(*one);
  return !sent;
}

std::int64_t drain(Message& message) {
  const Standing& standing = *message.standing;
  const Bundle& bundle = *standing.bundle;
  const auto& filled = bundle.filled[static_cast<std::size_t>(message.slot)];
  const std::uint32_t round = round_of(bundle.word.load(std::memory_order_relaxed));
  RankWait wait(standing.sender);
  std::uint64_t word = filled.load(std::memory_order_acquire);
  if (message.direct) return static_cast<std::int64_t>(word & kBytes);
  const std::byte* from = bytes_of(standing_from(standing.sender), bundle, message.slot, round);
  const auto wait_for = [&](std::int64_t enough) {
    while (((word = filled.load(std::memory_order_acquire)) & kDone) == 0 &&
           static_cast<std::int64_t>(word & kBytes) < enough)
      wait.turn();
  };
  constexpr std::int64_t kWhole = 4096;  // smaller ones are there at once
  const std::int64_t room = message.what->bytes();
  if (room < kWhole) wait_for(std::numeric_limits<std::int64_t>::max());
  if ((word & kDone) != 0 && static_cast<std::int64_t>(word & kBytes) == room) {
    message.what->packer.unpack(from, static_cast<std::byte*>(message.buffer));
    return room;
  }
  if ((word & kDone) == 0) {
    // It may be shorter than the receive; what is there is unpacked, segment by segment.
    std::int64_t done = 0;
    for (const Packer& segment : message.what->segments()) {
      wait_for(done + segment.size());
      if (static_cast<std::int64_t>(word & kBytes) < done + segment.size()) break;
      segment.unpack(from + done, static_cast<std::byte*>(message.buffer));
      done += segment.size();
    }
    wait_for(std::numeric_limits<std::int64_t>::max());
    const auto bytes = static_cast<std::int64_t>(word & kBytes);
    if (bytes > done)
      message.what->unpack_part(from + done, done, bytes - done, static_cast<std::byte*>(message.buffer));
    return bytes;
  }
  const auto bytes = static_cast<std::int64_t>(word & kBytes);
  if (bytes > 0) message.what->unpack_part(from, 0, bytes, static_cast<std::byte*>(message.buffer));
  return bytes;
}

void leave(Message& message) {
  if (!message.waiting) return;
  message.waiting = false;
  Standing& standing = *message.standing;
  if (--standing.open > 0) return;
  const std::scoped_lock lock(receiving);
  std::erase(posted_bundles, &standing);
  any_posted.fetch_sub(1, std::memory_order_acq_rel);
  standing.bundle->word.fetch_and(~kPosted, std::memory_order_acq_rel);
}

void end(Message& message) {
  const std::shared_ptr<Standing> standing = std::exchange(message.standing, nullptr);
  if (standing == nullptr) return;
  const std::scoped_lock lock(receiving);
  standing->members[static_cast<std::size_t>(message.slot)] = nullptr;
  standing->ended = true;
  for (const Message* other : standing->members)
    if (other != nullptr) return;
  if (!ring_runs()) return;
  // The sender forgets it when it looks for offers.
  Bundle& bundle = *standing->bundle;
  std::uint32_t agreed = bundle.agreed.load(std::memory_order_acquire);
  while (!bundle.agreed.compare_exchange_weak(
      agreed, agreed - agreed % kAgreed + (agreed % kAgreed == kPromised ? kEnded : kUnused))) {
  }
  bundles_from(standing->sender).changes.fetch_add(1, std::memory_order_release);
}

Message* own_receive(const Bundle& bundle, int slot) {
  const auto found = standing_by_bundle.find(&bundle);
  const std::shared_ptr<Standing> standing = found == standing_by_bundle.end() ? nullptr : found->second.lock();
  return standing != nullptr ? standing->members[static_cast<std::size_t>(slot)] : nullptr;
}

}  // namespace tasuki::mpi
