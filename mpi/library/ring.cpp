// See ring.hpp.
//
// Each rank has one file without a name, for all others of its host: for each sender a board of postings and a ring. A
// sender finds it by the process that listens on an abstract socket of the job and the rank, which vanishes with it;
// what it then opens is that process' file. Nothing is left behind by a rank that dies.
#include "ring.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "channel.hpp"
#include "filling.hpp"
#include "session.hpp"

namespace tasuki::mpi {

// In the two lowest bits of a posting's state; above them is how often it was posted.
enum State : std::uint32_t {
  kFree,
  kPosted,
  kTaken,
};
constexpr std::uint32_t kStates = 4;

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

namespace {

constexpr std::uint64_t kVersion = 0x7461737569000005;  // of this file's structures
constexpr std::size_t kPostings = 64;
constexpr std::size_t kEntries = 64;
constexpr std::int64_t kRing = 16 << 20;

struct Header {
  std::atomic<std::uint64_t> version;
  std::int32_t ranks, rank;
  alignas(64) Agreements agreements;
};
constexpr std::int64_t kHeader = (sizeof(Header) + 4095) / 4096 * 4096;

struct Box {                            // of one sender
  std::atomic<std::int32_t> process;    // the sender's
  std::atomic<std::uint32_t> attached;  // the sender looks for postings
  std::array<Posting, kPostings> postings;
  std::array<std::atomic<std::uint32_t>, kEntries>
      drained;  // pieces of the ring, in the order in which they were given
};
constexpr std::int64_t kBoard = (sizeof(Box) + 4095) / 4096 * 4096;
constexpr std::int64_t kOfSender = kBoard + kRing + kStandingBytes + sizeof(Channels);
constexpr std::size_t kProbes = 8;  // places in which a posting may be

std::int64_t offset_of(int sender) {
  return kHeader + sender * kOfSender;
}

struct Piece {
  std::uint32_t entry;
  std::int64_t begin, end;
};

struct Peer {  // to which this rank sends
  enum { unknown, reached, apart } state = unknown;
  int tries = 0;
  pid_t process = 0;
  Header* header = nullptr;
  Box* box = nullptr;
  std::byte* ring = nullptr;
  std::deque<Piece> given;  // pieces of the ring that are not drained
  std::int64_t next = 0;    // where the next piece begins
  std::uint32_t next_entry = 0;
  FillPrices prices;
};

std::byte* own = nullptr;  // this rank's file
int own_file = -1, own_socket = -1;
std::string job;
int ranks = 0, rank = 0;
auto& peers = *new std::vector<Peer>;
int peers_reached = 0;

Box& box_from(int sender) {
  return *reinterpret_cast<Box*>(own + offset_of(sender));
}
std::byte* ring_from(int sender) {
  return own + offset_of(sender) + kBoard;
}

std::size_t place_of(std::uint64_t key, std::int64_t number) {
  return ((key >> 40) + static_cast<std::uint64_t>(number)) % kPostings;
}

// What all ranks of a job have in common on a host, and no other job has. Empty if that is not known.
std::string job_name() {
  if (const char* space = std::getenv("PMIX_NAMESPACE")) return space;
  if (const char* pmi = std::getenv("PMI_FD")) {  // a socket that the launcher's process made
    ucred maker{};
    socklen_t size = sizeof maker;
    if (getsockopt(std::atoi(pmi), SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 && maker.pid > 0)
      return "pmi-" + std::to_string(maker.pid);
  }
  const char* slurm = std::getenv("SLURM_JOB_ID");
  const char* step = std::getenv("SLURM_STEP_ID");
  return slurm != nullptr && step != nullptr ? std::string(slurm) + "." + step : "";
}

sockaddr_un address_of(int of, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "tasuki-mpi-" + std::to_string(getuid()) + "-" + job + "-" + std::to_string(of);
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

const char* const kFileName = "tasuki_mpi_ring";

// The file of that name which the process has open; -1 if it cannot be seen.
int open_file_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
  DIR* open_files = opendir(folder.c_str());
  if (open_files == nullptr) return -1;
  int file = -1;
  while (const dirent* entry = readdir(open_files)) {
    std::array<char, 128> target{};
    const std::string path = folder + entry->d_name;
    if (readlink(path.c_str(), target.data(), target.size() - 1) <= 0) continue;
    if (std::string(target.data()).rfind(std::string("/memfd:") + kFileName, 0) != 0) continue;
    file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    break;
  }
  closedir(open_files);
  return file;
}

// Whose socket it is.
pid_t process_of(int other) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return 0;
  socklen_t size = 0;
  const sockaddr_un address = address_of(other, size);
  ucred theirs{};
  socklen_t length = sizeof theirs;
  const bool there = connect(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &theirs, &length) == 0 && theirs.uid == getuid();
  close(socket);
  return there ? theirs.pid : 0;
}

void* map(int file, std::int64_t at, std::int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, at);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool reach(Peer& peer, int other) {
  if (other == rank) {
    peer.header = reinterpret_cast<Header*>(own);
    peer.box = &box_from(rank);
    peer.ring = ring_from(rank);
    peer.box->process.store(getpid(), std::memory_order_relaxed);
    peer.box->attached.store(1, std::memory_order_release);
    return true;
  }
  peer.process = process_of(other);
  if (peer.process <= 0) return false;
  const int file = open_file_of(peer.process);
  if (file < 0) return false;
  auto* header = static_cast<Header*>(map(file, 0, kHeader));
  const bool fits = header != nullptr && header->version.load(std::memory_order_acquire) == kVersion &&
                    header->ranks == ranks && header->rank == other;
  void* memory = fits ? map(file, offset_of(rank), kOfSender) : nullptr;
  close(file);
  if (memory == nullptr) {
    if (header != nullptr) munmap(header, kHeader);
    return false;
  }
  peer.header = header;
  peer.box = static_cast<Box*>(memory);
  peer.ring = static_cast<std::byte*>(memory) + kBoard;
  peer.box->process.store(getpid(), std::memory_order_relaxed);
  peer.box->attached.store(1, std::memory_order_release);
  return true;
}

Peer* reached(int other) {
  Peer& peer = peers[static_cast<std::size_t>(other)];
  if (peer.state == Peer::reached) return &peer;
  constexpr int kTries = 3;  // it may not be as far
  if (peer.state == Peer::apart) return nullptr;
  if (reach(peer, other)) {
    peer.state = Peer::reached;
    if (other != rank) ++peers_reached;
    return &peer;
  }
  if (++peer.tries == kTries) peer.state = Peer::apart;
  return nullptr;
}

// How often a rank looks before it gives its processor away. With more ranks than processors it is likely to wait for
// one that has none.
long spins() {
  constexpr long kUsual = 4000;
  static const long many = ranks <= sysconf(_SC_NPROCESSORS_ONLN) ? kUsual : 0;
  return many;
}

// How far a ring is used before it begins anew, though all of it is free. Lines that the receiver has read lately are
// in its cache, and each of them costs a round trip to take back before it can be written (64 KiB: 8 µs instead of 3).
// So they are left until other lines have pushed them out of there; more than that would push them out of what all
// share.
std::int64_t cache() {
  static const std::int64_t cache = [] {
    constexpr std::int64_t kUsual = 1 << 20, kLeast = 1 << 19, kMost = 4 << 20;
    const std::int64_t said = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::clamp(said > 0 ? said : kUsual, kLeast, kMost);
  }();
  return cache;
}
std::int64_t turn_of_ring() {
  // Rings to several ranks push out each other's lines.
  return std::max<std::int64_t>(2 * cache() / std::max(peers_reached, 1), 64 << 10);
}

// A piece of the ring; -1 if it is full. What was drained first is free first.
std::int64_t give(Peer& peer, std::int64_t bytes, std::uint32_t& entry) {
  while (!peer.given.empty() && peer.box->drained[peer.given.front().entry].load(std::memory_order_acquire) != 0)
    peer.given.pop_front();
  const std::int64_t size = (bytes + 63) / 64 * 64;
  if (peer.given.size() == kEntries || size > kRing) return -1;
  std::int64_t begin = peer.next;
  const std::int64_t first = peer.given.empty() ? kRing + 1 : peer.given.front().begin;
  if (peer.given.empty() || begin > first) {
    const bool own_lines = peer.box == &box_from(rank);
    if (begin + size > (own_lines ? 0 : turn_of_ring()) && size < first) begin = 0;
    if (begin + size > kRing) return -1;
  } else if (begin + size >= first) {
    return -1;
  }
  entry = peer.next_entry;
  peer.next_entry = (peer.next_entry + 1) % kEntries;
  peer.box->drained[entry].store(0, std::memory_order_relaxed);
  peer.given.push_back({entry, begin, begin + size});
  peer.next = begin + size;
  return begin;
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "tasuki: MPI library, rank %d: %s\n", rank, what);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

}  // namespace

bool ring_runs() {
  return own != nullptr;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::uint64_t key_of(const Comm& comm, int tag) {
  return (comm.number ^ static_cast<std::uint64_t>(static_cast<unsigned>(tag)) << 17) * 0x9e3779b97f4a7c15u;
}

std::byte* standing_from(int sender) {
  return own + offset_of(sender) + kBoard + kRing;
}

std::byte* standing_at(int receiver) {
  const Peer* peer = reached(receiver);
  return peer != nullptr ? peer->ring + kRing : nullptr;
}

std::int64_t cache_bytes() {
  return cache();
}

Channels& channels_from(int sender) {
  return *reinterpret_cast<Channels*>(standing_from(sender) + kStandingBytes);
}

Channels* channels_at(int receiver) {
  std::byte* memory = standing_at(receiver);
  return memory != nullptr ? reinterpret_cast<Channels*>(memory + kStandingBytes) : nullptr;
}

Agreements* agreements_of(int other) {
  const Peer* peer = reached(other);
  return peer != nullptr ? &peer->header->agreements : nullptr;
}

bool is_apart(int other) {
  return peers[static_cast<std::size_t>(other)].state == Peer::apart;
}

bool looks(int sender) {
  return box_from(sender).attached.load(std::memory_order_acquire) != 0;
}

FillPrices& prices_of(int receiver) {
  return peers[static_cast<std::size_t>(receiver)].prices;
}

int own_rank() {
  return rank;
}

bool may_spin() {
  return spins() > 0;
}

void begin_ring() {
  if (!session().ring) return;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  job = job_name();
  constexpr int kMostRanks = 4096;  // of which each has 32 MiB of addresses
  if (ranks < 2 || ranks > kMostRanks || job.empty()) return;
  own_file = memfd_create(kFileName, MFD_CLOEXEC);
  if (own_file < 0 || ftruncate(own_file, offset_of(ranks)) != 0) return;
  own = static_cast<std::byte*>(map(own_file, 0, offset_of(ranks)));
  if (own == nullptr) return;
  auto* header = reinterpret_cast<Header*>(own);
  header->ranks = ranks;
  header->rank = rank;
  header->version.store(kVersion, std::memory_order_release);
  peers.resize(static_cast<std::size_t>(ranks));
  own_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = 0;
  const sockaddr_un address = address_of(rank, size);
  if (own_socket < 0 || bind(own_socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(own_socket, kMostRanks) != 0)
    end_ring();
}

void end_ring() {
  if (own_socket >= 0) close(own_socket);
  if (own != nullptr) munmap(own, static_cast<std::size_t>(offset_of(ranks)));
  if (own_file >= 0) close(own_file);
  for (std::size_t i = 0; i < peers.size(); ++i)
    if (peers[i].box != nullptr && i != static_cast<std::size_t>(rank)) {
      munmap(peers[i].box, kOfSender);
      munmap(peers[i].header, kHeader);
    }
  peers.clear();
  own_socket = own_file = -1;
  own = nullptr;
}

PostingWait::PostingWait(const Counted& what)
    : what_(what), limit_ns_(what.ring_gain.load(std::memory_order_relaxed)), waits_(spins() > 0) {
  if (const int skip = what.skip_.load(std::memory_order_relaxed); skip > 0) {
    what.skip_.store(skip - 1, std::memory_order_relaxed);
    waits_ = false;
  }
}

PostingWait::~PostingWait() {
  if (begun_ns_ == 0) return;
  constexpr int kMostSkipped = 255;
  const int skip = in_vain_ ? std::min(2 * what_.backoff_.load(std::memory_order_relaxed) + 1, kMostSkipped) : 0;
  what_.backoff_.store(skip, std::memory_order_relaxed);
  what_.skip_.store(skip, std::memory_order_relaxed);
}

bool PostingWait::over() {
  constexpr std::int64_t kMost = 20'000;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (begun_ns_ == 0) begun_ns_ = now;
  if (now - begun_ns_ < std::min(limit_ns_, kMost)) return false;
  in_vain_ = true;
  return true;
}

Passage PostingWait::take(const Comm& comm, int to, int tag, std::int64_t number, std::int64_t bytes) {
  if (number < 0 || static_cast<std::size_t>(to) >= comm.world.size()) return {};
  const int other = comm.world[static_cast<std::size_t>(to)];
  if (other < 0) return {};
  Peer* peer = reached(other);
  if (peer == nullptr) return {};
  const std::uint64_t key = key_of(comm, tag);
  for (;;) {
    for (std::size_t i = 0; i < kProbes; ++i) {
      Posting& posting = peer->box->postings[(place_of(key, number) + i) % kPostings];
      std::uint32_t seen = posting.state.load(std::memory_order_acquire);
      if (seen % kStates != kPosted || posting.key != key || posting.number != number) continue;
      if (posting.room < bytes) return {};  // MPI says that it is too long
      std::uint32_t entry = 0;
      const std::int64_t at = give(*peer, bytes, entry);
      if (at < 0) return {};
      // The receiver looks at these once its receive is completed, after MPI's empty message.
      posting.bytes = bytes;
      posting.at = static_cast<std::uint64_t>(at);
      posting.entry = entry;
      posting.filled.store(0, std::memory_order_relaxed);
      if (posting.state.compare_exchange_strong(seen, seen - kPosted + kTaken, std::memory_order_acq_rel))
        return {&posting, peer->ring + at, &peer->prices};
      peer->box->drained[entry].store(1, std::memory_order_relaxed);  // it was withdrawn
      return {};
    }
    // Nobody else is waited for: what this rank has not posted it does not post meanwhile.
    if (!waits_ || in_vain_ || other == rank || over()) return {};
    relax();
  }
}

void fill(std::byte* to, FillPrices& prices, const Counted& what, const void* buffer,
          const std::function<void(std::int64_t)>& filled) {
  Filling filling(prices, what.bytes());
  std::int64_t done = 0;
  for (const Packer& segment : what.segments()) {
    filling.pack(segment, static_cast<const std::byte*>(buffer), to + done);
    done += segment.size();
    filled(done);
  }
}

void fill(const Passage& passage, const Counted& what, const void* buffer) {
  fill(passage.bytes, *passage.prices, what, buffer,
       [&](std::int64_t done) { passage.posting->filled.store(done, std::memory_order_release); });
}

void RankWait::turn() {
  constexpr long kSeldom = 1 << 18;
  if (++turns_ < spins())
    relax();
  else
    sched_yield();
  if (turns_ % kSeldom != 0) return;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  constexpr std::int64_t kGone = 10'000'000'000;
  const pid_t seen = peers[static_cast<std::size_t>(rank_)].process;
  const pid_t process = seen > 0 ? seen : box_from(rank_).process.load(std::memory_order_relaxed);
  if (kill(process, 0) == 0 || errno != ESRCH)
    gone_ns_ = 0;
  else if (gone_ns_ == 0)
    gone_ns_ = now;
  else if (now - gone_ns_ > kGone)
    fail("a rank ended while its message was on the way");
}

Posting* post(Comm& comm, int from, int tag, std::int64_t number, std::int64_t bytes) {
  if (number < 0 || comm.wild || static_cast<std::size_t>(from) >= comm.world.size()) return nullptr;
  const int other = comm.world[static_cast<std::size_t>(from)];
  if (other < 0) return nullptr;
  Box& box = box_from(other);
  if (box.attached.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::uint64_t key = key_of(comm, tag);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Posting& posting = box.postings[(place_of(key, number) + i) % kPostings];
    const std::uint32_t seen = posting.state.load(std::memory_order_acquire);
    if (seen % kStates != kFree) continue;
    posting.key = key;
    posting.number = number;
    posting.room = bytes;
    posting.state.store(seen - kFree + kStates + kPosted, std::memory_order_release);
    return &posting;
  }
  return nullptr;
}

bool withdraw(Posting* posting) {
  std::uint32_t seen = posting->state.load(std::memory_order_acquire);
  return seen % kStates == kPosted &&
         posting->state.compare_exchange_strong(seen, seen - kPosted + kFree, std::memory_order_acq_rel);
}

void drain(const std::byte* from, std::int64_t bytes, const Counted& what, void* buffer,
           const std::function<void(std::int64_t)>& wait_for) {
  auto* base = static_cast<std::byte*>(buffer);
  std::int64_t done = 0;
  for (const Packer& segment : what.segments()) {
    if (done + segment.size() > bytes) break;
    wait_for(done + segment.size());
    segment.unpack(from + done, base);
    done += segment.size();
  }
  if (done < bytes) {  // a message that is shorter than its receive
    wait_for(bytes);
    what.unpack_part(from + done, done, bytes - done, base);
  }
}

std::int64_t drain(Posting* posting, const Counted& what, void* buffer) {
  // Which sender's: by where it is.
  const auto place = reinterpret_cast<std::byte*>(posting) - own;
  const int sender = static_cast<int>((place - kHeader) / kOfSender);
  const std::int64_t bytes = posting->bytes;
  drain(ring_from(sender) + posting->at, bytes, what, buffer, [&](std::int64_t enough) {
    for (RankWait wait(sender); posting->filled.load(std::memory_order_acquire) < enough;) wait.turn();
  });
  box_from(sender).drained[posting->entry].store(1, std::memory_order_release);
  posting->state.store(posting->state.load(std::memory_order_relaxed) - kTaken + kFree, std::memory_order_release);
  return bytes;
}

void order_lost() {
  fail(
      "a receive was completed by another message than the one whose bytes are in the ring; are there MPI calls that "
      "this "
      "library does not see? TASUKI_MPI_LAYERS=spelling,packing leaves the ring out");
}

}  // namespace tasuki::mpi
