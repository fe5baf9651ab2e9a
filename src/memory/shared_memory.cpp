// Which window a block comes from, and when its memory may be used again. All ranks keep the same list of allocations
// and windows, so one AND over bits (fits here? given back?) decides everything alike on every rank.
#include "memory/shared_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "memory/window.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kSlab = 1 << 20;                // bytes of a slab on each rank
constexpr std::int64_t kLargestSlabBlock = kSlab / 4;  // larger blocks get a window
constexpr std::int64_t kPaged = 64 << 10;              // blocks from this size on start on a page
constexpr std::int64_t kLine = 64;                     // alignment of the others, and the smallest block
constexpr std::int64_t kNewSlab = -1;                  // in place of a window's id
constexpr std::int64_t kNewWindow = -2;
constexpr std::int64_t kLargest = std::int64_t{1} << 50;  // so that no sum over ranks leaves 64 bits

/// A row of yes/no answers in words that can be combined by AND.
class Bits {
 public:
  void append(bool bit) {
    if (size_ % 64 == 0) words.push_back(0);
    words.back() |= std::uint64_t{bit} << (size_++ % 64);
  }
  bool next() {
    const bool bit = (words[read_ / 64] >> (read_ % 64) & 1) != 0;
    ++read_;
    return bit;
  }
  std::vector<std::uint64_t> words;

 private:
  std::size_t size_ = 0;
  std::size_t read_ = 0;
};

struct Request {
  Request(std::int64_t wanted, std::int64_t page)
      : asked(wanted),
        valid(wanted >= 0 && wanted <= kLargest),
        bytes(valid ? std::max(kLine, (wanted + kLine - 1) / kLine * kLine) : kLine),
        alignment(bytes >= kPaged ? page : kLine) {}
  std::int64_t asked;
  bool valid;
  std::int64_t bytes;  // rounded up
  std::int64_t alignment;
};

struct Allocation {
  std::int64_t window = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool released = false;  // by this rank
};

}  // namespace

struct SharedMemory::Impl {
  Communicator& communicator;
  const int rank;
  const int local;
  std::int64_t page = 4096;
  Agree agree;
  bool abandoned = false;
  const int exceptions_at_birth;
  std::string folder;  // where windows are kept, once one is known

  // Windows and allocations are the same on all ranks, but for sizes and offsets.
  std::vector<Window> windows;                             // ascending ids
  std::vector<std::pair<std::byte*, std::int64_t>> owned;  // this rank's parts (begin, window id), ascending
  std::map<std::int64_t, Allocation> allocations;
  std::int64_t next_window = 0;
  std::int64_t next_allocation = 0;

  explicit Impl(Communicator& comm);
  std::shared_ptr<std::byte> allocate(const std::shared_ptr<Impl>& self, std::int64_t bytes);
  Window& window(std::int64_t id);
  std::int64_t settle(const Request& request);
  Window& add_window(const Request& request, bool slab);
  void throw_if(const std::string& complaint, std::int64_t bytes);
  void collect();
  void index_parts();
  void release(std::int64_t allocation);
  void free_all();
};

SharedMemory::Impl::Impl(Communicator& comm)
    : communicator(comm),
      rank(comm.rank()),
      local(comm.places()[static_cast<std::size_t>(rank)]),
      page(sysconf(_SC_PAGESIZE)),
      agree([this](const std::vector<std::uint64_t>& words) { return combine_now(communicator, words); }),
      exceptions_at_birth(std::uncaught_exceptions()) {}

Window& SharedMemory::Impl::window(std::int64_t id) {
  const auto found = std::lower_bound(windows.begin(), windows.end(), id,
                                      [](const Window& w, std::int64_t wanted) { return w.id < wanted; });
  if (found == windows.end() || found->id != id)
    throw Error(
        fmt::format("SharedMemory: rank {}: there is no window {}; it was freed, or the address is not one of "
                    "this context",
                    rank, id));
  return *found;
}

