// What the ranks of a host share for exchanges of blocks (exchange.hpp), in the file of each rank: streams of bytes
// from each other rank, one for a communicator, and how far communicators have agreed to use them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "known.hpp"

namespace tasuki::mpi {

/// A segment of a message, and before the first of them what the message is.
inline constexpr std::int64_t kMostUnit = kMostSegment + 64;

struct Channel {
  std::atomic<std::uint64_t> key;  ///< of an exchange; 0: free. The receiver writes it
  std::int64_t place, capacity;    ///< of its bytes, in `memory`
  alignas(64) std::atomic<std::int64_t> written;
  alignas(64) std::atomic<std::int64_t> read;
};

struct Channels {
  static constexpr std::size_t kMost = 8;
  static constexpr std::int64_t kLeastBytes = 128 << 10, kMostBytes = 1 << 20;
  static_assert(kLeastBytes >= 3 * kMostUnit);  // a unit and the end that is too short for one, behind one that is read
  alignas(4096) std::array<Channel, kMost> all;
  alignas(4096) std::array<std::byte, kMost * kMostBytes> memory;
};

/// The message that begins here.
struct ChannelHeader {
  std::int64_t bytes, call;
};

/// One side's position. Units of at most kMostUnit bytes are never cut; an end of the memory that might be too short
/// for one is left out, by both sides alike.
class ChannelEnd {
 public:
  ChannelEnd() = default;
  ChannelEnd(Channels& channels, Channel& channel)
      : channel_(&channel), memory_(channels.memory.data() + channel.place), capacity_(channel.capacity) {}

  /// The sender's: where a unit is to be written; null while there is no room.
  std::byte* room(std::int64_t bytes) {
    const std::int64_t begin = begin_of_next();
    if (begin + rounded(bytes) - seen_ > capacity_) {
      seen_ = channel_->read.load(std::memory_order_acquire);
      if (begin + rounded(bytes) - seen_ > capacity_) return nullptr;
    }
    return memory_ + begin % capacity_;
  }
  void written(std::int64_t bytes) {
    at_ = begin_of_next() + rounded(bytes);
    channel_->written.store(at_, std::memory_order_release);
  }

  /// The receiver's: the next unit; null while it is not there.
  const std::byte* next() {
    if (seen_ <= at_) {
      seen_ = channel_->written.load(std::memory_order_acquire);
      if (seen_ <= at_) return nullptr;
    }
    return memory_ + begin_of_next() % capacity_;
  }
  void read(std::int64_t bytes) {
    at_ = begin_of_next() + rounded(bytes);
    channel_->read.store(at_, std::memory_order_release);
  }

 private:
  static std::int64_t rounded(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::int64_t begin_of_next() const {
    const std::int64_t left = capacity_ - at_ % capacity_;
    return left < kMostUnit ? at_ + left : at_;
  }

  Channel* channel_ = nullptr;
  std::byte* memory_ = nullptr;
  std::int64_t capacity_ = 0, at_ = 0;
  std::int64_t seen_ = 0;  // of the other side's position
};

/// How far the ranks of a communicator have agreed, in the file of its first rank. The word: how many ranks have
/// agreed, whether one has refused, and the number of the latest call that is MPI's. Once all have agreed the later
/// calls are the library's, on all ranks: a rank writes each call that it leaves to MPI into the word before.
struct Agreement {
  std::atomic<std::uint64_t> key;  ///< 0: nobody has used it. It is kept until the job ends
  std::atomic<std::uint64_t> word;
};
inline constexpr std::uint64_t kAgreedRanks = 0xffff, kExchangeRefused = 1 << 16, kMpisCall = 1 << 17;
struct Agreements {
  std::array<Agreement, 1000> all;
};

}  // namespace tasuki::mpi
