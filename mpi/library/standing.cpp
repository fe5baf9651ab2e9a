// See standing.hpp.
#include "standing.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "requests.hpp"
#include "ring.hpp"
#include "session.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki::mpi {

namespace {

constexpr int kMostSlots = 128;  // of a bundle
constexpr int kBundles = 32;     // of a pair of ranks, in one direction

// How far a bundle is agreed upon. Each step is one side's. In the lowest bits; above them is how often it was offered.
enum Agreed : std::uint32_t {
  kUnused,    // the receiver may offer it
  kOffered,   // the sender is to promise or to refuse
  kPromised,  // the receiver posts it
  kRefused,
  kEnded,  // the receiver posts it no more; the sender forgets it, and it is unused
};
constexpr std::uint32_t kAgreed = 8;

// The bundle's word: whether it is posted, for the how-manieth time, and how often the sender has given messages to
// MPI.
constexpr std::uint64_t kPosted = 1, kPassed = 2, kPassedBits = (std::uint64_t{1} << 32) - 2;
constexpr std::uint64_t kRound = std::uint64_t{1} << 32;
std::uint32_t round_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word / kRound);
}

// A slot's word: the round, and in the lower half how many bytes of its message are there.
constexpr std::uint64_t kDone = std::uint64_t{1} << 31;       // all of them
constexpr std::uint64_t kDeclined = std::uint64_t{1} << 30;   // the message comes by MPI
constexpr std::uint64_t kWithdrawn = std::uint64_t{1} << 29;  // by the receiver
constexpr std::uint64_t kBytes = kWithdrawn - 1;

}  // namespace

struct alignas(64) Bundle {
  std::atomic<std::uint32_t> agreed;
  std::int32_t slots, copies;
  std::int64_t begin, size;  // of its memory: `copies` times `size` bytes
  alignas(64) std::atomic<std::uint64_t> word;
  alignas(64) std::array<std::atomic<std::uint64_t>, kMostSlots> filled;
  alignas(64) std::array<std::uint64_t, kMostSlots> keys;  // communicator and tag
  std::array<std::int64_t, kMostSlots> rooms, places;      // bytes; where in a copy
  // The number of a slot's receive is this more than the round; written while the bundle is not posted.
  std::array<std::atomic<std::int64_t>, kMostSlots> bases;
  std::array<std::atomic<std::int64_t>, kMostSlots> floors;  // messages below were MPI's; the sender writes it
};

