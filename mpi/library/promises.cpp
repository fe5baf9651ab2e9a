// The sender's side of standing.hpp: bundles are promised to be looked at, and their slots are filled.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bundle.hpp"
#include "requests.hpp"
#include "ring.hpp"
#include "session.hpp"
#include "standing.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki::mpi {

namespace {

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
  Message* receive = own_receive(*slot.bundle, slot.slot);
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
