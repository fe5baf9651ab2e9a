// Path `mpi`: packed contiguous messages (shapes.hpp has the commands) over persistent requests; reaches every rank.
#include <fmt/format.h>

#include "paths/mpi_message.hpp"
#include "paths/shapes.hpp"
#include "session/mpi.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

// One persistent request for every round and ring copy: all addresses are known when the operation is made.
class Message final : public Channel {
 public:
  explicit Message(const ChannelRequest& r) : copies_(static_cast<int>(r.local.size())) {
    if (r.threaded && r.runtime.thread_level() < MPI_THREAD_MULTIPLE) {
      throw Error(
          fmt::format("rank {}: {}: engine 'thread' with path 'mpi' needs MPI_THREAD_MULTIPLE, but MPI was "
                      "started with less; use engine 'inline' or start MPI with MPI_Init_thread",
                      r.plan.rank, r.plan.operation));
    }
    const std::int64_t step = r.command.verb == Verb::send ? r.command.src_step : r.command.dst_step;
    for (std::int64_t round = 0; round < r.rounds; ++round) {
      for (std::byte* base : r.local) {
        requests_.push_back(make_message(r, base + r.command.offset + round * step));
      }
    }
  }

  ~Message() override {
    if (!mpi_running()) return;
    for (auto& request : requests_) {
      if (request != MPI_REQUEST_NULL) mpi::calls().Request_free(&request);
    }
  }

  void start(std::int64_t round, int copy) override {
    running_ = &requests_[static_cast<std::size_t>(round * copies_ + copy)];
    mpi::Start(running_);
  }

  bool test() override {
    int done = 0;
    mpi::Test(running_, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  void cancel() override {
    if (running_ != nullptr) mpi::calls().Cancel(running_);
  }

 private:
  int copies_;
  std::vector<MPI_Request> requests_;
  MPI_Request* running_ = nullptr;
};

class Mpi final : public MessagePath {
 public:
  Mpi(const Topology& topology, const Profile& profile)
      : MessagePath(Home::own), topology_(topology), profile_(profile) {}
  std::string name() const override { return "mpi"; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && !topology.threads; }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (topology_.threads) return Offer::no("the ranks are threads of one process");
    return priced(profile_, name(), move);
  }

  std::int64_t slice_of(std::int64_t) const override { return kMostOfMpi; }

  std::unique_ptr<Channel> open(const ChannelRequest& request) const override {
    return std::make_unique<Message>(request);
  }

 private:
  const Topology& topology_;
  const Profile& profile_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<Mpi>(runtime.topology(), profile);
}};

}  // namespace
}  // namespace tasuki
