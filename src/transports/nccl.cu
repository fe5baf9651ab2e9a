// Transport `nccl`: messages between GPUs, in stream order.
//
// All operations of a context share one NCCL communicator, and NCCL requires the same order of calls on all ranks. So
// ranks must start operations over this path in the same order. The library is opened at its first use, so that
// programs also run on machines without it.
#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layout/encoding.hpp"
#include "paths/path.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/error.hpp"
#include "transports/kept.hpp"
#include "transports/nccl.hpp"
#include "transports/transport.hpp"

namespace tasuki {
namespace {

#ifdef TASUKI_NCCL

Kept<ncclComm_t>& kept() {
  static auto* const one = new Kept<ncclComm_t>;  // never destroyed: contexts may outlast static objects
  return *one;
}

class Communicator {
 public:
  // Collective over `members` (ascending): all ranks, or a pair.
  Communicator(Runtime& runtime, std::vector<int> members) : members_(std::move(members)) {
    const int size = static_cast<int>(members_.size());
    const int me = place_of(runtime.rank());
    auto offer = kept().offer(size, me, gpu()->current());
    const std::string id = common_id(texts_of_members(runtime, offer.ids()), sizeof(ncclUniqueId));
    part_ = id.empty() ? KeptPart<ncclComm_t>{{}, size, me, gpu()->current(), nullptr} : offer.take(id);
    if (id.empty()) connect(runtime);
  }
  ~Communicator() { drop(false); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void drop(bool abort) {
    if (part_.handle == nullptr) return;
    if (abort) {
      Nccl::get().abort(part_.handle);
    } else {
      kept().keep(part_);
    }
    part_.handle = nullptr;
  }
  ncclComm_t get() const {
    if (part_.handle == nullptr)
      throw Error(ErrorKind::system, "the NCCL communicator was aborted after a failure; end the program");
    return part_.handle;
  }
  int place_of(int rank) const {
    return static_cast<int>(std::lower_bound(members_.begin(), members_.end(), rank) - members_.begin());
  }

 private:
  // Every two members are connected here, so that no exchange has to connect.
  void connect(Runtime& runtime) {
    const Nccl& nccl = Nccl::get();
    const int size = part_.size;
    ncclUniqueId id{};
    together(runtime, [&] {
      if (part_.place == 0) nccl.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
    });
    id = decoded<ncclUniqueId>(texts_of_members(runtime, encoded(id))[0]);
    part_.id.assign(reinterpret_cast<const char*>(&id), sizeof id);  // common_id compares so many bytes
    std::shared_ptr<std::byte> bytes;
    together(runtime, [&] {
      bytes = {gpu()->allocate(2 * size), [](std::byte* p) { gpu()->release(p); }};
      // NCCL waits for all ranks here, without a deadline.
      nccl.check(nccl.init(&part_.handle, size, id, part_.place), "ncclCommInitRank");
    });
    together(runtime, [&] {
      nccl.check(nccl.group_start(), "ncclGroupStart");
      for (int peer = 0; peer < size; ++peer) {
        if (peer == part_.place) continue;
        nccl.check(nccl.send(bytes.get() + peer, 1, ncclUint8, peer, part_.handle, nullptr), "ncclSend");
        nccl.check(nccl.recv(bytes.get() + size + peer, 1, ncclUint8, peer, part_.handle, nullptr), "ncclRecv");
      }
      nccl.check(nccl.group_end(), "ncclGroupEnd");
    });
    wait_until(
        runtime, members_, [] { return gpu()->done(nullptr); },
        [&] { return "rank " + std::to_string(runtime.rank()) + ": path nccl: connecting every pair of ranks"; });
  }

  // Succeeds on all members, or throws on all of them.
  template <class Local>
  void together(Runtime& runtime, const Local& local) const {
    Agreement outcome = among(runtime);
    try {
      local();
    } catch (const Error& error) {
      outcome.complain(error.what());
    }
    outcome.settle();
  }
  Agreement among(Runtime& runtime) const {
    if (static_cast<int>(members_.size()) == runtime.size()) return {runtime, "path nccl"};
    return {runtime, "path nccl", others(runtime.rank())};
  }
  std::vector<int> others(int me) const {
    std::vector<int> rest = members_;
    std::erase(rest, me);
    return rest;
  }
  // Of all members, in their order.
  std::vector<std::string> texts_of_members(Runtime& runtime, const std::string& text) const {
    if (static_cast<int>(members_.size()) == runtime.size()) return gather_texts(runtime, text, "connecting NCCL");
    const std::vector<int> rest = others(runtime.rank());
    std::vector<std::string> texts = exchange(runtime, rest, std::vector<std::string>(rest.size(), text));
    texts.insert(texts.begin() + place_of(runtime.rank()), text);
    return texts;
  }

  std::vector<int> members_;
  KeptPart<ncclComm_t> part_;
};

class Message final : public StreamChannel {
 public:
  Message(std::shared_ptr<Communicator> comm, const Command& command, std::byte* local)
      : comm_(std::move(comm)),
        sends_(command.verb == Verb::send),
        at_(local + command.offset),
        bytes_(static_cast<std::size_t>(command.bytes)),
        peer_(comm_->place_of(command.peer)) {}

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
  // Connecting takes a second and GPU memory. So it is done only if some GPUs need it or the user names the path.
  void prepare(Runtime& runtime, const std::string& wanted) override {
    if (!runtime.gpus || connected()) return;
    if (!names(wanted, path_named("nccl")) && (runtime.gpus->complete() || !allows_somewhere(wanted))) return;
    connect(runtime, {runtime.everyone().begin(), runtime.everyone().end()}, all_);
  }
  bool prepare_pair(Runtime& runtime, int peer, const std::string& wanted) override {
    if (connected() || pairs_.contains(peer)) return true;
    if (!names(wanted, path_named("nccl")) && (runtime.gpus->reach(runtime.rank(), peer) || !allows_somewhere(wanted)))
      return false;
    Connected pair;
    connect(runtime, {std::min(peer, runtime.rank()), std::max(peer, runtime.rank())}, pair);
    if (pair) pairs_[peer] = pair;
    return pairs_.contains(peer);
  }
  std::string why_not() const override { return connected() ? std::string() : why_not_; }

