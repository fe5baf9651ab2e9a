// See comms.hpp. A communicator's number is made of its parent's, of how many were made of that before, and of its
// ranks: all its ranks call for it in the same order.
#include "comms.hpp"

#include <sched.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "hook.hpp"
#include "ring.hpp"
#include "session.hpp"

namespace tasuki::mpi {

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ hash >> 32;
}

struct Key {
  std::uint64_t comm;
  int rank, tag;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return mix(key.comm, static_cast<std::uint64_t>(key.rank) << 32 | static_cast<unsigned>(key.tag));
  }
};
// Programs that never use a tag twice would fill the memory.
constexpr std::size_t kMostKeys = 1 << 16;

struct Count {
  std::int64_t next = 0;
  bool loose = false;
};
struct Counts {
  std::unordered_map<Key, Count, KeyHash> numbers;
  Key last{0, -1, -1};
  Count* last_count = nullptr;
  std::int64_t next(const Key& key) {
    if (last_count == nullptr || !(last == key)) {
      if (numbers.size() >= kMostKeys && numbers.find(key) == numbers.end()) return -1;
      last_count = &numbers[key];  // its place does not change when others come
      last = key;
    }
    return last_count->next < 0 ? -1 : last_count->next++;
  }
  std::int64_t so_far(const Key& key) const {
    const auto found = numbers.find(key);
    return found == numbers.end() ? 0 : found->second.next;
  }
  void leave(const Key& key) {
    if (next(key) >= 0) last_count->next = -1;
  }
};
auto& sent = *new Counts;
auto& received = *new Counts;

std::recursive_mutex mutex;
struct Entry {
  MPI_Comm handle;
  std::shared_ptr<Comm> comm;
};
auto& comms = *new std::vector<Entry>;
Comm* world = nullptr;
MPI_Comm last_handle = MPI_COMM_NULL;
Comm* last_comm = nullptr;
int keyval = MPI_KEYVAL_INVALID;

int comm_ended(MPI_Comm handle, int, void*, void*) {
  const std::scoped_lock lock(mutex);
  std::erase_if(comms, [&](const Entry& entry) {
    if (entry.handle == handle) entry.comm->ended = true;
    return entry.handle == handle;
  });
  last_handle = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

std::vector<int> world_ranks(MPI_Comm comm) {
  MPI_Group all = MPI_GROUP_NULL, of = MPI_GROUP_NULL;
  int size = 0;
  PMPI_Comm_size(comm, &size);
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Comm_group(comm, &of);
  std::vector<int> mine(static_cast<std::size_t>(size)), theirs(mine.size());
  std::iota(mine.begin(), mine.end(), 0);
  PMPI_Group_translate_ranks(of, size, mine.data(), all, theirs.data());
  PMPI_Group_free(&all);
  PMPI_Group_free(&of);
  return theirs;
}

[[gnu::tls_model("initial-exec")]] thread_local bool first_thread = false;
std::atomic<bool> has_first{false};
std::atomic<bool> several{false};
std::atomic<bool> inside{false};  // the first thread is between counting a message and giving it to MPI
std::atomic<Posting*> blocking{nullptr};
std::once_flag settled;

// The receives of the first thread that are posted, and those that follow, may meet each other's messages. What a
// sender has taken MPI has been given, but for a blocking receive: its message is on the way.
void settle() {
  while (inside.load()) sched_yield();
  withdraw_all();
  for (Posting* posting = blocking.load(); posting != nullptr && !withdraw(posting); posting = blocking.load())
    sched_yield();
}

bool another_thread() {
  bool none = false;
  if (has_first.compare_exchange_strong(none, true)) {
    first_thread = true;
    return false;
  }
  several.store(true);
  std::call_once(settled, settle);
  return true;
}

}  // namespace

Comm* comm_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return world;
  if (world == nullptr || comm == MPI_COMM_NULL) return nullptr;
  const std::scoped_lock lock(mutex);
  if (comm == last_handle) return last_comm;
  last_comm = nullptr;
  for (const Entry& entry : comms)
    if (entry.handle == comm) last_comm = entry.comm.get();
  last_handle = comm;
  return last_comm;
}

