// The ranks of this host: how they find each other, and the memory that each two of them share. Each rank has one file
// without a name for all others: for each sender a board of postings, a ring (ring.hpp), memory of bundles
// (standing.hpp) and streams (channel.hpp).
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "channel.hpp"
#include "filling.hpp"

namespace tasuki::mpi {

/// A receive that a sender may see.
struct alignas(64) Posting {
  std::atomic<std::uint32_t> state;
  std::uint32_t entry;  // of the ring, which the receiver lets go
  std::uint64_t key;    // communicator and tag
  std::int64_t number;  // of the receive among those of the key
  std::int64_t room;    // bytes
  std::int64_t bytes;   // of the message, once it is taken
  std::uint64_t at;     // in the ring
  alignas(64) std::atomic<std::int64_t> filled;
};

inline constexpr std::size_t kPostings = 64;
inline constexpr std::size_t kEntries = 64;
inline constexpr std::int64_t kRing = 16 << 20;
inline constexpr std::int64_t kStandingBytes = 8 << 20;

/// What a rank shares with one sender, before the ring.
struct Box {
  std::atomic<std::int32_t> process;    // the sender's
  std::atomic<std::uint32_t> attached;  // the sender looks for postings
  std::array<Posting, kPostings> postings;
  // Pieces of the ring, in the order in which they were given.
  std::array<std::atomic<std::uint32_t>, kEntries> drained;
};

/// A rank to which this one sends.
struct Peer {
  enum { unknown, reached, without_library } state = unknown;
  int tries = 0;
  std::atomic<pid_t> process{0};
  struct Header* header = nullptr;
  Box* box = nullptr;
  std::byte* ring = nullptr;
  struct Piece {
    std::uint32_t entry;
    std::int64_t begin, end;
  };
  std::deque<Piece> given;  // pieces of the ring that are not drained
  std::int64_t next = 0;    // where the next piece begins
  std::uint32_t next_entry = 0;
  FillPrices prices;
};

void begin_peers();
void end_peers();
/// Whether this rank has memory that others can map.
bool ring_runs();
int own_rank();
int ranks_of_job();
/// How many others have been reached.
int peers_reached();
/// Null if its memory cannot be mapped, now or ever.
Peer* reached(int receiver);
/// Whether it was tried often enough: a rank without the library, or with another version, or whose memory is out of
/// reach.
bool lacks_library(int rank);
/// Whether the sender maps this rank's file.
bool looks(int sender);
FillPrices& prices_of(int receiver);

// In this rank's file.
Box& box_from(int sender);
std::byte* ring_from(int sender);
std::byte* standing_from(int sender);
Channels& channels_from(int sender);
int sender_of(const Posting* posting);
// In the receiver's; null if it cannot be mapped.
std::byte* standing_at(int receiver);
Channels* channels_at(int receiver);
Agreements* agreements_of(int rank);

/// Of a processor's second cache.
std::int64_t cache_bytes();
/// Whether a rank that finds nothing may look again before it gives its processor away.
bool may_spin();
void relax();

/// A wait for another rank of the world, turn by turn. If it ends meanwhile, so does this program.
class RankWait {
 public:
  explicit RankWait(int rank) : rank_(rank) {}
  void turn();

 private:
  int rank_;
  long turns_ = 0;
  std::int64_t gone_ns_ = 0;
};

/// Ends the program, and says why.
[[noreturn]] void fail(const char* what);

}  // namespace tasuki::mpi
