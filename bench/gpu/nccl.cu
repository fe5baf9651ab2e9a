// Peer `nccl`: one kernel packs what goes to all neighbours, one group of sends and receives carries a message to each,
// one kernel unpacks. A message that is contiguous where it comes from or goes to is not packed there.
#include <mpi.h>

#include "case.hpp"
#include "gpu/collectives.hpp"
#include "gpu/device_memory.cuh"
#include "gpu/messages.hpp"
#include "transports/nccl.hpp"

namespace bench {

#ifdef TASUKI_NCCL

namespace {

using tasuki::Nccl;

// One for all cases, made at the first and kept to the end of the process. Collective; throws on all ranks or on none.
ncclComm_t communicator(const tasuki::Context& context) {
  static ncclComm_t comm = nullptr;
  if (comm != nullptr) return comm;
  const Nccl& nccl = Nccl::get();
  std::string why = agree(context, nccl.why_not);
  if (!why.empty()) throw tasuki::Error(why);
  ncclUniqueId id{};
  ncclResult_t code = ncclSuccess;
  if (context.is_root()) code = nccl.get_unique_id(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, context.comm());
  if (code == ncclSuccess) code = nccl.init(&comm, context.size(), id, context.rank());
  why = agree(context, code == ncclSuccess ? "" : std::string("it cannot connect the ranks: ") + nccl.error(code));
  if (!why.empty()) throw tasuki::Error(why);
  return comm;
}

}  // namespace

ncclComm* nccl_communicator(const tasuki::Context& context) {
  return communicator(context);
}

namespace {

class NcclRunner : public Runner {
 public:
  NcclRunner(const GpuCase& problem, ncclComm_t comm)
      : problem_(problem), stream_(gpu_stream(problem.context)), comm_(comm) {
    const std::vector<PackedMessage> messages = messages_of(problem);
    std::int64_t bytes = 0;
    for (const PackedMessage& message : messages) bytes += aligned(message);
    staging_ = device_memory(static_cast<std::size_t>(bytes));
    std::vector<StridedCopy> pack;
    std::vector<StridedCopy> unpack;
    std::byte* at = staging_.get();
    for (const PackedMessage& message : messages) {
      const auto length = static_cast<std::size_t>(message.bytes);
      messages_.push_back({message.peer, message.sends, message.contiguous() ? message.boxes[0].at : at, length});
      if (!message.contiguous()) message.add_copies(at, message.sends ? pack : unpack);
      at += aligned(message);
    }
    const std::vector<StridedCopy> local = local_copies(problem);
    pack.insert(pack.end(), local.begin(), local.end());
    pack_ = std::make_unique<CopyList>(pack);
    unpack_ = std::make_unique<CopyList>(unpack);
  }

  void start() override {
    const Nccl& nccl = Nccl::get();
    pack_->enqueue(stream_);
    if (!messages_.empty()) {
      nccl.check(nccl.group_start(), "ncclGroupStart");
      for (const Message& m : messages_) {
        if (m.sends) {
          nccl.check(nccl.send(m.at, m.bytes, ncclUint8, m.peer, comm_, stream_), "ncclSend");
        } else {
          nccl.check(nccl.recv(m.at, m.bytes, ncclUint8, m.peer, comm_, stream_), "ncclRecv");
        }
      }
      nccl.check(nccl.group_end(), "ncclGroupEnd");
    }
    unpack_->enqueue(stream_);
  }
  void finish() override { finish_stream(problem_.context); }

 private:
  struct Message {
    int peer;
    bool sends;
    std::byte* at;
    std::size_t bytes;
  };

  // What staging takes: none where the message lies in one piece already.
  static std::int64_t aligned(const PackedMessage& m) { return m.contiguous() ? 0 : aligned_to_16(m.bytes); }

  GpuCase problem_;
  tasuki::Stream stream_;
  ncclComm_t comm_;
  DeviceMemory staging_;
  std::vector<Message> messages_;
  std::unique_ptr<CopyList> pack_;
  std::unique_ptr<CopyList> unpack_;
};

RunnerPtr make(const GpuCase& problem) {
  if (all_local(problem)) return nullptr;  // nothing for NCCL to do
  return unless_left_out(problem, "nccl",
                         [&] { return std::make_unique<NcclRunner>(problem, communicator(problem.context)); });
}

const RegisterPeer kPeer(gpu_peer("nccl", make));
const RegisterPeer kGraph(gpu_peer(std::string("nccl") + kReplayed, [](const GpuCase& problem) {
  return unless_left_out(problem, std::string("nccl") + kReplayed, [&] { return replayed(problem, make(problem)); });
}));

}  // namespace

std::string nccl_version() {
  const Nccl& nccl = Nccl::get();
  if (!nccl.why_not.empty()) return nccl.why_not;
  int number = 0;
  nccl.check(nccl.version(&number), "ncclGetVersion");
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

#else

namespace {

const RegisterPeer kPeer(gpu_peer("nccl", [](const GpuCase& problem) {
  return unless_left_out(problem, "nccl", []() -> RunnerPtr { throw tasuki::Error(nccl_version()); });
}));

}  // namespace

std::string nccl_version() {
  return "built without nccl.h";
}

#endif

}  // namespace bench