void comm_made(MPI_Comm parent, MPI_Comm made) {
  if (!session_runs()) return;
  Comm* from = comm_of(parent);
  if (from == nullptr) return;
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex);
    number = mix(from->number, ++from->made);
  }
  int inter = 0;
  if (made == MPI_COMM_NULL || PMPI_Comm_test_inter(made, &inter) != MPI_SUCCESS || inter) return;
  auto comm = std::make_shared<Comm>();
  comm->world = world_ranks(made);
  for (const int rank : comm->world) number = mix(number, static_cast<std::uint64_t>(rank));
  comm->number = number;
  if (PMPI_Comm_set_attr(made, keyval, nullptr) != MPI_SUCCESS) return;
  const std::scoped_lock lock(mutex);
  comms.push_back({made, std::move(comm)});
  last_handle = MPI_COMM_NULL;
}

void begin_comms() {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_ended, &keyval, nullptr);
  auto comm = std::make_shared<Comm>();
  comm->number = 1;
  comm->world = world_ranks(MPI_COMM_WORLD);
  world = comm.get();
  comms.push_back({MPI_COMM_WORLD, std::move(comm)});
}

void end_comms() {
  world = nullptr;
}

Counting::Counting() : alone_(false) {
  if (world == nullptr || (!first_thread && another_thread())) return;
  inside.store(true);
  alone_ = !several.load();
  if (!alone_) inside.store(false, std::memory_order_release);
}

void notice_thread() {
  if (world != nullptr && !first_thread) another_thread();
}

void set_blocking(Posting* posting) {
  blocking.store(posting);
}

void Counting::end() {
  if (alone_) inside.store(false, std::memory_order_release);
  alone_ = false;
}

std::int64_t next_sent(Comm& comm, int to, int tag) {
  return sent.next({comm.number, to, tag});
}
std::int64_t next_received(Comm& comm, int from, int tag) {
  return received.next({comm.number, from, tag});
}

void last_is_loose() {
  if (received.last_count != nullptr) received.last_count->loose = true;
}
bool last_may_be_loose() {
  return received.last_count != nullptr && received.last_count->loose;
}

void all_wild() {
  const std::scoped_lock lock(mutex);
  for (const Entry& entry : comms) entry.comm->wild = true;
}

std::int64_t sent_so_far(const Comm& comm, int to, int tag) {
  return sent.so_far({comm.number, to, tag});
}

void leave_sent(Comm& comm, int to, int tag) {
  sent.leave({comm.number, to, tag});
}

void leave_received(Comm& comm, int from, int tag) {
  received.leave({comm.number, from, tag});
}

}  // namespace tasuki::mpi

// Those of which all ranks of the first communicator call in the same order.
using tasuki::mpi::comm_made;

HOOK int tasuki_MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  const int status = PMPI_Comm_dup(comm, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  const int status = PMPI_Comm_dup_with_info(comm, info, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  const int status = PMPI_Comm_split(comm, color, key, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Comm_split_type(MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm* made) {
  const int status = PMPI_Comm_split_type(comm, kind, key, info, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  const int status = PMPI_Comm_create(comm, group, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Cart_create(MPI_Comm comm, int ndims, const int* dims, const int* periods, int reorder,
                                MPI_Comm* made) {
  const int status = PMPI_Cart_create(comm, ndims, dims, periods, reorder, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* made) {
  const int status = PMPI_Cart_sub(comm, remain, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
                                 MPI_Comm* made) {
  const int status = PMPI_Graph_create(comm, nodes, index, edges, reorder, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Dist_graph_create(MPI_Comm comm, int number, const int* nodes, const int* degrees,
                                      const int* targets, const int* weights, MPI_Info info, int reorder,
                                      MPI_Comm* made) {
  const int status = PMPI_Dist_graph_create(comm, number, nodes, degrees, targets, weights, info, reorder, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}

HOOK int tasuki_MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources, const int* in_weights,
                                               int out, const int* targets, const int* out_weights, MPI_Info info,
                                               int reorder, MPI_Comm* made) {
  const int status =
      PMPI_Dist_graph_create_adjacent(comm, in, sources, in_weights, out, targets, out_weights, info, reorder, made);
  if (status == MPI_SUCCESS) comm_made(comm, *made);
  return status;
}
