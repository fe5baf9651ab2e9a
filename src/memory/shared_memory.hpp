// SharedMemory: shared memory that one rank allocates without communication. The other ranks of the host map it by its
// address, which they are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tasuki {

/// Address of bytes in a rank's shared memory, for the other ranks of its host. Plain data, sent between ranks.
struct SharedAddress {
  std::int64_t region = -1;  ///< where the region begins in the owner's file; peers map whole regions
  std::int64_t region_bytes = 0;
  std::int64_t offset = 0;       ///< of the bytes in the region
  std::uint32_t entry = 0;       ///< the block's index in the owner's ledger
  std::uint32_t generation = 0;  ///< number of earlier blocks that had this entry
  bool valid() const { return region >= 0; }
  friend bool operator==(const SharedAddress&, const SharedAddress&) = default;
};

/// With which other ranks find a rank's file. Plain data, sent between ranks.
struct SharedIdentity {
  std::uint64_t token = 0;    ///< of the file; only the ranks of the context know it
  std::uint64_t mailbox = 0;  ///< see hand_over.hpp
  std::int64_t pid = 0;
  std::int32_t fd = -1;
};

/// All shared memory of one rank of a context, and its mappings of other ranks' memory. Nothing here communicates.
///
/// Small blocks are parts of slabs, and so is larger scratch while a slab has room; each other large block is a region
/// of its own. A word for each block, in shared memory, counts the ranks that have mapped it. A freed block is used
/// again only when the count is 0, so a late store of a peer cannot hit memory that has a new owner. A block that a
/// dead peer had mapped is never used again. Functions may be called by several threads.
class SharedMemory {
 public:
  SharedMemory(int rank, int ranks);  ///< Allocates the first slab. Throws `Error` if there is no memory for it.
  ~SharedMemory();                    ///< Blocks and mappings stay usable until their last pointers are destroyed.
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Allocates `bytes` zero-filled bytes; `bytes` may be 0. The alignment is 64 bytes, from 64 KiB on a page. Never
  /// null. The last copy of the pointer frees the block; some memory of freed blocks is kept for later ones
  /// (spare_regions.hpp). Without `zeros` a block may have what an earlier one left. Throws an `Error` that says what
  /// was asked for and what is left.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes, bool zeros = true);

  /// The address of this rank's [p, p + bytes); invalid if the range does not lie inside one block.
  SharedAddress find(const void* p, std::int64_t bytes) const;

  /// Maps `address` of `rank` into this process. The block counts as mapped as long as the pointer exists. Null if the
  /// address is invalid or the rank's memory cannot be mapped (`why_not`). Throws `Error` if the block has been freed.
  std::shared_ptr<std::byte> map(int rank, const SharedAddress& address);

  /// The number of mappings of the block of this rank that contains `p`; 0 if no block does.
  std::uint32_t mappers(const void* p) const;
  /// Frees the block if no rank has it mapped and `block` is the only pointer to it; then `block` becomes null, and
  /// nobody can map it any more. False if it is still mapped.
  bool retire(std::shared_ptr<std::byte>& block);

  SharedIdentity identity() const;
  /// Tries to open the file of `rank` through /proc. Returns an empty text, or the reason for the failure, which
  /// `why_not` returns from then on.
  std::string open(int rank, const SharedIdentity& theirs);
  /// The same with a descriptor that was handed over; takes it over.
  std::string adopt(int rank, const SharedIdentity& theirs, int fd);
  /// Forbids mapping the memory of `rank`, for this reason.
  void refuse(int rank, const std::string& why);
  /// Why the memory of `rank` cannot be mapped; empty if it can. A rank that was never opened counts as one of another
  /// host.
  std::string why_not(int rank) const;

  int regions() const;  ///< Number of regions that this rank has now.

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tasuki
