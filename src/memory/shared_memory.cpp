// SharedMemory: chooses the region of a block, finds out when its memory may be used again, opens other ranks' files.
#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "memory/gaps.hpp"
#include "memory/kept_mappings.hpp"
#include "memory/ledger.hpp"
#include "memory/memory_left.hpp"
#include "memory/shared_file.hpp"
#include "memory/spare_regions.hpp"
#include "tasuki/error.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14; older headers lack the name, older kernels return EINVAL
#endif

namespace tasuki {
namespace {

constexpr std::int64_t kSlab = 1 << 20;
constexpr std::int64_t kLargestSlabBlock = kSlab / 4;  // a larger block is a region of its own ...
// ... unless it may have what an earlier one left, and a slab has room. Its pages are there already, here and at peers.
constexpr std::int64_t kLargestSlabScratch = kSlab / 8 * 5;
constexpr std::int64_t kPaged = 64 << 10;       // from this size on blocks are aligned to pages
constexpr std::int64_t kLine = 64;              // alignment of smaller blocks, and the size of the smallest
constexpr std::int64_t kLedgerStep = 64 << 10;  // the ledger grows by so many bytes
// Released bytes from which on a release looks for what can be freed, and does not leave that to the next allocation.
// Not each: a peer may be about to map what it was told of.
constexpr std::int64_t kUnlooked = 16 << 20;
constexpr std::int64_t kLargest = std::int64_t{1} << 50;
constexpr std::int64_t kFile = std::int64_t{1} << 60;  // the largest offset at which a region may end
constexpr const char* kLinkName = "/memfd:tasuki";  // the beginning of the link that /proc/<pid>/fd has for such a file

struct Region {
  std::int64_t begin = 0;  // in the file
  std::int64_t bytes = 0;
  bool slab = false;  // the region has many blocks; otherwise one
  bool used = false;  // it was the memory of earlier blocks, and has what they left
  int blocks = 0;
  std::shared_ptr<std::byte> base;
  Gaps gaps;
};

struct Block {
  std::int64_t region = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint32_t entry = 0;
  std::uint64_t serial = 0;
};

struct Peer {
  SharedIdentity identity;
  std::string why;                                // why the file cannot be opened; empty if it can
  std::shared_ptr<SharedFile> file;               // null until its first use, if it is opened through /proc
  std::vector<std::shared_ptr<std::byte>> slabs;  // slabs of the rank that have been mapped
};

/// Opens the file with this identity through /proc. Null, with `why` set, if that fails.
std::shared_ptr<SharedFile> open_by_proc(const SharedIdentity& identity, std::string& why) {
  const std::string path = fmt::format("/proc/{}/fd/{}", identity.pid, identity.fd);
  // In another process-id namespace this may be any file of any process. So the link is read before it is opened.
  std::array<char, 64> link{};
  if (readlink(path.c_str(), link.data(), link.size() - 1) < 0) {
    why = fmt::format("{}: {}", path, std::strerror(errno));
    return nullptr;
  }
  if (!std::string_view(link.data()).starts_with(kLinkName)) {
    why = path + " is not its memory";
    return nullptr;
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    why = fmt::format("{}: {}", path, std::strerror(errno));
    return nullptr;
  }
  return SharedFile::adopt(fd, identity.token, why);
}

}  // namespace

struct SharedMemory::Impl {
  const int rank;
  const int ranks;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const std::uint64_t mailbox = random_number();
  const std::shared_ptr<SharedFile> file = SharedFile::make();

  mutable std::mutex mutex;  // protects all members below
  std::map<std::int64_t, Region> regions;
  Gaps space{nullptr, kFile};
  SpareRegions spares;
  std::map<const std::byte*, Block> blocks;
  std::vector<Block> released;
  std::int64_t unlooked = 0;  // bytes of blocks that were released since the last look at them
  std::vector<std::uint32_t> free_entries;
  std::uint32_t next_entry = 0;
  std::uint64_t next_serial = 0;
  std::map<int, Peer> peers;
  KeptMappings kept;  // of other ranks' regions that are no slabs

