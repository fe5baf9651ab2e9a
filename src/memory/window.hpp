// Window: memory that the ranks of a host share, and the free space in this rank's part of it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tasuki {

struct WindowPart {
  std::byte* base = nullptr;
  std::int64_t size = 0;
};

/// Free space of a window's part, as gaps. Offsets are relative to `base`, alignment is that of addresses.
class Gaps {
 public:
  Gaps() = default;
  Gaps(std::byte* base, std::int64_t size) : base_(base) { give_back(0, size); }

  bool fits(std::int64_t bytes, std::int64_t alignment) const;
  /// The offset of `bytes` bytes, first fit; they must fit.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment);
  void give_back(std::int64_t offset, std::int64_t bytes);  ///< Merges with neighbouring gaps.

 private:
  using Map = std::map<std::int64_t, std::int64_t>;  // offset -> bytes
  std::int64_t aligned(std::int64_t offset, std::int64_t alignment) const;
  Map::const_iterator first_fit(std::int64_t bytes, std::int64_t alignment) const;

  std::byte* base_ = nullptr;
  Map gaps_;
};

struct Window {
  std::int64_t id = 0;
  bool slab = false;  ///< holds many blocks; otherwise one
  int blocks = 0;     ///< allocations in it, the same number on all ranks
  bool exists = false;
  MPI_Win handle = MPI_WIN_NULL;                 ///< between processes
  std::vector<std::shared_ptr<std::byte>> kept;  ///< between threads: what the parts lie in
  std::vector<WindowPart> parts;                 ///< index = rank within the host
  Gaps gaps;                                     ///< of this rank's part
};

/// Obtains the memory behind [begin, begin + bytes) now and near this process; without this, a full file system kills
/// the process at some later store. False if there is not enough.
bool populate(std::byte* begin, std::int64_t bytes);

/// The folder of the file that backs the memory at `p`; empty if there is none.
std::string backing_folder(const void* p);

struct Space {
  std::int64_t bytes = 0;
  std::string text;  ///< `1.0 MiB free of 64.0 MiB in /dev/shm`, `47.1 GiB of memory`
};
/// The most that windows can get: what is free in the file system of `folder`, or the host's memory if it is empty.
Space space_for_windows(const std::string& folder);

/// `3.5 MiB`.
std::string describe_bytes(std::int64_t bytes);

}  // namespace tasuki
