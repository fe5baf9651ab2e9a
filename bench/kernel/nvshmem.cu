// Peer of tasuki-bench-kernel: NVSHMEM's calls in kernels, put with signal and barrier. They need its static library of
// device code, for which this file is linked on the device, and no other.
#include <mpi.h>

#include "peers.hpp"

#ifdef BENCH_NVSHMEM_DEVICE
#include <nvshmem.h>
#include <nvshmemx.h>

#include <exception>

#include "tasuki/cuda.cuh"
#endif

namespace peers {

#ifdef BENCH_NVSHMEM_DEVICE

namespace {

using Byte = unsigned char;

struct Memory {
  Byte* window;            // of every rank
  const Byte* from;        // that is sent
  std::uint64_t* signals;  // by block
};

__global__ void puts(Memory memory, Launch launch, int me, int other) {
  const Word share = launch.bytes / gridDim.x;
  const Word at = share * blockIdx.x;
  std::uint64_t* const signal = memory.signals + blockIdx.x;
  const auto put = [&](Word number) {
    nvshmemx_putmem_signal_block(memory.window + at, memory.from + at, share, signal, number, NVSHMEM_SIGNAL_SET,
                                 other);
  };
  Word begin = 0;
  for (Word i = 0; i < launch.rounds; ++i) {
    if (i == launch.warm_up) begin = now_ns();
    const Word number = launch.first + i;
    if (me == 0) put(number);
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, number);
    __syncthreads();
    if (me != 0) put(number);
  }
  if (threadIdx.x == 0) launch.times[blockIdx.x] = now_ns() - begin;
}

__global__ void barriers(Launch launch) {
  Word begin = 0;
  for (Word i = 0; i < launch.rounds; ++i) {
    if (i == launch.warm_up) begin = now_ns();
    nvshmemx_barrier_all_block();
  }
  if (threadIdx.x == 0) launch.times[0] = now_ns() - begin;
}

class NvshmemPeer : public Peer {
 public:
  NvshmemPeer(int me, int ranks, const Memory& memory) : me_(me), ranks_(ranks), memory_(memory) {}
  ~NvshmemPeer() override {
    if (std::uncaught_exceptions() == 0)
      nvshmem_finalize();  // collective: not after an error, of which others know nothing
  }
  bool has(Call call) const override { return call != Call::all_to_all; }
  void launch(Call call, const Launch& launch) override {
    if (call == Call::barrier) {
      barriers<<<1, launch.threads, 0, launch.stream>>>(launch);
    } else if (me_ < 2) {
      puts<<<launch.blocks, launch.threads, 0, launch.stream>>>(memory_, launch, me_, ranks_ == 1 ? 0 : 1 - me_);
    }
    TASUKI_CUDA(cudaGetLastError);
    TASUKI_CUDA(cudaStreamSynchronize, launch.stream);
  }

 private:
  int me_;
  int ranks_;
  Memory memory_;
};

}  // namespace

Made nvshmem(const tasuki::Context& context, bool ranks_are_threads, std::size_t most, int blocks) {
  Made made{nullptr, ranks_are_threads ? "ranks are threads" : ""};
  // The library ends the process where ranks share a GPU without the Multi-Process Service.
  if (made.why_not.empty()) made.why_not = why_not_shared(context);
  if (!made.why_not.empty()) return made;
  // Multicast serves only its collectives, and can leave the GPUs of a host unusable. GPUs that reach each other need
  // no transport, nor a thread that polls beside all else.
  setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
  setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
  setenv("NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", "1", 0);
  const auto failed = [&](int code, const char* call) {
    made.why_not = agreed(context, code == 0 ? ""
                                             : std::string(call) + " failed with status " + std::to_string(code) +
                                                   "; NVSHMEM_DEBUG=WARN says more");
    return !made.why_not.empty();
  };
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (failed(context.is_root() ? nvshmemx_get_uniqueid(&id) : 0, "nvshmemx_get_uniqueid")) return made;
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, context.comm());
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  if (failed(nvshmemx_set_attr_uniqueid_args(context.rank(), context.size(), &id, &attributes),
             "nvshmemx_set_attr_uniqueid_args") ||
      failed(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), "nvshmemx_init_attr"))
    return made;
  // Where ranks share a GPU, kernels of all must be able to run at the same time.
  const int status = nvshmemx_init_status();
  if (status != NVSHMEM_STATUS_IS_INITIALIZED && status != NVSHMEM_STATUS_FULL_MPG)
    made.why_not = "nvshmemx_init_status is " + std::to_string(status) +
                   "; ranks that share a GPU need CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, of 100 together";
  made.why_not = agreed(context, made.why_not);
  if (!made.why_not.empty()) return made;
  const std::size_t signals = static_cast<std::size_t>(blocks) * sizeof(std::uint64_t);
  auto* const memory = static_cast<Byte*>(nvshmem_malloc(2 * most + signals));  // never given back: that is collective
  if (failed(memory == nullptr ? 1 : 0, "nvshmem_malloc")) return made;
  TASUKI_CUDA(cudaMemset, memory, 0, 2 * most + signals);
  made.peer =
      std::make_unique<NvshmemPeer>(context.rank(), context.size(),
                                    Memory{memory, memory + most, reinterpret_cast<std::uint64_t*>(memory + 2 * most)});
  context.barrier();
  return made;
}

#else

Made nvshmem(const tasuki::Context&, bool, std::size_t, int) {
  return {nullptr, "built without its headers and its static library (nvshmem.h, libnvshmem_device.a)"};
}

#endif

}  // namespace peers