  Impl(int own, int all) : rank(own), ranks(all) { space.take(SharedFile::kRegions, 1); }
  std::shared_ptr<std::byte> allocate(const std::shared_ptr<Impl>& self, std::int64_t asked, bool zeros);
  Region& region_for(std::int64_t bytes, std::int64_t alignment, bool zeros, std::int64_t asked);
  Region& add_region(std::int64_t bytes, bool slab, std::int64_t asked);
  std::string obtain(std::int64_t begin, std::int64_t bytes);
  void drop(SpareRegion& spare);
  void give_back(std::int64_t begin, std::int64_t bytes);
  std::uint32_t take_entry(std::int64_t asked);
  [[noreturn]] void fail(std::int64_t asked, const std::string& why) const;
  void release(const std::byte* begin, std::uint64_t serial);
  void collect();
  void free_block(const Block& block);
  std::map<const std::byte*, Block>::const_iterator block_of(const void* p) const;
  Peer& peer(int other);
  std::shared_ptr<std::byte> map_region(SharedFile& of, const SharedAddress& address);
};

std::shared_ptr<std::byte> SharedMemory::Impl::allocate(const std::shared_ptr<Impl>& self, std::int64_t asked,
                                                        bool zeros) {
  if (asked < 0 || asked > kLargest) fail(asked, "a size cannot be negative or above 1 PiB");
  const std::int64_t bytes = std::max(kLine, (asked + kLine - 1) / kLine * kLine);
  const std::int64_t alignment = bytes >= kPaged ? page : kLine;
  const std::lock_guard lock(mutex);
  collect();
  Block block;
  block.bytes = bytes;
  block.serial = next_serial++;
  block.entry = take_entry(asked);
  std::byte* begin = nullptr;
  try {
    Region& home = region_for(bytes, alignment, zeros, asked);
    block.region = home.begin;
    block.offset = home.gaps.take(bytes, alignment);
    ++home.blocks;
    begin = home.base.get() + block.offset;
    if (zeros && (home.slab || home.used)) std::memset(begin, 0, static_cast<std::size_t>(bytes));
  } catch (...) {
    free_entries.push_back(block.entry);
    throw;
  }
  blocks[begin] = block;
  return {begin, [self, serial = block.serial](std::byte* p) { self->release(p, serial); }};
}

void SharedMemory::Impl::fail(std::int64_t asked, const std::string& why) const {
  throw Error(fmt::format("SharedMemory: rank {} could not get {}: {}", rank,
                          asked < 0 ? fmt::format("{} bytes", asked) : describe_bytes(asked), why));
}

Region& SharedMemory::Impl::region_for(std::int64_t bytes, std::int64_t alignment, bool zeros, std::int64_t asked) {
  const bool needs_slab = bytes <= kLargestSlabBlock;
  if (needs_slab || (!zeros && bytes <= kLargestSlabScratch)) {
    for (auto& [begin, region] : regions)
      if (region.slab && region.gaps.fits(bytes, alignment)) return region;
  }
  return needs_slab ? add_region(kSlab, true, asked) : add_region((bytes + page - 1) / page * page, false, asked);
}

// Memory for a range of the file. Where there is too little, spares go back to the system.
std::string SharedMemory::Impl::obtain(std::int64_t begin, std::int64_t bytes) {
  std::string why = file->obtain(begin, bytes);
  if (!why.empty() && spares.clear([this](SpareRegion& spare) { drop(spare); })) why = file->obtain(begin, bytes);
  return why;
}

Region& SharedMemory::Impl::add_region(std::int64_t bytes, bool slab, std::int64_t asked) {
  // A slab has one size, by which peers know it.
  if (auto spare = spares.take(bytes, slab ? 0 : bytes / 4)) {
    Region region{spare->begin, spare->bytes, slab, true, 0, std::move(spare->base), {}};
    region.gaps = Gaps(region.base.get(), region.bytes);
    return regions[region.begin] = std::move(region);
  }
  const std::int64_t begin = space.take(bytes, page);
  const std::string why = obtain(begin, bytes);
  if (!why.empty()) {
    space.give_back(begin, bytes);
    fail(asked, why + "; allocate less");
  }
  Region region{begin, bytes, slab, false, 0, nullptr, {}};
  try {
    region.base = file->map(begin, bytes);
  } catch (const Error& error) {
    give_back(begin, bytes);
    fail(asked, error.what());
  }
  // Maps the pages now, so that first stores cause no page faults. The memory is allocated already, so a failure here
  // is harmless.
  (void)madvise(region.base.get(), static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE);
  region.gaps = Gaps(region.base.get(), bytes);
  return regions[begin] = std::move(region);
}

std::uint32_t SharedMemory::Impl::take_entry(std::int64_t asked) {
  if (!free_entries.empty()) {
    const std::uint32_t entry = free_entries.back();
    free_entries.pop_back();
    return entry;
  }
  if (next_entry == SharedFile::kEntries)
    fail(asked, fmt::format("there are {} blocks already, held by this rank or mapped by others", next_entry));
  const std::int64_t at = std::int64_t{next_entry} * 8;
  if (at % kLedgerStep == 0) {
    const std::string why = file->obtain(SharedFile::kHead + at, kLedgerStep);
    if (!why.empty()) fail(asked, why);
  }
  return next_entry++;
}

void SharedMemory::Impl::release(const std::byte* begin, std::uint64_t serial) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(begin);
  if (found == blocks.end() || found->second.serial != serial) return;  // retired; another block is there now
  released.push_back(found->second);
  unlooked += found->second.bytes;
  blocks.erase(found);
  if (unlooked > kUnlooked) collect();
}

