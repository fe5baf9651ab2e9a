// Path `mpi`: packed contiguous messages (shapes.hpp has the commands) over persistent requests; reaches every rank.
// MPI never sees a datatype other than bytes.
#include "paths/shapes.hpp"

#include <fmt/format.h>

#include <limits>

#include "support/mpi.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kPerOperation = 64;  // tags, one a link between two ranks

// One persistent request for every round and ring copy: all addresses are known when the operation is made.
class Message final : public Channel {
 public:
  explicit Message(const ChannelRequest& r) : copies_(static_cast<int>(r.local.size())) {
    const Command& c = r.command;
    if (c.bytes > std::numeric_limits<int>::max()) {
      throw Error(
          fmt::format("rank {}: {}: a message of {} bytes to rank {} is more than MPI takes at once (2 GiB); "
                      "split the grid further or use fewer fields in one operation",
                      r.plan.rank, r.plan.operation, c.bytes, c.peer));
    }
    if (r.threaded && r.runtime.thread_level() < MPI_THREAD_MULTIPLE) {
      throw Error(
          fmt::format("rank {}: {}: engine 'thread' with path 'mpi' needs MPI_THREAD_MULTIPLE, but MPI was "
                      "started with less; use engine 'inline' or start MPI with MPI_Init_thread",
                      r.plan.rank, r.plan.operation));
    }
    const bool sends = c.verb == Verb::send;
    const std::int64_t step = sends ? c.src_step : c.dst_step;
    const int tag = tag_of(r);
    for (std::int64_t round = 0; round < r.rounds; ++round) {
      for (std::byte* base : r.local) {
        MPI_Request request = MPI_REQUEST_NULL;
        std::byte* at = base + c.offset + round * step;
        const int bytes = static_cast<int>(c.bytes);
        check_mpi(sends ? MPI_Send_init(at, bytes, MPI_BYTE, c.peer, tag, r.runtime.messages(), &request)
                        : MPI_Recv_init(at, bytes, MPI_BYTE, c.peer, tag, r.runtime.messages(), &request),
                  sends ? "MPI_Send_init" : "MPI_Recv_init");
        requests_.push_back(request);
      }
    }
  }

  ~Message() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    for (auto& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }

  void start(std::int64_t round, int copy) override {
    running_ = &requests_[static_cast<std::size_t>(round * copies_ + copy)];
    check_mpi(MPI_Start(running_), "MPI_Start");
  }

  bool test() override {
    int done = 0;
    check_mpi(MPI_Test(running_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  void cancel() override {
    if (running_ != nullptr) MPI_Cancel(running_);
  }

 private:
  // Operations are numbered alike on all ranks, so the number keeps their messages apart.
  static int tag_of(const ChannelRequest& r) {
    int flag = 0;
    int* upper = nullptr;
    check_mpi(MPI_Comm_get_attr(r.runtime.messages(), MPI_TAG_UB, static_cast<void*>(&upper), &flag),
              "MPI_Comm_get_attr");
    const std::int64_t room = (flag != 0 ? *upper : 32767) / kPerOperation;
    if (r.command.tag >= kPerOperation) {
      throw Error(fmt::format("rank {}: {}: more than {} links between two ranks", r.plan.rank, r.plan.operation,
                              kPerOperation));
    }
    return static_cast<int>(r.operation % room) * kPerOperation + r.command.tag;
  }

  int copies_;
  std::vector<MPI_Request> requests_;
  MPI_Request* running_ = nullptr;
};

class Mpi final : public MessagePath {
 public:
  explicit Mpi(const Profile& profile) : MessagePath(Home::own), profile_(profile) {}
  std::string name() const override { return "mpi"; }
  bool joins(const Topology&, int a, int b) const override { return a != b; }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    return priced(profile_, name(), move);
  }

  std::unique_ptr<Channel> open(const ChannelRequest& request) const override {
    return std::make_unique<Message>(request);
  }

 private:
  const Profile& profile_;
};

const PathRegistration registration{
    [](Runtime&, const Profile& profile) -> std::unique_ptr<Path> { return std::make_unique<Mpi>(profile); }};

}  // namespace
}  // namespace tasuki
