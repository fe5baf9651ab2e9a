// Peer of tasuki-bench-kernel: NCCL's calls in kernels, of version 2.28 on: its barrier of the ranks that load and
// store each other's memory (LSA), and its all-to-all of words that come with their number (LL).
#include <mpi.h>

#include "peers.hpp"

#if __has_include(<nccl_device.h>) && !defined(BENCH_NO_NCCL_DEVICE)
#define BENCH_NCCL_DEVICE
#include <nccl_device.h>

#include "support/dynamic_library.hpp"
#include "tasuki/cuda.cuh"
#endif

namespace peers {

#ifdef BENCH_NCCL_DEVICE

namespace {

constexpr int kMostWords = 64;  // of a rank for each other

struct Nccl {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclDevCommCreate) create = nullptr;
  decltype(&ncclDevCommDestroy) destroy = nullptr;
  decltype(&ncclLLA2ACalcSlots) slots = nullptr;
  decltype(&ncclLLA2ACreateRequirement) require = nullptr;
  decltype(&ncclGetLastError) error = nullptr;
  std::string why_not;

  Nccl() {
    // Multicast serves larger barriers only, and can leave the GPUs of a host unusable.
    setenv("NCCL_NVLS_ENABLE", "0", 1);
#ifdef BENCH_NCCL_LIBRARY  // of the headers' version; there may be another beside it
    tasuki::DynamicLibrary library("NCCL", BENCH_NCCL_LIBRARY, "libnccl.so.2");
#else
    tasuki::DynamicLibrary library("NCCL", "libnccl.so.2");
#endif
    library.find(version, "ncclGetVersion");
    library.find(get_unique_id, "ncclGetUniqueId");
    library.find(init, "ncclCommInitRank");
    library.find(abort, "ncclCommAbort");
    library.find(create, "ncclDevCommCreate");
    library.find(destroy, "ncclDevCommDestroy");
    library.find(slots, "ncclLLA2ACalcSlots");
    library.find(require, "ncclLLA2ACreateRequirement");
    library.find(error, "ncclGetLastError");
    why_not = library.why_not();
    int found = 0;
    // Kernels read structures that the library fills: both must be of one version.
    if (why_not.empty() && version(&found) == ncclSuccess && found != NCCL_VERSION_CODE)
      why_not = "built with the headers of version " + std::to_string(NCCL_VERSION_CODE) + ", but the library has " +
                std::to_string(found);
  }
};

__global__ void barriers(ncclDevComm comm, Launch launch) {
  const ncclCoopCta block;
  ncclLsaBarrierSession<ncclCoopCta> session(block, comm, ncclTeamTagLsa(), 0);
  Word begin = 0;
  for (Word i = 0; i < launch.rounds; ++i) {
    if (i == launch.warm_up) begin = now_ns();
    session.sync(block, cuda::memory_order_acq_rel);
  }
  if (threadIdx.x == 0) launch.times[0] = now_ns() - begin;
}

__global__ void exchanges(ncclDevComm comm, ncclLLA2AHandle handle, Launch launch) {
  const ncclCoopCta block;
  const ncclTeam ranks = ncclTeamLsa(comm);
  const int words = static_cast<int>(launch.bytes / sizeof(Word));
  const int all = ranks.nRanks * words;
  ncclLLA2ASession<ncclCoopCta> session(block, comm, ranks, handle, 0, all);
  Word begin = 0;
  Word sum = 1;
  for (Word i = 0; i < launch.rounds; ++i) {
    if (i == launch.warm_up) begin = now_ns();
    for (int k = static_cast<int>(threadIdx.x); k < all; k += static_cast<int>(blockDim.x))
      session.send(k / words, ranks.rank * words + k % words, sum);
    for (int k = static_cast<int>(threadIdx.x); k < all; k += static_cast<int>(blockDim.x))
      sum += session.recv<Word>(k) % 1000;
    session.endEpoch(block);
  }
  if (threadIdx.x == 0) launch.times[0] = now_ns() - begin + (sum == 0 ? 1 : 0);
}

class NcclPeer : public Peer {
 public:
  NcclPeer(const Nccl& nccl, ncclComm_t comm, ncclDevComm device, ncclLLA2AHandle handle)
      : nccl_(nccl), comm_(comm), device_(device), handle_(handle) {}
  ~NcclPeer() override {
    nccl_.destroy(comm_, &device_);
    nccl_.abort(comm_);
  }
  bool has(Call call) const override { return call != Call::put_with_signal; }
  void launch(Call call, const Launch& launch) override {
    if (call == Call::barrier) {
      barriers<<<1, launch.threads, 0, launch.stream>>>(device_, launch);
    } else {
      exchanges<<<1, launch.threads, 0, launch.stream>>>(device_, handle_, launch);
    }
    TASUKI_CUDA(cudaGetLastError);
    TASUKI_CUDA(cudaStreamSynchronize, launch.stream);
  }

 private:
  const Nccl& nccl_;
  ncclComm_t comm_;
  ncclDevComm device_;
  ncclLLA2AHandle handle_;
};

}  // namespace

Made nccl(const tasuki::Context& context, bool ranks_are_threads, std::size_t, int) {
  Made made{nullptr, ranks_are_threads ? "ranks are threads" : ""};
  static const Nccl nccl;
  if (made.why_not.empty()) made.why_not = agreed(context, nccl.why_not);
  if (!made.why_not.empty()) return made;
  const auto failed = [&](ncclResult_t code, const char* call, ncclComm_t comm) {
    const std::string said = code == ncclSuccess ? "" : nccl.error(comm);
    made.why_not = agreed(context, code == ncclSuccess ? "" : std::string(call) + " failed: " + said);
    return !made.why_not.empty();
  };
  ncclUniqueId id{};
  if (failed(context.is_root() ? nccl.get_unique_id(&id) : ncclSuccess, "ncclGetUniqueId", nullptr)) return made;
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, context.comm());
  ncclComm_t comm = nullptr;
  if (failed(nccl.init(&comm, context.size(), id, context.rank()), "ncclCommInitRank", nullptr)) return made;
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER  // from version 2.29 on
  ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
  ncclDevCommRequirements wanted{};
#endif
  ncclDevResourceRequirements words{};
  ncclLLA2AHandle handle{};
  const int slots = nccl.slots(context.size() * kMostWords, sizeof(Word));
  if (failed(nccl.require(1, slots, &handle, &words), "ncclLLA2ACreateRequirement", comm)) return made;
  wanted.resourceRequirementsList = &words;
  wanted.lsaBarrierCount = 1;
  ncclDevComm device{};
  if (failed(nccl.create(comm, &wanted, &device), "ncclDevCommCreate", comm)) return made;
  if (device.lsaSize != context.size())
    made.why_not = "only " + std::to_string(device.lsaSize) + " of the ranks reach each other's memory";
  made.why_not = agreed(context, made.why_not);
  if (made.why_not.empty()) made.peer = std::make_unique<NcclPeer>(nccl, comm, device, handle);
  return made;
}

#else

Made nccl(const tasuki::Context&, bool, std::size_t, int) {
  return {nullptr, "built without the headers of its calls in kernels (nccl_device.h, version 2.28)"};
}

#endif

}  // namespace peers
