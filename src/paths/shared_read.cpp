// Path `shared:read`: the receiver reads the sender's private memory with process_vm_readv, one pass without shared
// memory. A system call and a list entry for every run, so it is for large blocks of the user's own memory.
//
//   sender's lane:    signal avail               wait done
//   receiver's lane:  wait avail     copy ...    signal done
#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "paths/path.hpp"
#include "session/collective.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

// Reads the runs of strided copies from another process in batches of as many as one call takes.
class Reader {
 public:
  Reader(std::int64_t pid, std::byte* local, std::uint64_t remote) : pid_(pid), local_(local), remote_(remote) {}

  void run(const StridedCopy& copy) {
    std::array<std::int64_t, kMaxDims> at{};
    std::int64_t src = copy.src_offset;
    std::int64_t dst = copy.dst_offset;
    if (copy.blocks() == 0 || copy.block == 0) return;
    for (;;) {
      add(dst, src, copy.block);
      int d = copy.ndims - 1;
      for (; d >= 0; --d) {
        const auto& dim = copy.dims[static_cast<std::size_t>(d)];
        src += dim.src_stride;
        dst += dim.dst_stride;
        if (++at[static_cast<std::size_t>(d)] < dim.count) break;
        at[static_cast<std::size_t>(d)] = 0;
        src -= dim.count * dim.src_stride;
        dst -= dim.count * dim.dst_stride;
      }
      if (d < 0) return;
    }
  }

  void flush() {
    std::size_t first = 0;
    while (first < used_) {
      const ssize_t got =
          process_vm_readv(static_cast<pid_t>(pid_), &to_[first], used_ - first, &from_[first], used_ - first, 0);
      if (got < 0) {
        const int error = errno;
        throw Error(
            fmt::format("path shared:read: process_vm_readv from pid {} failed: {}; force another path with "
                        "TASUKI_PATH=shared:eager or mpi, or allow the call (ptrace scope)",
                        pid_, std::strerror(error)));
      }
      // A call may stop early between entries or inside one.
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

  std::int64_t pid_;
  std::byte* local_;
  std::uint64_t remote_;
  std::size_t used_ = 0;
  std::array<iovec, 512> to_;
  std::array<iovec, 512> from_;
};

class Read final : public Channel {
 public:
  explicit Read(const ChannelRequest& r)
      : pid_(r.runtime.topology().processes[static_cast<std::size_t>(r.command.peer)].pid),
        command_(r.command),
        copies_(r.plan.copies.begin() + r.command.first_copy,
                r.plan.copies.begin() + r.command.first_copy + r.command.copy_count),
        local_(r.local),
        remote_(r.remote) {}

  void start(std::int64_t round, int copy) override {
    const auto which = static_cast<std::size_t>(copy);
    Reader reader(pid_, local_[which] + round * command_.dst_step,
                  remote_[which] + static_cast<std::uint64_t>(round * command_.src_step));
    for (const auto& c : copies_) reader.run(c);
    reader.flush();
  }
  bool test() override { return true; }

 private:
  std::int64_t pid_;
  Command command_;
  std::vector<StridedCopy> copies_;
  std::vector<std::byte*> local_;
  std::vector<std::uint64_t> remote_;
};

// Whether every rank may read its neighbour's memory: asked once, for all, so that ranks never disagree.
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
  const auto targets = gather_texts(runtime, as_text(mine), doing);
  int error = 0;
  for (int other = (me + 1) % runtime.size(); other != me; other = (other + 1) % runtime.size()) {
    if (!topology.same_host(me, other)) continue;
    std::uint64_t seen = 0;
    const auto target = from_text<Target>(targets[static_cast<std::size_t>(other)]);
    iovec to{&seen, sizeof seen};
    iovec from{reinterpret_cast<void*>(target.address), sizeof seen};  // NOLINT: another process's address
    if (process_vm_readv(static_cast<pid_t>(target.pid), &to, 1, &from, 1, 0) != sizeof seen) error = errno;
    if (error == 0 && seen != 0x7461737569000000ULL + static_cast<std::uint64_t>(other)) error = EFAULT;
    break;
  }
  int worst = 0;
  // Also keeps every `word` alive until all have read.
  for (const std::string& text : gather_texts(runtime, as_text(error), doing)) {
    worst = std::max(worst, from_text<int>(text));
  }
  return worst == 0 ? std::string() : fmt::format("process_vm_readv is refused here: {}", std::strerror(worst));
}

class SharedRead final : public Path {
 public:
  SharedRead(Runtime& runtime, const Profile& profile)
      : topology_(runtime.topology()), profile_(profile), refused_(probe(runtime)) {}
  std::string name() const override { return "shared:read"; }
  int preference() const override { return 1; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && topology.same_island(a, b); }
  std::string resource() const override { return "peer core"; }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    if (!refused_.empty()) return Offer::no(refused_);
    if (move.add != DType::none) return Offer::no("a read cannot add");
    return priced(profile_, name(), move);
  }

  void send(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("avail", builder.rank()), link.peer));
  }
  void close_send(Builder& builder, Link& link) const override {
    builder.wait(link.peer, builder.counter(link.name("done", link.peer), builder.rank()));
  }
  void recv(Builder& builder, Link& link) const override {
    builder.wait(link.peer, builder.counter(link.name("avail", link.peer), builder.rank()));
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      link.commands.push_back(builder.copy(link.peer, link.src[i], link.dst[i], link.moves[i]->copies,
                                           builder.user_step(), builder.user_step()));
    }
  }
  void close_recv(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("done", builder.rank()), link.peer));
  }

  bool carries(const Command& command) const override { return command.verb == Verb::copy; }
  std::unique_ptr<Channel> open(const ChannelRequest& request) const override {
    return std::make_unique<Read>(request);
  }

 private:
  const Topology& topology_;
  const Profile& profile_;
  std::string refused_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<SharedRead>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