namespace {

struct Bundles {
  std::atomic<std::uint32_t> changes;  // offers and ends
  alignas(64) std::array<Bundle, kBundles> all;
};
constexpr std::int64_t kMemoryBegins = (sizeof(Bundles) + 4095) / 4096 * 4096;
static_assert(kMemoryBegins < kStandingBytes / 2);

Bundles& bundles_from(int sender) {
  return *reinterpret_cast<Bundles*>(standing_from(sender));
}

// Where the bytes of a slot are, in the receiver's memory for the sender.
std::byte* bytes_of(std::byte* memory, const Bundle& bundle, int slot, std::uint32_t round) {
  const auto copy = static_cast<std::int64_t>(round % static_cast<std::uint32_t>(bundle.copies));
  return memory + bundle.begin + copy * bundle.size + bundle.places[static_cast<std::size_t>(slot)];
}

auto& standing_by_bundle = *new std::unordered_map<const Bundle*, std::weak_ptr<Standing>>;  // of this rank's to itself

// The receiver's side: what is posted. Under a lock, as any thread may receive, and give posted receives to MPI.
std::recursive_mutex receiving;
auto& posted_bundles = *new std::vector<Standing*>;
std::atomic<int> any_posted{0};

// The sender's side: what this rank has promised. Under one lock, which is free as long as one thread calls MPI.
struct Promised {
  Bundle* bundle;
  int receiver, slot;
};
struct Kind {  // of messages
  std::uint64_t comm;
  int to, tag;
  bool operator==(const Kind&) const = default;
};
struct KindHash {
  std::size_t operator()(const Kind& kind) const {
    return (kind.comm ^ static_cast<std::uint64_t>(static_cast<unsigned>(kind.to)) << 32 ^
            static_cast<unsigned>(kind.tag)) *
           0x9e3779b97f4a7c15u;
  }
};
struct Sends {
  std::vector<Promised> promised;
  std::int64_t next = 0;  // number of the next message
};
struct Sender {  // to one receiver
  std::uint32_t changes = 0;
  std::unordered_map<std::uint64_t, Kind> persistent;  // by the key that both ranks know
  int skip = 0, backoff = 0;                           // waits that were in vain
};
std::mutex mutex;
auto& sends = *new std::unordered_map<Kind, Sends, KindHash>;
auto& senders = *new std::unordered_map<int, Sender>;
std::atomic<int> promised_bundles{0};

// Takes the slot, if its receive is posted and is that of the message.
bool take(Bundle& bundle, int slot, std::uint64_t word, std::int64_t number) {
  const auto at = static_cast<std::size_t>(slot);
  const std::uint64_t round = round_of(word);
  if ((word & kPosted) == 0) return false;
  if (bundle.bases[at].load(std::memory_order_relaxed) + static_cast<std::int64_t>(round) != number) return false;
  std::uint64_t seen = bundle.filled[at].load(std::memory_order_relaxed);
  return round_of(seen) != round &&
         bundle.filled[at].compare_exchange_strong(seen, round * kRound, std::memory_order_acq_rel);
}

// Whether the receive may be posted in a moment.
bool may_come(const Bundle& bundle, int slot, std::uint64_t word, std::int64_t number) {
  const auto at = static_cast<std::size_t>(slot);
  return bundle.agreed.load(std::memory_order_relaxed) % kAgreed == kPromised &&
         ((word & kPosted) == 0 ||
          bundle.bases[at].load(std::memory_order_relaxed) + static_cast<std::int64_t>(round_of(word)) < number);
}

void forget_bundle(const Bundle& bundle) {
  for (auto& [kind, one] : sends) std::erase_if(one.promised, [&](const Promised& p) { return p.bundle == &bundle; });
}

bool promise(Bundle& bundle, int receiver, const Sender& sender) {
  if (bundle.slots < 0 || bundle.slots > kMostSlots) return false;
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < static_cast<std::size_t>(bundle.slots); ++i) {
    const auto found = sender.persistent.find(bundle.keys[i]);
    if (found == sender.persistent.end()) return false;
    kinds.push_back(found->second);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Sends& one = sends[kinds[i]];
    if (one.promised.empty()) {
      Comm counted;
      counted.number = kinds[i].comm;
      one.next = sent_so_far(counted, kinds[i].to, kinds[i].tag);
    }
    if (one.next < 0) {  // not counted
      forget_bundle(bundle);
      return false;
    }
    one.promised.push_back({&bundle, receiver, static_cast<int>(i)});
    bundle.floors[i].store(one.next, std::memory_order_relaxed);
  }
  return true;
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
  SenderWait wait(standing.sender);
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

bool promises() {
  return promised_bundles.load(std::memory_order_acquire) != 0;
}

bool promised(const Comm& comm, int to, int tag) {
  if (!promises()) return false;
  const std::scoped_lock lock(mutex);
  const auto found = sends.find({comm.number, to, tag});
  return found != sends.end() && !found->second.promised.empty();
}

void may_promise(const Comm& comm, int to, int tag) {
  const std::scoped_lock lock(mutex);
  const int receiver = comm.world[static_cast<std::size_t>(to)];
  Sender& sender = senders[receiver];
  sender.persistent[key_of(comm, tag)] = {comm.number, to, tag};
  if (std::byte* memory = standing_at(receiver); memory != nullptr)
    sender.changes = reinterpret_cast<Bundles*>(memory)->changes.load() - 1;  // what it refused may be possible
}

void look_for_offers(int receiver) {
  std::byte* memory = standing_at(receiver);
  if (memory == nullptr) return;
  auto& bundles = *reinterpret_cast<Bundles*>(memory);
  const std::scoped_lock lock(mutex);
  Sender& sender = senders[receiver];
  const std::uint32_t changes = bundles.changes.load(std::memory_order_acquire);
  if (changes == sender.changes) return;
  sender.changes = changes;
  for (Bundle& bundle : bundles.all) {
    std::uint32_t agreed = bundle.agreed.load(std::memory_order_acquire);
    const std::uint32_t offer = agreed - agreed % kAgreed;
    if (agreed % kAgreed == kEnded) {
      forget_bundle(bundle);
      promised_bundles.fetch_sub(1);
      bundle.agreed.store(offer + kUnused, std::memory_order_release);
    } else if (agreed % kAgreed == kOffered || agreed % kAgreed == kRefused) {
      const bool can = promise(bundle, receiver, sender);
      const std::uint32_t answer = offer + (can ? kPromised : kRefused);
      if (!bundle.agreed.compare_exchange_strong(agreed, answer, std::memory_order_acq_rel)) {
        forget_bundle(bundle);  // it has ended meanwhile
        continue;
      }
      if (can) promised_bundles.fetch_add(1, std::memory_order_acq_rel);
    }
  }
}

bool BundleWait::over() {
  constexpr std::int64_t kMost = 20'000;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (begun_ns_ == 0) begun_ns_ = now;
  return now - begun_ns_ >= std::min(limit_ns_, kMost);
}

Slot claim(const Comm& comm, int to, int tag, std::int64_t bytes, BundleWait* wait) {
  if (!promises()) return {};
  const std::scoped_lock lock(mutex);
  const auto found = sends.find({comm.number, to, tag});
  if (found == sends.end() || found->second.promised.empty()) return {};
  Sends& kind = found->second;
  const std::int64_t number = kind.next++;
  Slot slot;
  const auto try_all = [&](bool passing) {
    bool hope = false;
    for (const Promised& one : kind.promised) {
      std::uint64_t word = one.bundle->word.load(std::memory_order_acquire);
      if (passing) {
        one.bundle->floors[static_cast<std::size_t>(one.slot)].store(number + 1, std::memory_order_relaxed);
        // Whoever posts it from now on sees that.
        while (!one.bundle->word.compare_exchange_weak(word, (word & ~kPassedBits) | ((word + kPassed) & kPassedBits),
                                                       std::memory_order_acq_rel)) {
        }
      }
      if (take(*one.bundle, one.slot, word, number)) {
        slot = {one.bundle, one.slot, one.receiver, round_of(word)};
        return false;
      }
      hope = hope || may_come(*one.bundle, one.slot, word, number);
    }
    return hope;
  };
  Sender& sender = senders[kind.promised.front().receiver];
  const bool waits = wait != nullptr && may_spin() && kind.promised.front().receiver != own_rank();
  if (waits && sender.skip > 0) {
    wait = nullptr;
    --sender.skip;
  }
  bool waited = false, in_vain = false;
  while (try_all(false) && waits && wait != nullptr) {
    waited = true;
    if ((in_vain = wait->over())) break;
    relax();
  }
  if (waited) {
    constexpr int kMostSkipped = 255;
    sender.backoff = in_vain ? std::min(2 * sender.backoff + 1, kMostSkipped) : 0;
    sender.skip = in_vain ? sender.backoff : 0;
  }
  if (!slot) try_all(true);
  if (slot && bytes > slot.bundle->rooms[static_cast<std::size_t>(slot.slot)]) {  // MPI says that it is too long
    decline(slot);
    return {};
  }
  return slot;
}

namespace {

void set_filled(const Slot& slot, std::uint64_t what) {
  slot.bundle->filled[static_cast<std::size_t>(slot.slot)].store(slot.round * kRound + what, std::memory_order_release);
}

std::byte* bytes_of(const Slot& slot) {
  return bytes_of(standing_at(slot.receiver), *slot.bundle, slot.slot, slot.round);
}

// From one type to the other in one pass, if both are this rank's.
bool copy_directly(const Slot& slot, const Counted& what, const void* buffer, Message& message) {
  const auto found = standing_by_bundle.find(slot.bundle);
  const std::shared_ptr<Standing> standing = found == standing_by_bundle.end() ? nullptr : found->second.lock();
  if (standing == nullptr) return false;
  Message* receive = standing->members[static_cast<std::size_t>(slot.slot)];
  if (receive == nullptr || receive->what->bytes() != what.bytes()) return false;
  if (message.copies_to != receive->what) {
    constexpr std::size_t kMost = 16;  // more are taken by the packers' lists faster
    message.copies_to = receive->what;
    message.copies.clear();
    if (!receive->what->layout.overlaps())
      for (const StridedCopy& copy : zip(what.layout, receive->what->layout)) {
        const StridedCopy sorted = reordered(copy);
        message.copies.emplace_back(sorted, select_copy(sorted));
      }
    if (message.copies.size() > kMost) message.copies.clear();
  }
  if (message.copies.empty()) return false;
  for (const auto& [copy, function] : message.copies)
    function(copy, static_cast<const std::byte*>(buffer), static_cast<std::byte*>(receive->buffer));
  receive->direct = true;
  return true;
}

}  // namespace

void fill(const Slot& slot, const Counted& what, const void* buffer, Message* message) {
  const auto bytes = static_cast<std::uint64_t>(what.bytes());
  constexpr std::int64_t kWhole = 4096;
  if (slot.receiver == own_rank() && message != nullptr && copy_directly(slot, what, buffer, *message)) {
  } else if (what.bytes() < kWhole || slot.receiver == own_rank()) {
    what.packer.pack(static_cast<const std::byte*>(buffer), bytes_of(slot));
  } else {
    fill(bytes_of(slot), prices_of(slot.receiver), what, buffer, [&](std::int64_t done) {
      if (done < what.bytes()) set_filled(slot, static_cast<std::uint64_t>(done));
    });
  }
  set_filled(slot, kDone + bytes);
}

void fill(const Slot& slot, const void* buffer, std::int64_t count, MPI_Datatype type) {
  const std::int64_t room = slot.bundle->rooms[static_cast<std::size_t>(slot.slot)];
  int position = 0;
  if (count <= std::numeric_limits<int>::max())  // of more elements the room holds only empty ones
    PMPI_Pack(buffer, static_cast<int>(count), type, bytes_of(slot), static_cast<int>(room), &position, session().own);
  set_filled(slot, kDone + static_cast<std::uint64_t>(position));
}

void decline(const Slot& slot) {
  set_filled(slot, kDeclined);
}

}  // namespace tasuki::mpi
