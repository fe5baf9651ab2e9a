// Transport `process_vm_readv`: reads another process's memory on the same host, for path `shared:read`.
#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "layout/encoding.hpp"
#include "layout/nest_loop.hpp"
#include "session/collective.hpp"
#include "tasuki/error.hpp"
#include "transports/transport.hpp"

namespace tasuki {
namespace {

// Reads the runs of strided copies from another process. One call reads as many runs as it accepts.
class Reader {
 public:
  /// `peer` is the rank of that process.
  Reader(const Runtime& runtime, int peer, std::byte* local, std::uint64_t remote)
      : runtime_(runtime),
        peer_(peer),
        pid_(runtime.topology().processes[static_cast<std::size_t>(peer)].pid),
        local_(local),
        remote_(remote) {}

  void run(const StridedCopy& copy) {
    if (copy.blocks() == 0 || copy.block == 0) return;
    // Offsets instead of pointers, because the source is in another process.
    for_each_offset(copy, [&](std::int64_t src, std::int64_t dst) { add(dst, src, copy.block); });
  }

  void flush() {
    std::size_t first = 0;
    while (first < used_) {
      const ssize_t got =
          process_vm_readv(static_cast<pid_t>(pid_), &to_[first], used_ - first, &from_[first], used_ - first, 0);
      if (got < 0) {
        fail(errno);
      }
      // A call may stop early: between two runs or inside one.
      std::size_t left = static_cast<std::size_t>(got);
      while (first < used_ && left >= to_[first].iov_len) left -= to_[first++].iov_len;
      if (left > 0) {
        to_[first] = {static_cast<char*>(to_[first].iov_base) + left, to_[first].iov_len - left};
        from_[first] = {static_cast<char*>(from_[first].iov_base) + left, from_[first].iov_len - left};
      }
    }
    used_ = 0;
  }

 private:
  void add(std::int64_t dst, std::int64_t src, std::int64_t bytes) {
    to_[used_] = {local_ + dst, static_cast<std::size_t>(bytes)};
    from_[used_] = {
        reinterpret_cast<void*>(remote_ + static_cast<std::uint64_t>(src)),  // NOLINT: another process's address
        static_cast<std::size_t>(bytes)};
    if (++used_ == to_.size()) flush();
  }

  [[noreturn]] void fail(int error) const {
    const std::array<int, 1> peer{peer_};
    const std::string why = runtime_.liveness().failure(peer);
    // A process that is ending loses its memory before /proc shows that it has ended.
    if (why.empty() && (error == ESRCH || error == EFAULT))
      throw Error(ErrorKind::rank_died,
                  fmt::format("rank {}: path shared:read: rank {} (pid {}) has died, or its memory is gone: {}",
                              runtime_.rank(), peer_, pid_, std::strerror(error)));
    if (!why.empty())
      throw Error(ErrorKind::system, fmt::format("rank {}: path shared:read: {}", runtime_.rank(), why));
    throw Error(
        ErrorKind::system,
        fmt::format("rank {}: path shared:read: reading the memory of rank {} (pid {}) failed: {}; force another path "
                    "with TASUKI_PATH=shared:eager or mpi, or allow process_vm_readv (ptrace scope)",
                    runtime_.rank(), peer_, pid_, std::strerror(error)));
  }

  const Runtime& runtime_;
  int peer_;
  std::int64_t pid_;
  std::byte* local_;
  std::uint64_t remote_;
  std::size_t used_ = 0;
  std::array<iovec, 512> to_;
  std::array<iovec, 512> from_;
};

class Read final : public HostChannel {
 public:
  Read(const ChannelRequest& r, const CarriedCommand& carried)
      : runtime_(r.runtime),
        command_(r.command(carried)),
        copies_(r.plan.copies.begin() + command_.first_copy,
                r.plan.copies.begin() + command_.first_copy + command_.copy_count),
        local_(carried.local),
        remote_(carried.remote) {}

  void start(std::int64_t round, int copy) override {
    const auto which = static_cast<std::size_t>(copy);
    Reader reader(runtime_, command_.peer, local_[which] + round * command_.dst_step,
                  remote_[which] + static_cast<std::uint64_t>(round * command_.src_step));
    for (const auto& c : copies_) reader.run(c);
    reader.flush();
  }
  bool test() override { return true; }

 private:
  const Runtime& runtime_;
  Command command_;
  std::vector<StridedCopy> copies_;
  std::vector<std::byte*> local_;
  std::vector<std::uint64_t> remote_;
};

// Tries whether every rank may read its neighbour's memory. Done once and for all ranks, so that they agree.
std::string probe(Runtime& runtime) {
  const Topology& topology = runtime.topology();
  const int me = runtime.rank();
  struct Target {
    std::int64_t pid;
    std::uint64_t address;
  };
  const std::uint64_t word = 0x7461737569000000ULL + static_cast<std::uint64_t>(me);
  const Target mine{topology.processes[static_cast<std::size_t>(me)].pid, reinterpret_cast<std::uint64_t>(&word)};
  const std::string doing = "finding out whether ranks may read each other's memory";
  const auto targets = gather_texts(runtime, encoded(mine), doing);
  int error = 0;
  for (int other = (me + 1) % runtime.size(); other != me; other = (other + 1) % runtime.size()) {
    if (!topology.same_host(me, other)) continue;
    std::uint64_t seen = 0;
    const auto target = decoded<Target>(targets[static_cast<std::size_t>(other)]);
    iovec to{&seen, sizeof seen};
    iovec from{reinterpret_cast<void*>(target.address), sizeof seen};  // NOLINT: another process's address
    if (process_vm_readv(static_cast<pid_t>(target.pid), &to, 1, &from, 1, 0) != sizeof seen) error = errno;
    if (error == 0 && seen != 0x7461737569000000ULL + static_cast<std::uint64_t>(other)) error = EFAULT;
    break;
  }
  int worst = 0;
  // This is a barrier too: every `word` exists until all ranks have read.
  for (const std::string& text : gather_texts(runtime, encoded(error), doing)) {
    worst = std::max(worst, decoded<int>(text));
  }
  return worst == 0 ? std::string() : fmt::format("process_vm_readv is refused here: {}", std::strerror(worst));
}

class ReadTransport final : public Transport {
 public:
  explicit ReadTransport(Runtime& runtime) : refused_(probe(runtime)) {}
  std::string why_not() const override { return refused_; }
  std::vector<Channel> open(const ChannelRequest& r) override {
    std::vector<Channel> channels;
    for (const CarriedCommand& carried : r.commands)
      channels.push_back({std::make_unique<Read>(r, carried), nullptr, nullptr});
    return channels;
  }

 private:
  std::string refused_;
};

const TransportRegistration registration{"process_vm_readv", [](Runtime& runtime) -> std::unique_ptr<Transport> {
                                           return std::make_unique<ReadTransport>(runtime);
                                         }};

}  // namespace
}  // namespace tasuki
