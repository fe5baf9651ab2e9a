// Transport `nccl`: messages between GPUs, in stream order.
//
// One NCCL communicator serves all operations of a context, and NCCL wants its calls in the same order everywhere:
// ranks that use several operations over this path must start them in the same order. The library is opened when it is
// first needed, so that programs run where there is none.
#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "paths/path.hpp"
#include "session/gpus.hpp"
#include "session/collective.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/error.hpp"
#include "transports/nccl.hpp"
#include "transports/transport.hpp"

namespace tasuki {
namespace {

#ifdef TASUKI_NCCL

class Communicator {
 public:
  // Collective. Connects every pair of ranks now, so that no exchange pays for it.
  explicit Communicator(Runtime& runtime) {
    const Nccl& nccl = Nccl::get();
    ncclUniqueId id{};
    all_do(runtime, "path nccl", [&] {
      if (runtime.rank() == 0) nccl.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
    });
    id = from_text<ncclUniqueId>(text_of_root(runtime, as_text(id), "connecting NCCL"));
    std::shared_ptr<std::byte> bytes;
    all_do(runtime, "path nccl", [&] {
      bytes = {gpu()->allocate(2 * runtime.size()), [](std::byte* p) { gpu()->release(p); }};
      // NCCL waits for all ranks here, without a deadline.
      nccl.check(nccl.init(&comm_, runtime.size(), id, runtime.rank()), "ncclCommInitRank");
    });
    all_do(runtime, "path nccl", [&] {
      nccl.check(nccl.group_start(), "ncclGroupStart");
      for (int peer = 0; peer < runtime.size(); ++peer) {
        if (peer == runtime.rank()) continue;
        std::byte* const to = bytes.get() + runtime.size() + peer;
        nccl.check(nccl.send(bytes.get() + peer, 1, ncclUint8, peer, comm_, nullptr), "ncclSend");
        nccl.check(nccl.recv(to, 1, ncclUint8, peer, comm_, nullptr), "ncclRecv");
      }
      nccl.check(nccl.group_end(), "ncclGroupEnd");
    });
    wait_until(
        runtime, runtime.everyone(), [] { return gpu()->done(nullptr); },
        [&] { return "rank " + std::to_string(runtime.rank()) + ": path nccl: connecting every pair of ranks"; });
  }
  ~Communicator() { drop(false); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void drop(bool abort) {
    if (comm_ == nullptr) return;
    abort ? Nccl::get().abort(comm_) : Nccl::get().destroy(comm_);
    comm_ = nullptr;
  }
  ncclComm_t get() const {
    if (comm_ == nullptr) throw Error("the NCCL communicator was aborted after a failure; end the program");
    return comm_;
  }

 private:
  ncclComm_t comm_ = nullptr;
};

class Message final : public StreamChannel {
 public:
  Message(std::shared_ptr<Communicator> comm, const Command& command, std::byte* local)
      : comm_(std::move(comm)),
        sends_(command.verb == Verb::send),
        at_(local + command.offset),
        bytes_(static_cast<std::size_t>(command.bytes)),
        peer_(command.peer) {}

  void begin_group() override { Nccl::get().check(Nccl::get().group_start(), "ncclGroupStart"); }
  void end_group() override { Nccl::get().check(Nccl::get().group_end(), "ncclGroupEnd"); }
  void enqueue(Stream stream) override {
    const Nccl& nccl = Nccl::get();
    if (sends_) {
      nccl.check(nccl.send(at_, bytes_, ncclUint8, peer_, comm_->get(), stream), "ncclSend");
    } else {
      nccl.check(nccl.recv(at_, bytes_, ncclUint8, peer_, comm_->get(), stream), "ncclRecv");
    }
  }

 private:
  std::shared_ptr<Communicator> comm_;
  bool sends_;
  std::byte* at_;
  std::size_t bytes_;
  int peer_;
};

#endif

class NcclTransport final : public Transport {
 public:
  // Connecting takes a second and memory: only where GPUs do not reach each other, or where it is asked for.
  void prepare(Runtime& runtime, const std::string& wanted) override {
    const Path& path = path_named("nccl");
    if (!runtime.gpus || connected() || !allows(wanted, path)) return;
    if (runtime.gpus->complete() && !forces(wanted, path)) return;
#ifdef TASUKI_NCCL
    why_not_ = Nccl::get().why_not;
    const std::string shared = runtime.gpus->shared();
    if (why_not_.empty() && !shared.empty()) why_not_ = shared + "; NCCL wants one for each";
    Agreement(runtime, "path nccl").same("NCCL", why_not_.empty() ? "usable" : "not usable").settle();
    if (!why_not_.empty()) return;
    comm_ = std::make_shared<Communicator>(runtime);
    runtime.gpus->on_abort([comm = std::weak_ptr(comm_)] {
      if (const auto alive = comm.lock()) alive->drop(true);
    });
#else
    why_not_ = "built without nccl.h";
#endif
  }
  std::string why_not() const override { return connected() ? std::string() : why_not_; }

  std::vector<Channel> open(const ChannelRequest& r) override {
    std::vector<Channel> channels;
#ifdef TASUKI_NCCL
    for (const CarriedCommand& carried : r.commands) {
      channels.push_back({nullptr, std::make_unique<Message>(comm_, r.command(carried), carried.local[0]), nullptr});
    }
    return channels;
#else
    throw Error("rank " + std::to_string(r.plan.rank) + ": path nccl: built without nccl.h");
#endif
  }

 private:
#ifdef TASUKI_NCCL
  bool connected() const { return comm_ != nullptr; }
  std::shared_ptr<Communicator> comm_;
#else
  bool connected() const { return false; }
#endif
  std::string why_not_ = "not connected: all GPUs reach each other (path 'nccl' connects it)";
};

const TransportRegistration registration{"nccl", [](Runtime&) -> std::unique_ptr<Transport> {
                                           return std::make_unique<NcclTransport>();
                                         }};

}  // namespace
}  // namespace tasuki
