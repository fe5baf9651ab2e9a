// The table of types: see known.hpp. Types are found by their handles. MPI may use a handle again once it has ended the
// type; it says so by the attribute that each known type is given, however the type was freed.
#include "known.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datatypes/decode.hpp"
#include "layout/sequence.hpp"
#include "session.hpp"

namespace tasuki::mpi {

struct Type::List {
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::shared_ptr<Counted>>> entries;
};

namespace {

const Type kPlain{};
std::mutex mutex;  // of `types`; never held while MPI is called, whose own locks come first
// Never ended: programs call MPI, or MPI calls back, while static objects end.
auto& types = *new std::unordered_map<std::uintptr_t, std::shared_ptr<const Type>>;
std::atomic<std::uint64_t> epoch{1};  // changes whenever a handle may mean something else
int keyval = MPI_KEYVAL_INVALID;

std::uintptr_t key_of(MPI_Datatype handle) {
  return (std::uintptr_t)handle;
}  // an integer or a pointer

// What a thread has looked up lately. A pointer, because libraries that are loaded late have little room for such.
struct Recent {
  struct Entry {
    std::uintptr_t key = 0;
    std::uint64_t epoch = 0;
    const Type* type = nullptr;
  };
  struct CountedEntry {
    const Type* type = nullptr;
    std::int64_t count = 0;
    std::uint64_t epoch = 0;
    const std::shared_ptr<Counted>* counted = nullptr;
  };
  std::array<Entry, 64> types;
  std::array<CountedEntry, 64> counted;
};
[[gnu::tls_model("initial-exec")]] thread_local Recent* recent = nullptr;
struct RecentEnd {
  std::unique_ptr<Recent> mine;
  ~RecentEnd() { recent = nullptr; }
};
thread_local RecentEnd recent_end;

Recent& make_recent() {
  recent_end.mine = std::make_unique<Recent>();
  recent = recent_end.mine.get();
  return *recent;
}

// This thread gives a type its attribute. If it has one, as another thread was faster, MPI says that this has ended.
[[gnu::tls_model("initial-exec")]] thread_local bool replacing = false;

int type_ended(MPI_Datatype handle, int, void*, void*) {
  if (replacing) return MPI_SUCCESS;
  std::shared_ptr<const Type> last;  // ended after the lock
  const std::scoped_lock lock(mutex);
  const auto found = types.find(key_of(handle));
  if (found == types.end()) return MPI_SUCCESS;
  last = std::move(found->second);
  types.erase(found);
  epoch.fetch_add(1, std::memory_order_acq_rel);
  return MPI_SUCCESS;
}

int combiner_of(MPI_Datatype handle) {
  int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
  MPI_Count integers = 0, addresses = 0, counts = 0, inner = 0;
  PMPI_Type_get_envelope_c(handle, &integers, &addresses, &counts, &inner, &combiner);
#else
  int integers = 0, addresses = 0, inner = 0;
  PMPI_Type_get_envelope(handle, &integers, &addresses, &inner, &combiner);
#endif
  return combiner;
}

bool is_named(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

std::shared_ptr<const Type> look_at(MPI_Datatype handle) {
  auto type = std::make_shared<Type>();
  type->handle = handle;
  type->combiner = combiner_of(handle);
  type->counted = std::make_shared<Type::List>();
  try {
    Decoded decoded = decode(handle);
    type->layout = std::move(decoded.layout);
    type->unit = decoded.unit;
    const auto blocks = type->layout.blocks();
    type->plain = blocks.empty() || (blocks.size() == 1 && blocks[0].dims.empty() && blocks[0].offset == 0 &&
                                     type->layout.extent() == type->layout.size());
  } catch (const std::exception& error) {
    type->unknown = error.what();
  }
  return type;
}

const Type& find(MPI_Datatype handle) {
  {
    const std::scoped_lock lock(mutex);
    const auto found = types.find(key_of(handle));
    if (found != types.end()) return *found->second;
  }
  if (!usable(handle)) return kPlain;
  std::shared_ptr<const Type> type = look_at(handle);
  // Named types live as long as MPI. (Some MPIs let them have no attributes.)
  if (!is_named(type->combiner)) {
    replacing = true;
    const int status = PMPI_Type_set_attr(handle, keyval, nullptr);
    replacing = false;
    if (status != MPI_SUCCESS) return kPlain;
  }
  const std::scoped_lock lock(mutex);
  return *types.try_emplace(key_of(handle), std::move(type)).first->second;  // another thread may have been faster
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdu;
}

}  // namespace

bool usable(MPI_Datatype handle) {
  int position = 0;
  char nothing = 0;
  return handle != MPI_DATATYPE_NULL &&
         PMPI_Pack(&nothing, 0, handle, &nothing, 1, &position, session().own) == MPI_SUCCESS;
}

std::int64_t segment_bytes(std::int64_t message_bytes) {
  constexpr std::int64_t kLeast = 4 << 10, kPieces = 8, kLine = 64;
  return std::clamp(message_bytes / kPieces / kLine * kLine, kLeast, kMostSegment);
}

namespace {
bool is_basic([[maybe_unused]] MPI_Datatype handle) {
#ifdef OPEN_MPI
  return false;
#else
  constexpr unsigned kBuiltin = 1;  // the kind of handle that MPICH's basic types have
  return static_cast<unsigned>(handle) >> 30 == kBuiltin;
#endif
}
}  // namespace

bool runs_of_bytes(const Type& type, MPI_Datatype handle) {
  return is_basic(handle) ? handle != MPI_DATATYPE_NULL : type.handle == handle && type.plain && type.unknown.empty();
}

const Type& type_of(MPI_Datatype handle) {
  if (is_basic(handle)) return kPlain;
  Recent& seen = recent != nullptr ? *recent : make_recent();
  const std::uintptr_t key = key_of(handle);
  Recent::Entry& entry = seen.types[(key ^ key >> 6 ^ key >> 12) % seen.types.size()];
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  if (entry.key == key && entry.epoch == now) return *entry.type;
  if (!session_runs() || handle == MPI_DATATYPE_NULL) return kPlain;
  const Type& type = find(handle);
  if (&type != &kPlain) entry = {key, now, &type};
  return type;
}

const std::shared_ptr<Counted>& counted(const Type& type, std::int64_t count) {
  Recent& seen = recent != nullptr ? *recent : make_recent();
  const auto at = reinterpret_cast<std::uintptr_t>(&type) >> 4 ^ static_cast<std::uintptr_t>(count);
  Recent::CountedEntry& entry = seen.counted[at % seen.counted.size()];
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  if (entry.type == &type && entry.count == count && entry.epoch == now) return *entry.counted;
  const std::scoped_lock lock(type.counted->mutex);
  auto& entries = type.counted->entries;
  auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.first == count; });
  if (found == entries.end()) {
    if (entries.capacity() == 0) entries.reserve(kMostCounts);  // so that none moves
    if (entries.size() == kMostCounts) {
      thread_local std::shared_ptr<Counted> passing[2];  // of a send and a receive
      thread_local int turn = 0;
      turn ^= 1;
      passing[turn] = std::make_shared<Counted>(type, count);
      return passing[turn];
    }
    entries.emplace_back(count, std::make_shared<Counted>(type, count));
    found = entries.end() - 1;
  }
  entry = {&type, count, now, &found->second};
  return found->second;
}

