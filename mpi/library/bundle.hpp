// A bundle in the memory of its receiver, as both ranks see it: what standing.cpp posts and promises.cpp fills.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring.hpp"
#include "standing.hpp"

namespace tasuki::mpi {

inline constexpr int kMostSlots = 128;  // of a bundle
inline constexpr int kBundles = 32;     // of a pair of ranks, in one direction

// How far a bundle is agreed upon. Each step is one side's. In the lowest bits; above them is how often it was offered.
enum Agreed : std::uint32_t {
  kUnused,    // the receiver may offer it
  kOffered,   // the sender is to promise or to refuse
  kPromised,  // the receiver posts it
  kRefused,
  kEnded,  // the receiver posts it no more; the sender forgets it, and it is unused
};
inline constexpr std::uint32_t kAgreed = 8;

// The bundle's word: whether it is posted, for the how-manieth time, and how often the sender has given messages to
// MPI.
inline constexpr std::uint64_t kPosted = 1, kPassed = 2, kPassedBits = (std::uint64_t{1} << 32) - 2;
inline constexpr std::uint64_t kRound = std::uint64_t{1} << 32;
inline std::uint32_t round_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word / kRound);
}

// A slot's word: the round, and in the lower half how many bytes of its message are there.
inline constexpr std::uint64_t kDone = std::uint64_t{1} << 31;       // all of them
inline constexpr std::uint64_t kDeclined = std::uint64_t{1} << 30;   // the message comes by MPI
inline constexpr std::uint64_t kWithdrawn = std::uint64_t{1} << 29;  // by the receiver
inline constexpr std::uint64_t kBytes = kWithdrawn - 1;

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

struct Bundles {
  std::atomic<std::uint32_t> changes;  // offers and ends
  alignas(64) std::array<Bundle, kBundles> all;
};
inline constexpr std::int64_t kMemoryBegins = (sizeof(Bundles) + 4095) / 4096 * 4096;
static_assert(kMemoryBegins < kStandingBytes / 2);

// Where the bytes of a slot are, in the receiver's memory for the sender.
inline std::byte* bytes_of(std::byte* memory, const Bundle& bundle, int slot, std::uint32_t round) {
  const auto copy = static_cast<std::int64_t>(round % static_cast<std::uint32_t>(bundle.copies));
  return memory + bundle.begin + copy * bundle.size + bundle.places[static_cast<std::size_t>(slot)];
}

/// The receive of this rank's whose slot a message of its own fills; null if there is none.
Message* own_receive(const Bundle& bundle, int slot);

}  // namespace tasuki::mpi