/// Frees the released blocks that no rank has mapped any more.
void SharedMemory::Impl::collect() {
  unlooked = 0;
  std::erase_if(released, [this](const Block& block) {
    const bool closed = close_entry(*file, block.entry);
    if (closed) free_block(block);
    return closed;
  });
}

void SharedMemory::Impl::free_block(const Block& block) {
  free_entries.push_back(block.entry);
  const auto found = regions.find(block.region);
  Region& home = found->second;
  home.gaps.give_back(block.offset, block.bytes);
  // The first slab is kept, because it would soon be needed again.
  if (--home.blocks > 0 || found == regions.begin()) return;
  SpareRegion spare{home.begin, home.bytes, std::move(home.base)};
  regions.erase(found);
  spares.keep(std::move(spare), [this](SpareRegion& old) { drop(old); });
}

void SharedMemory::Impl::drop(SpareRegion& spare) {
  spare.base.reset();
  give_back(spare.begin, spare.bytes);
}

// A range that the system did not take back is not used again, because it would not read as zeros.
void SharedMemory::Impl::give_back(std::int64_t begin, std::int64_t bytes) {
  if (file->give_back(begin, bytes)) space.give_back(begin, bytes);
}

std::map<const std::byte*, Block>::const_iterator SharedMemory::Impl::block_of(const void* p) const {
  const auto* const begin = static_cast<const std::byte*>(p);
  const auto after = blocks.upper_bound(begin);
  if (after == blocks.begin()) return blocks.end();
  const auto found = std::prev(after);
  return begin - found->first <= found->second.bytes ? found : blocks.end();
}

Peer& SharedMemory::Impl::peer(int other) {
  if (other < 0 || other >= ranks)
    throw Error(fmt::format("SharedMemory: rank {}: there is no rank {}; the context has {}", rank, other, ranks));
  const auto known = peers.find(other);
  if (known != peers.end()) return known->second;
  Peer fresh;
  if (other == rank) fresh.file = file;
  if (other != rank) fresh.why = "another host";
  return peers[other] = std::move(fresh);
}

// Where there is no room for a mapping, those that nobody uses make some.
std::shared_ptr<std::byte> SharedMemory::Impl::map_region(SharedFile& of, const SharedAddress& address) {
  try {
    return of.map(address.region, address.region_bytes);
  } catch (const Error&) {
    if (!kept.clear()) throw;
    return of.map(address.region, address.region_bytes);
  }
}

SharedMemory::SharedMemory(int rank, int ranks) : impl_(std::make_shared<Impl>(rank, ranks)) {
  (void)allocate(0);
}

SharedMemory::~SharedMemory() = default;

std::shared_ptr<std::byte> SharedMemory::allocate(std::int64_t bytes, bool zeros) {
  return impl_->allocate(impl_, bytes, zeros);
}