Counted::Counted(const Type& type, std::int64_t elements)
    : count(elements), unit(type.unit), layout(Layout::contiguous(elements, type.layout)), packer(layout) {
  const auto blocks = layout.blocks();
  contiguous = blocks.empty() || (blocks.size() == 1 && blocks[0].dims.empty());
  // Alike: of the same type (whatever its handle) and about as many.
  like = mix(static_cast<std::uint64_t>(type.layout.extent()), static_cast<std::uint64_t>(type.combiner));
  for (std::int64_t left = elements; left > 0; left /= 2) like = mix(like, 1);
  for (const Block& block : type.layout.blocks()) {
    like = mix(mix(like, static_cast<std::uint64_t>(block.offset)), static_cast<std::uint64_t>(block.bytes));
    for (const Dim& dim : block.dims)
      like = mix(mix(like, static_cast<std::uint64_t>(dim.count)), static_cast<std::uint64_t>(dim.stride));
  }
}

Counted::~Counted() {
  if (!session_runs()) return;
  if (spelt.type != MPI_DATATYPE_NULL) PMPI_Type_free(&spelt.type);
  if (landing_ != MPI_DATATYPE_NULL) PMPI_Type_free(&landing_);
}

MPI_Datatype Counted::landing() const {
  if constexpr (kLandingGap > 0) {
    std::call_once(landed_, [this] {
      const std::array<int, 2> lengths{static_cast<int>(bytes() - kLandingTail), kLandingTail};
      const std::array<MPI_Aint, 2> places{0, bytes() - kLandingTail + kLandingGap};
      PMPI_Type_create_hindexed(2, lengths.data(), places.data(), MPI_BYTE, &landing_);
      PMPI_Type_commit(&landing_);
    });
  }
  return landing_;
}

void Counted::close_gap(std::byte* packed) const {
  std::byte* tail = packed + bytes() - kLandingTail;
  std::memcpy(tail, tail + kLandingGap, kLandingTail);
}

void Counted::unpack_part(const std::byte* packed, std::int64_t begin, std::int64_t bytes, std::byte* base) const {
  Sequence(layout).part(begin, bytes).unpack(packed, base);
}

const std::vector<Packer>& Counted::segments() const {
  std::call_once(cut_, [this] {
    const std::int64_t each = segment_bytes(bytes());
    const Sequence sequence(layout);
    for (std::int64_t begin = 0; begin < bytes(); begin += each)
      segments_.emplace_back(sequence.part(begin, std::min(each, bytes() - begin)));
  });
  return segments_;
}

void begin_types() {
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_ended, &keyval, nullptr);
}

void end_types() {
  const std::scoped_lock lock(mutex);
  epoch.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace tasuki::mpi
