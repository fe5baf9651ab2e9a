// NCCL's collectives as peers of the groups gpu-collectives and gpu-overlap, in a stream and in a graph: on memory of
// cudaMalloc, and on symmetric memory, which NCCL allocates and has a window of.
#include <memory>

#include "gpu/collectives.hpp"
#include "gpu/device_memory.cuh"
#include "gpu/problem.hpp"
#include "transports/nccl.hpp"

namespace bench {
namespace {

#ifdef TASUKI_NCCL

using tasuki::CollectiveKind;
using tasuki::Nccl;

// What the transport has no need of.
struct Functions {
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclMemAlloc) allocate = nullptr;
  decltype(&ncclMemFree) release = nullptr;
  std::string why_not;
#ifdef NCCL_WIN_COLL_SYMMETRIC
  decltype(&ncclCommWindowRegister) add_window = nullptr;
  decltype(&ncclCommWindowDeregister) remove_window = nullptr;
  std::string why_no_windows;
#endif

  static const Functions& get() {
    static const Functions functions;
    return functions;
  }

 private:
  Functions() {
    tasuki::DynamicLibrary library("NCCL", "libnccl.so.2");
    library.find(broadcast, "ncclBroadcast");
    library.find(reduce, "ncclReduce");
    library.find(all_reduce, "ncclAllReduce");
    library.find(all_gather, "ncclAllGather");
    library.find(reduce_scatter, "ncclReduceScatter");
    library.find(allocate, "ncclMemAlloc");
    library.find(release, "ncclMemFree");
    why_not = library.why_not();
#ifdef NCCL_WIN_COLL_SYMMETRIC
    tasuki::DynamicLibrary newer("NCCL", "libnccl.so.2");
    newer.find(add_window, "ncclCommWindowRegister");
    newer.find(remove_window, "ncclCommWindowDeregister");
    why_no_windows = newer.why_not();
#endif
  }
};

// Memory for one side, with a window of all ranks if it is symmetric. Collective.
class Side {
 public:
  Side(ncclComm_t comm, std::int64_t floats, bool symmetric) : comm_(comm) {
    const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
    if (!symmetric) {
      plain_ = device_memory(bytes);
      at_ = plain_.get();
      return;
    }
#ifdef NCCL_WIN_COLL_SYMMETRIC
    const Functions& f = Functions::get();
    if (!f.why_no_windows.empty()) throw tasuki::Error(f.why_no_windows);
    Nccl::get().check(f.allocate(&at_, bytes), "ncclMemAlloc");
    Nccl::get().check(f.add_window(comm, at_, bytes, &window_, NCCL_WIN_COLL_SYMMETRIC), "ncclCommWindowRegister");
#else
    throw tasuki::Error("built with an nccl.h that knows no windows");
#endif
  }
  ~Side() {
#ifdef NCCL_WIN_COLL_SYMMETRIC
    if (window_ != nullptr) Functions::get().remove_window(comm_, window_);
    if (!plain_ && at_ != nullptr) Functions::get().release(at_);
#endif
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  float* floats() const {
    return static_cast<float*>(at_);
  }

 private:
  ncclComm_t comm_;
  DeviceMemory plain_;
  void* at_ = nullptr;
#ifdef NCCL_WIN_COLL_SYMMETRIC
  ncclWindow_t window_ = nullptr;
#endif
};

class NcclCollective : public Runner {
 public:
  NcclCollective(const GpuCollectiveCase& c, ncclComm_t comm, bool symmetric)
      : case_(c), stream_(c.stream()), comm_(comm), in_(comm, c.gives(), symmetric), out_(comm, c.gets(), symmetric) {}
  float* in() const { return in_.floats(); }
  float* out() const { return out_.floats(); }
  void start() override {
    const Functions& f = Functions::get();
    const auto whole = static_cast<std::size_t>(case_.count);
    const auto block = static_cast<std::size_t>(case_.block());
    const auto s = static_cast<cudaStream_t>(stream_);
    ncclResult_t code = ncclSuccess;
    switch (case_.kind) {
      case CollectiveKind::broadcast:
        code = f.broadcast(in(), in(), whole, ncclFloat, 0, comm_, s);
        break;
      case CollectiveKind::reduce:
        code = f.reduce(in(), out(), whole, ncclFloat, ncclSum, 0, comm_, s);
        break;
      case CollectiveKind::allreduce:
        code = f.all_reduce(in(), out(), whole, ncclFloat, ncclSum, comm_, s);
        break;
      case CollectiveKind::allgather:
        code = f.all_gather(in(), out(), block, ncclFloat, comm_, s);
        break;
      case CollectiveKind::reduce_scatter:
        code = f.reduce_scatter(in(), out(), block, ncclFloat, ncclSum, comm_, s);
        break;
      default:
        code = exchange(block, s);
        break;
    }
    Nccl::get().check(code, "a collective of NCCL");
  }
  void finish() override { finish_stream(case_.context, stream_); }

 private:
  // Every version has these; newer ones recognise an all-to-all in them.
  ncclResult_t exchange(std::size_t block, cudaStream_t s) const {
    const Nccl& nccl = Nccl::get();
    nccl.check(nccl.group_start(), "ncclGroupStart");
    for (int peer = 0; peer < case_.context.size(); ++peer) {
      const std::size_t at = static_cast<std::size_t>(peer) * block;
      nccl.check(nccl.send(in() + at, block, ncclFloat, peer, comm_, s), "ncclSend");
      nccl.check(nccl.recv(out() + at, block, ncclFloat, peer, comm_, s), "ncclRecv");
    }
    return nccl.group_end();
  }

  GpuCollectiveCase case_;
  tasuki::Stream stream_;
  ncclComm_t comm_;
  Side in_;
  Side out_;
};

GpuCollectiveRun make(const GpuCollectiveCase& c, const std::string& name, bool symmetric) {
  return unless_left_out(c, name, [&] {
    ncclComm_t comm = nccl_communicator(c.context);
    if (const std::string& why = Functions::get().why_not; !why.empty()) throw tasuki::Error(why);
    auto runner = std::make_unique<NcclCollective>(c, comm, symmetric);
    GpuCollectiveRun run{nullptr, runner->in(), runner->out()};
    run.runner = std::move(runner);
    return run;
  });
}

Peer peer_of(const std::string& name, bool symmetric, bool graph) {
  return gpu_collective_peer(graph ? name + kReplayed : name, [=](const GpuCollectiveCase& c) {
    GpuCollectiveRun run = make(c, name, symmetric);
    return graph ? replayed(c, std::move(run)) : std::move(run);
  });
}

const RegisterPeer kPlain(peer_of("nccl", false, false));
const RegisterPeer kPlainGraph(peer_of("nccl", false, true));
const RegisterPeer kSymmetric(peer_of("nccl symmetric", true, false));
const RegisterPeer kSymmetricGraph(peer_of("nccl symmetric", true, true));

#endif

}  // namespace
}  // namespace bench