  std::vector<Channel> open(const ChannelRequest& r) override {
    std::vector<Channel> channels;
#ifdef TASUKI_NCCL
    for (const CarriedCommand& carried : r.commands) {
      const Command& c = r.command(carried);
      const Connected& comm = connected() ? all_ : pairs_.at(c.peer);
      channels.push_back({nullptr, std::make_unique<Message>(comm, c, carried.local[0]), nullptr});
    }
    return channels;
#else
    throw Error(ErrorKind::not_possible, "rank " + std::to_string(r.plan.rank) + ": path nccl: built without nccl.h");
#endif
  }

 private:
#ifdef TASUKI_NCCL
  using Connected = std::shared_ptr<Communicator>;
#else
  using Connected = std::shared_ptr<void>;
#endif
  // Whether a direction of a halo may take any path.
  static bool allows_somewhere(const std::string& wanted) {
    const Path& nccl = path_named("nccl");
    for (int direction = -1; direction < kMaxDims; ++direction)
      if (allows(wanted_in(wanted, direction), nccl)) return true;
    return false;
  }
  bool connected() const {
    return all_ != nullptr;
  }

  // Collective over the members.
  void connect(Runtime& runtime, std::vector<int> members, Connected& connected) {
#ifdef TASUKI_NCCL
    why_not_ = Nccl::get().why_not;
    const std::string shared = runtime.gpus->shared();
    if (why_not_.empty() && !shared.empty()) why_not_ = shared + "; NCCL wants one for each";
    const std::string state = why_not_.empty() ? "usable" : "not usable";
    if (static_cast<int>(members.size()) == runtime.size()) {
      Agreement(runtime, "path nccl").same("NCCL", state).settle();
    } else {
      const int peer = members[0] == runtime.rank() ? members[1] : members[0];
      Agreement(runtime, "path nccl", {peer}).same("NCCL", state).settle();
    }
    if (!why_not_.empty()) return;
    connected = std::make_shared<Communicator>(runtime, std::move(members));
    runtime.gpus->on_abort([comm = std::weak_ptr(connected)] {
      if (const auto alive = comm.lock()) alive->drop(true);
    });
    if (!all_) why_not_ = kNotConnected;
#else
    static_cast<void>(runtime);
    static_cast<void>(members);
    static_cast<void>(connected);
    why_not_ = "built without nccl.h";
#endif
  }

  static constexpr const char* kNotConnected =
      "not connected: no GPU needs it (option 'path' with 'nccl' in its list connects it)";
  Connected all_;
  std::map<int, Connected> pairs_;  // by peer: for transfers that were made before all ranks were connected
  std::string why_not_ = kNotConnected;
};

const TransportRegistration registration{
    "nccl", [](Runtime&) -> std::unique_ptr<Transport> { return std::make_unique<NcclTransport>(); }};

}  // namespace
}  // namespace tasuki
