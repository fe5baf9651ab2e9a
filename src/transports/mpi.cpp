// Transport `mpi`: messages between buffers in host memory, by persistent requests of MPI.
#include <fmt/format.h>
#include <sched.h>

#include <chrono>

#include "session/mpi.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "transports/mpi_message.hpp"
#include "transports/transport.hpp"

namespace tasuki {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAwaited{20};

// Has a persistent request for every round and every copy of the ring, since all addresses are known when the operation
// is made.
class Message final : public HostChannel {
 public:
  Message(const ChannelRequest& r, const CarriedCommand& carried)
      : runtime_(r.runtime),
        copies_(static_cast<int>(carried.local.size())),
        sends_(r.command(carried).verb == Verb::send) {
    const Command& c = r.command(carried);
    name_ = fmt::format("rank {}: {}: the message {} {}", r.plan.rank, r.plan.operation, sends_ ? "to" : "from",
                        r.runtime.topology().called(c.peer));
    const std::int64_t step = sends_ ? c.src_step : c.dst_step;
    for (std::int64_t round = 0; round < carried.rounds; ++round) {
      for (std::byte* base : carried.local) requests_.add(r, c, base + c.offset + round * step);
    }
  }

  ~Message() override { runtime_.count_messages(unreceived_); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  void start(std::int64_t round, int copy) override {
    running_ = &requests_[static_cast<std::size_t>(round * copies_ + copy)];
    mpi::Start(running_);
    if (sends_) ++unreceived_;
  }

  bool test() override {
    if (running_ == nullptr) return true;
    int done = 0;
    const int code = mpi::calls().Test(running_, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || done != 0) running_ = nullptr;
    if (code != MPI_SUCCESS) throw Error(ErrorKind::system, fmt::format("{} failed: {}", name_, mpi_error_text(code)));
    if (done != 0 && !sends_) --unreceived_;
    return done != 0;
  }

  void cancel() override {
    if (running_ == nullptr || !mpi_running()) return;
    mpi::calls().Cancel(running_);
    // MPI cannot cancel a receive whose message it has matched. That message would arrive after the user has freed the
    // memory, so it is awaited here. The wait is bounded, because the sender may be dead.
    const auto end = Clock::now() + kAwaited;
    int done = 0;
    while (mpi::calls().Test(running_, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0 && Clock::now() < end)
      sched_yield();
    running_ = nullptr;
  }

 private:
  Runtime& runtime_;
  std::string name_;  // for errors
  int copies_;
  bool sends_;
  std::int64_t unreceived_ = 0;  // see Runtime::count_messages; a cancelled message may have been sent
  Requests requests_;
  MPI_Request* running_ = nullptr;  // none once it has ended: MPICH takes a cancel of such a request for an error
};

class Mpi final : public Transport {
 public:
  std::vector<Channel> open(const ChannelRequest& r) override {
    if (r.threaded && r.runtime.thread_level() < MPI_THREAD_MULTIPLE) {
      throw Error(ErrorKind::not_possible,
                  fmt::format("rank {}: {}: engine 'thread' with path 'mpi' needs MPI_THREAD_MULTIPLE, but MPI was "
                              "started with less; use engine 'inline' or start MPI with MPI_Init_thread",
                              r.plan.rank, r.plan.operation));
    }
    std::vector<Channel> channels;
    for (const CarriedCommand& carried : r.commands)
      channels.push_back({std::make_unique<Message>(r, carried), nullptr, nullptr});
    return channels;
  }
};

const TransportRegistration registration{
    "mpi", [](Runtime&) -> std::unique_ptr<Transport> { return std::make_unique<Mpi>(); }};

}  // namespace
}  // namespace tasuki
