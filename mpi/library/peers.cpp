// See peers.hpp.
//
// A sender finds a rank's file by the process that listens on an abstract socket of the job and the rank, which
// vanishes with it; what it then opens is that process' file. Nothing is left behind by a rank that dies.
#include "peers.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "session.hpp"

namespace tasuki::mpi {

struct Header {
  std::atomic<std::uint64_t> version;
  std::int32_t ranks, rank;
  alignas(64) Agreements agreements;
};

namespace {

constexpr std::uint64_t kVersion = 0x7461737569000005;  // of this file's structures
constexpr std::int64_t kHeader = (sizeof(Header) + 4095) / 4096 * 4096;
constexpr std::int64_t kBoard = (sizeof(Box) + 4095) / 4096 * 4096;
constexpr std::int64_t kOfSender = kBoard + kRing + kStandingBytes + sizeof(Channels);

std::int64_t offset_of(int sender) {
  return kHeader + sender * kOfSender;
}

std::byte* own = nullptr;  // this rank's file
int own_file = -1, own_socket = -1;
std::string job;
int ranks = 0, rank = 0;
auto& peers = *new std::vector<Peer>;
int number_reached = 0;

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

// How often a rank looks before it gives its processor away. With more ranks than processors it is likely to wait for
// one that has none.
long spins() {
  constexpr long kUsual = 4000;
  static const long many = ranks <= sysconf(_SC_NPROCESSORS_ONLN) ? kUsual : 0;
  return many;
}

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "tasuki: MPI library, rank %d: %s\n", rank, what);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

Peer* reached(int other) {
  Peer& peer = peers[static_cast<std::size_t>(other)];
  if (peer.state == Peer::reached) return &peer;
  constexpr int kTries = 3;  // it may not be as far
  if (peer.state == Peer::without_library) return nullptr;
  if (reach(peer, other)) {
    peer.state = Peer::reached;
    if (other != rank) ++number_reached;
    return &peer;
  }
  if (++peer.tries == kTries) peer.state = Peer::without_library;
  return nullptr;
}

bool ring_runs() {
  return own != nullptr;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int peers_reached() {
  return number_reached;
}

Box& box_from(int sender) {
  return *reinterpret_cast<Box*>(own + offset_of(sender));
}

std::byte* ring_from(int sender) {
  return own + offset_of(sender) + kBoard;
}

int sender_of(const Posting* posting) {
  const auto place = reinterpret_cast<const std::byte*>(posting) - own;
  return static_cast<int>((place - kHeader) / kOfSender);
}

std::byte* standing_from(int sender) {
  return own + offset_of(sender) + kBoard + kRing;
}

std::byte* standing_at(int receiver) {
  const Peer* peer = reached(receiver);
  return peer != nullptr ? peer->ring + kRing : nullptr;
}

std::int64_t cache_bytes() {
  static const std::int64_t cache = [] {
    constexpr std::int64_t kUsual = 1 << 20, kLeast = 1 << 19, kMost = 4 << 20;
    const std::int64_t said = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::clamp(said > 0 ? said : kUsual, kLeast, kMost);
  }();
  return cache;
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

bool lacks_library(int other) {
  return peers[static_cast<std::size_t>(other)].state == Peer::without_library;
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

int ranks_of_job() {
  return ranks;
}

bool may_spin() {
  return spins() > 0;
}

void begin_peers() {
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
  peers = std::vector<Peer>(static_cast<std::size_t>(ranks));
  own_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = 0;
  const sockaddr_un address = address_of(rank, size);
  if (own_socket < 0 || bind(own_socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(own_socket, kMostRanks) != 0)
    end_peers();
}

void end_peers() {
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

}  // namespace tasuki::mpi