SharedAddress SharedMemory::find(const void* p, std::int64_t bytes) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->block_of(p);
  if (found == impl_->blocks.end() || bytes < 0) return {};
  const auto& [begin, block] = *found;
  const std::int64_t inside = static_cast<const std::byte*>(p) - begin;
  if (bytes > block.bytes - inside) return {};
  return {block.region, impl_->regions.at(block.region).bytes, block.offset + inside, block.entry,
          generation_of(impl_->file->entry(block.entry).load(std::memory_order_relaxed))};
}

std::shared_ptr<std::byte> SharedMemory::map(int rank, const SharedAddress& address) {
  const std::lock_guard lock(impl_->mutex);
  Peer& peer = impl_->peer(rank);
  if (!address.valid() || !peer.why.empty()) return nullptr;
  if (address.offset < 0 || address.offset > address.region_bytes || address.region < SharedFile::kRegions ||
      address.entry >= SharedFile::kEntries)
    throw Error(fmt::format("SharedMemory: rank {}: offset {} lies outside the {} bytes of rank {}'s region {}",
                            impl_->rank, address.offset, address.region_bytes, rank, address.region));
  if (!peer.file) {
    std::string why;
    peer.file = open_by_proc(peer.identity, why);
    if (!peer.file)
      throw Error(fmt::format("SharedMemory: rank {}: the memory of rank {} cannot be opened any more: {}", impl_->rank,
                              rank, why));
  }
  const std::shared_ptr<SharedFile> file = peer.file;
  if (!count_in(*file, address.entry, address.generation))
    throw Error(fmt::format("SharedMemory: rank {}: rank {} has given that block back already", impl_->rank, rank));
  std::shared_ptr<std::byte> region;
  try {
    region = impl_->map_region(*file, address);
  } catch (...) {
    count_out(*file, address.entry);
    throw;
  }
  // Slabs of other ranks stay mapped, because more blocks of them will be needed.
  const bool foreign = SharedFile::of_this_process(file->token()) == nullptr;
  if (foreign && address.region_bytes != kSlab) {
    impl_->kept.keep(region, address.region_bytes);
  } else if (foreign && std::ranges::find(peer.slabs, region) == peer.slabs.end()) {
    peer.slabs.push_back(region);
  }
  std::byte* const at = region.get() + address.offset;
  return {at, [file, region, entry = address.entry](std::byte*) { count_out(*file, entry); }};
}

std::uint32_t SharedMemory::mappers(const void* p) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->block_of(p);
  if (found == impl_->blocks.end()) return 0;
  return count_of(impl_->file->entry(found->second.entry).load(std::memory_order_acquire));
}

bool SharedMemory::retire(std::shared_ptr<std::byte>& block) {
  {
    const std::lock_guard lock(impl_->mutex);
    const auto found = impl_->blocks.find(block.get());
    if (block.use_count() != 1 || found == impl_->blocks.end()) return false;
    if (!close_entry(*impl_->file, found->second.entry)) return false;
    impl_->free_block(found->second);
    impl_->blocks.erase(found);
  }
  block.reset();  // its deleter finds no block any more
  return true;
}

SharedIdentity SharedMemory::identity() const {
  return {impl_->file->token(), impl_->mailbox, getpid(), impl_->file->fd()};
}

std::string SharedMemory::open(int rank, const SharedIdentity& theirs) {
  const std::lock_guard lock(impl_->mutex);
  Peer& peer = impl_->peer(rank);
  peer.identity = theirs;
  peer.why.clear();
  peer.file = SharedFile::of_this_process(theirs.token);
  // The descriptor is closed after the trial: most ranks never map most others, and descriptors are limited.
  if (!peer.file) open_by_proc(theirs, peer.why);
  return peer.why;
}

std::string SharedMemory::adopt(int rank, const SharedIdentity& theirs, int fd) {
  const std::lock_guard lock(impl_->mutex);
  Peer& peer = impl_->peer(rank);
  peer.identity = theirs;
  peer.why.clear();
  peer.file = SharedFile::adopt(fd, theirs.token, peer.why);
  return peer.why;
}

void SharedMemory::refuse(int rank, const std::string& why) {
  const std::lock_guard lock(impl_->mutex);
  impl_->peer(rank).why = why;
}

std::string SharedMemory::why_not(int rank) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->peer(rank).why;
}

int SharedMemory::regions() const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->regions.size());
}

}  // namespace tasuki