std::shared_ptr<std::byte> SharedMemory::Impl::allocate(const std::shared_ptr<Impl>& self, std::int64_t bytes) {
  const Request request(bytes, page);
  const std::int64_t slab = settle(request);
  if (slab >= 0) ++window(slab).blocks;  // so that it is not collected
  collect();
  Window& home = slab >= 0 ? window(slab) : add_window(request, slab == kNewSlab);
  const std::int64_t offset = home.gaps.take(request.bytes, request.alignment);
  const std::int64_t id = next_allocation++;
  allocations[id] = {home.id, offset, request.bytes, false};

  std::byte* block = home.parts[local].base + offset;
  std::memset(block, 0, request.bytes);
  return {block, [self, id](std::byte*) { self->release(id); }};
}

/// The one collective decision of an allocation: the slab that has room on all ranks, or kNewSlab or kNewWindow. Also
/// gives back the blocks that no rank holds any more.
std::int64_t SharedMemory::Impl::settle(const Request& request) {
  Bits bits;
  bits.append(request.valid);
  bits.append(request.bytes <= kLargestSlabBlock);
  for (const Window& w : windows)
    if (w.slab) bits.append(w.gaps.fits(request.bytes, request.alignment));
  for (const auto& [id, allocation] : allocations) bits.append(allocation.released);
  bits.words = agree(std::move(bits.words));

  const bool all_valid = bits.next();
  const bool all_small = bits.next();
  std::int64_t slab = all_small ? kNewSlab : kNewWindow;
  for (const Window& w : windows)
    if (w.slab && bits.next() && slab == kNewSlab) slab = w.id;
  for (auto entry = allocations.begin(); entry != allocations.end();) {
    const Allocation& allocation = entry->second;
    const bool gone = bits.next();
    if (gone) {
      Window& w = window(allocation.window);
      w.gaps.give_back(allocation.offset, allocation.bytes);
      --w.blocks;
    }
    entry = gone ? allocations.erase(entry) : std::next(entry);
  }
  if (!all_valid) throw_if(request.valid ? "" : "a size cannot be negative or above 1 PiB", request.asked);
  return slab;
}

/// Called by all ranks if any has a complaint: the lowest rank's goes to everybody.
void SharedMemory::Impl::throw_if(const std::string& complaint, std::int64_t bytes) {
  std::string own;
  if (!complaint.empty())
    own = fmt::format("SharedMemory: rank {} could not get {}: {}", rank,
                      bytes < 0 ? fmt::format("{} bytes", bytes) : describe_bytes(bytes), complaint);
  for (const std::string& text : gather_now(communicator, own))
    if (!text.empty()) throw Error(text);
}

/// A new window, counted as holding one block. If it fails, all ranks throw.
Window& SharedMemory::Impl::add_window(const Request& request, bool slab) {
  // A page more, for moving the start to the alignment, should MPI not begin a part on a page.
  const std::int64_t bytes = (slab ? kSlab : request.bytes) + page;
  const auto asked = gather_now(communicator, as_text(bytes));
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < asked.size(); ++r)
    if (communicator.places()[r] >= 0) sum += from_text<std::int64_t>(asked[r]);
  const auto explain = [&](const std::string& what) {
    return fmt::format(
        "{}; the ranks of its host asked for {} together, and there is {}. Allocate less{}", what, describe_bytes(sum),
        space_for_windows(folder).text,
        folder.empty() ? "" : ", or enlarge that file system (docker run --shm-size, mount -o remount,size=)");
  };

  // Asked before MPI is, because in some MPIs only one rank returns from a window that does not fit.
  const bool fits = space_for_windows(folder).bytes >= sum;
  Bits room;
  room.append(fits);
  room.words = agree(std::move(room.words));
  if (!room.next()) throw_if(fits ? "" : explain("it does not fit"), request.asked);

  Window added;
  added.id = next_window++;
  added.slab = slab;
  added.blocks = 1;
  const std::string complaint = communicator.create_window(added, bytes);
  if (added.exists) added.gaps = Gaps(added.parts[local].base, bytes);
  if (!added.parts.empty() && folder.empty()) folder = backing_folder(added.parts[local].base);

  Bits made;
  made.append(added.exists);
  made.append(complaint.empty());
  made.words = agree(std::move(made.words));
  const bool all_exist = made.next();
  if (!made.next()) {
    const std::string why = complaint.empty() ? "" : explain(complaint);
    if (all_exist) communicator.free_window(added);  // otherwise it cannot be freed: that takes all ranks
    throw_if(why, request.asked);
  }
  windows.push_back(std::move(added));
  index_parts();
  return windows.back();
}

