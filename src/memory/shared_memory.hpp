// SharedMemory: memory that the ranks of one host see of each other, in windows of their communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "session/communicator.hpp"

namespace tasuki {

/// Names bytes of one rank's shared memory to the other ranks of its host. Plain data, sent between ranks.
struct SharedAddress {
  std::int64_t window = -1;
  std::int64_t offset = 0;
  bool valid() const { return window >= 0; }
};

/// All shared windows of one context. Small blocks are cut from slabs, large ones get a window of their own.
/// Allocating is collective; giving back is local: a block's memory is used again, or its window freed, inside a later
/// `allocate` (or at the end), once all ranks have given up their blocks of the same allocation. So no destructor of a
/// block ever communicates, and a peer's late store can never land in memory that has a new owner.
class SharedMemory {
 public:
  /// Bitwise AND of each word over all ranks of the communicator.
  using Agree = std::function<std::vector<std::uint64_t>(std::vector<std::uint64_t>)>;

  explicit SharedMemory(Communicator& communicator);  ///< Collective; the communicator must outlive this.
  ~SharedMemory();  ///< Collective if ranks can talk, unless `abandon` was called or an exception is unwinding.
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Collective. `bytes` zero-filled bytes, may differ per rank and be 0, aligned to 64 (to the page from 64 KiB on).
  /// The pointer's deleter gives the block back. Never null. If one rank cannot get its bytes, all ranks throw.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  /// The shared name of [p, p + bytes) of this rank; invalid if it is not all inside one window.
  SharedAddress find(const void* p, std::int64_t bytes) const;

  /// Where this process sees `address` of `rank`; nullptr if that rank is on another host or the address is not valid.
  /// Local. Throws if the window is gone or the offset lies outside the rank's part of it.
  std::byte* map(int rank, SharedAddress address) const;

  /// Called when a rank has failed: the destructor then leaves windows to the operating system instead of waiting for
  /// ranks that will not come.
  void abandon();

  /// Replaces the endless wait by which `allocate` begins, so that it can fail instead of hanging.
  void agree_with(Agree agree);

  int windows() const;  ///< How many exist now.

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tasuki
