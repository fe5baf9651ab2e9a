// SharedMemory: memory that a rank allocates by itself and the ranks of its host map when they are told where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tasuki {

/// Names bytes of one rank's shared memory to the other ranks of its host. Plain data, sent between ranks.
struct SharedAddress {
  std::int64_t region = -1;  ///< where the part of the rank's memory begins that peers map as one
  std::int64_t region_bytes = 0;
  std::int64_t offset = 0;       ///< of the bytes, in the region
  std::uint32_t entry = 0;       ///< of the block that they lie in, in the ledger of its owner
  std::uint32_t generation = 0;  ///< how many blocks had that entry before
  bool valid() const { return region >= 0; }
  friend bool operator==(const SharedAddress&, const SharedAddress&) = default;
};

/// By which other ranks find a rank's memory. Plain data, sent between ranks.
struct SharedIdentity {
  std::uint64_t token = 0;    ///< known to the ranks of the context only
  std::uint64_t mailbox = 0;  ///< see hand_over.hpp
  std::int64_t pid = 0;
  std::int32_t fd = -1;
};

/// All shared memory of one rank of a context, and its view of that of others. Nothing here communicates.
///
/// Small blocks are cut from slabs, large ones are regions of their own. A word a block in shared memory counts who has
/// it mapped: a block that was given back is used again only when that is nobody, so that a peer's late store can never
/// land in memory that has a new owner. A peer that died holding a block keeps it from being used again.
/// May be called by several threads.
class SharedMemory {
 public:
  SharedMemory(int rank, int ranks);  ///< Gets the first slab. Throws `Error` if there can be no shared memory.
  ~SharedMemory();                    ///< Blocks and mappings that are still held stay usable until they are given up.
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// `bytes` zero-filled bytes, may be 0, aligned to 64 (to the page from 64 KiB on). Never null. The last copy of the
  /// pointer gives the block back. Throws `Error` with what was asked for and what is there if it cannot be had.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  /// The shared name of [p, p + bytes) of this rank; invalid if it does not lie inside one block.
  SharedAddress find(const void* p, std::int64_t bytes) const;

  /// Where this process sees `address` of `rank`. The block is counted as mapped as long as the pointer lives. Null if
  /// the address is not valid or `why_not(rank)` has something to say. Throws `Error` if the block was given back.
  std::shared_ptr<std::byte> map(int rank, const SharedAddress& address);

  /// How many have the block of this rank mapped that `p` points into; 0 if it points into none.
  std::uint32_t mappers(const void* p) const;
  /// Gives the block up if nobody has it mapped and `block` is the only pointer to it: from then on nobody can map it,
  /// and `block` is null. False if somebody has.
  bool retire(std::shared_ptr<std::byte>& block);

  SharedIdentity identity() const;
  /// Tries to reach the memory of `rank` by /proc. Empty if that works, else why not; the same as `why_not` from then
  /// on.
  std::string open(int rank, const SharedIdentity& theirs);
  /// Reaches it by a descriptor that was handed over, which is taken. Likewise.
  std::string adopt(int rank, const SharedIdentity& theirs, int fd);
  /// `rank` is not to be mapped, for this reason.
  void refuse(int rank, const std::string& why);
  /// Why the memory of `rank` cannot be mapped; empty if it can. Ranks that were never opened are on other hosts.
  std::string why_not(int rank) const;

  int regions() const;  ///< How many this rank has now.

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tasuki