/// Frees the windows that no rank has a block in. The first slab stays: it would be made again soon.
void SharedMemory::Impl::collect() {
  const auto idle = [](const Window& w) { return w.blocks == 0 && w.id != 0; };
  for (Window& w : windows)
    if (idle(w)) communicator.free_window(w);
  if (std::erase_if(windows, idle) > 0) index_parts();
}

void SharedMemory::Impl::index_parts() {
  owned.clear();
  for (const Window& w : windows) owned.emplace_back(w.parts[local].base, w.id);
  std::sort(owned.begin(), owned.end());
}

void SharedMemory::Impl::release(std::int64_t id) {
  const auto found = allocations.find(id);
  if (found != allocations.end()) found->second.released = true;
}

void SharedMemory::Impl::free_all() {
  for (Window& w : windows) communicator.free_window(w);
}

SharedMemory::SharedMemory(Communicator& communicator) : impl_(std::make_shared<Impl>(communicator)) {}

SharedMemory::~SharedMemory() {
  const bool unwinding = std::uncaught_exceptions() > impl_->exceptions_at_birth;
  if (!impl_->abandoned && !unwinding && impl_->communicator.running()) impl_->free_all();
  impl_->windows.clear();
  impl_->owned.clear();
}

std::shared_ptr<std::byte> SharedMemory::allocate(std::int64_t bytes) {
  return impl_->allocate(impl_, bytes);
}

SharedAddress SharedMemory::find(const void* p, std::int64_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(p);
  const auto after = std::upper_bound(impl_->owned.begin(), impl_->owned.end(), begin,
                                      [](const std::byte* wanted, const auto& part) { return wanted < part.first; });
  if (after == impl_->owned.begin() || bytes < 0) return {};
  const auto [base, id] = *std::prev(after);
  const std::int64_t offset = begin - base;
  const std::int64_t size = impl_->window(id).parts[impl_->local].size;
  if (offset > size || bytes > size - offset) return {};
  return {id, offset};
}

std::byte* SharedMemory::map(int rank, SharedAddress address) const {
  const std::vector<int>& places = impl_->communicator.places();
  if (rank < 0 || rank >= static_cast<int>(places.size()))
    throw Error(fmt::format("SharedMemory: rank {}: there is no rank {}; the context has {}", impl_->rank, rank,
                            places.size()));
  const int peer = places[static_cast<std::size_t>(rank)];
  if (peer < 0 || !address.valid()) return nullptr;
  const WindowPart& part = impl_->window(address.window).parts[peer];
  if (address.offset < 0 || address.offset > part.size)
    throw Error(fmt::format("SharedMemory: rank {}: offset {} lies outside rank {}'s {} bytes of window {}",
                            impl_->rank, address.offset, rank, part.size, address.window));
  return part.base + address.offset;
}

void SharedMemory::abandon() {
  impl_->abandoned = true;
}
void SharedMemory::agree_with(Agree agree) {
  impl_->agree = std::move(agree);
}
int SharedMemory::windows() const {
  return static_cast<int>(impl_->windows.size());
}

}  // namespace tasuki
