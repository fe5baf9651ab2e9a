// Gpu, implemented with the CUDA runtime.
#include "memory/gpu.hpp"

#include <cuda.h>

#include <cstring>
#include <mutex>
#include <set>
#include <type_traits>
#include <utility>

#include "memory/query.cuh"
#include "tasuki/cuda.cuh"

namespace tasuki {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(GpuHandle));

class CudaFork final : public GpuFork {
 public:
  CudaFork() {
    int least = 0;
    int greatest = 0;
    TASUKI_CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
    TASUKI_CUDA(cudaStreamCreateWithPriority, &stream_, cudaStreamNonBlocking, greatest);
    TASUKI_CUDA(cudaEventCreateWithFlags, &begin_, cudaEventDisableTiming);
    TASUKI_CUDA(cudaEventCreateWithFlags, &end_, cudaEventDisableTiming);
  }
  ~CudaFork() override {
    cudaEventDestroy(end_);
    cudaEventDestroy(begin_);
    cudaStreamDestroy(stream_);
  }
  CudaFork(const CudaFork&) = delete;
  CudaFork& operator=(const CudaFork&) = delete;

  Stream branch(Stream from) override {
    TASUKI_CUDA(cudaEventRecord, begin_, from);
    TASUKI_CUDA(cudaStreamWaitEvent, stream_, begin_, 0);
    return stream_;
  }
  void join(Stream into) override {
    TASUKI_CUDA(cudaEventRecord, end_, stream_);
    TASUKI_CUDA(cudaStreamWaitEvent, into, end_, 0);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

class CudaGraph final : public GpuGraph {
 public:
  CudaGraph(Stream stream, const std::function<void()>& enqueue) {
    const Captured captured = capture(stream, enqueue);
    cudaGraphExec_t ready = nullptr;
    // A captured graph does not keep the priority of a fork's branch unless it is told to.
    TASUKI_CUDA(cudaGraphInstantiate, &ready, captured.get(), cudaGraphInstantiateFlagUseNodePriority);
    ready_.reset(ready);
    TASUKI_CUDA(cudaGraphUpload, ready, stream);
  }

  void launch(Stream stream) override { TASUKI_CUDA(cudaGraphLaunch, ready_.get(), stream); }

 private:
  struct Destroy {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }  // CUDA waits for running replays
  };
  using Captured = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy>;
  using Ready = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;

  static Captured capture(Stream stream, const std::function<void()>& enqueue) {
    TASUKI_CUDA(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      cudaGetLastError();  // clears the error, which the next call would report otherwise
      const Captured dropped(graph);
      throw;
    }
    const cudaError_t code = cudaStreamEndCapture(stream, &graph);
    Captured captured(graph);
    if (code == cudaSuccess) return captured;
    cudaGetLastError();
    throw Error(
        ErrorKind::system,
        std::string("Graph: what was enqueued could not be captured: ") + cudaGetErrorString(code) + " (" +
            cudaGetErrorName(code) +
            "); calls that wait, allocate device memory or load kernels must be made before, and every branch must "
            "join the stream again");
  }

  Ready ready_;
};

class Cuda final : public Gpu {
 public:
  explicit Cuda(int count) : count_(count) {
    // Looked up at run time and not linked, so that programs start on machines without a driver.
    cudaDriverEntryPointQueryResult found{};
    TASUKI_CUDA(cudaGetDriverEntryPointByVersion, "cuMemGetAddressRange", reinterpret_cast<void**>(&address_range_),
                12000, cudaEnableDefault, &found);
    TASUKI_CUDA(cudaGetDriverEntryPointByVersion, "cuPointerGetAttribute", reinterpret_cast<void**>(&attribute_), 12000,
                cudaEnableDefault, &found);
    TASUKI_CUDA(cudaGetDriverEntryPointByVersion, "cuDevicePrimaryCtxGetState", reinterpret_cast<void**>(&state_),
                12000, cudaEnableDefault, &found);
  }

  int count() const override { return count_; }
  int current() const override {
    int ordinal = 0;
    TASUKI_CUDA(cudaGetDevice, &ordinal);
    return ordinal;
  }
  void select(int ordinal) override { TASUKI_CUDA(cudaSetDevice, ordinal); }

  std::string name(int ordinal) const override {
    cudaDeviceProp properties{};
    TASUKI_CUDA(cudaGetDeviceProperties, &properties, ordinal);
    std::string id;
    for (int i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
      id += {"0123456789abcdef"[byte / 16], "0123456789abcdef"[byte % 16]};
    }
    return std::string(properties.name) + " (" + id + ")";
  }
  bool adds_to(int ordinal, const std::string& other) const override {
    for (int peer = 0; peer < count_; ++peer) {
      if (name(peer) != other) continue;
      int yes = peer == ordinal ? 1 : 0;
      if (yes == 0) TASUKI_CUDA(cudaDeviceGetP2PAttribute, &yes, cudaDevP2PAttrNativeAtomicSupported, ordinal, peer);
      return yes != 0;
    }
    return false;
  }
  int processors(int ordinal) const override {
    int number = 0;
    TASUKI_CUDA(cudaDeviceGetAttribute, &number, cudaDevAttrMultiProcessorCount, ordinal);
    return number;
  }

  Memory where(const void* p) const override {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, p) != cudaSuccess) {
      cudaGetLastError();
      return Memory::host;
    }
    return attributes.type == cudaMemoryTypeDevice ? Memory::device : Memory::host;
  }

  std::byte* allocate(std::int64_t bytes) override {
    void* p = nullptr;
    if (cudaMalloc(&p, static_cast<std::size_t>(bytes)) != cudaSuccess) {
      cudaGetLastError();
      std::size_t free = 0;
      std::size_t total = 0;
      cudaMemGetInfo(&free, &total);
      throw Error(ErrorKind::system, "cudaMalloc of " + std::to_string(bytes) + " bytes on GPU " +
                                         std::to_string(current()) + " failed: " + std::to_string(free) + " of " +
                                         std::to_string(total) + " bytes are free");
    }
    TASUKI_CUDA(cudaMemset, p, 0, static_cast<std::size_t>(bytes));
    TASUKI_CUDA(cudaStreamSynchronize, nullptr);
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* p) noexcept override { cudaFree(p); }

  std::byte* allocate_mapped(std::int64_t bytes) override {
    void* p = nullptr;
    TASUKI_CUDA(cudaHostAlloc, &p, static_cast<std::size_t>(bytes), cudaHostAllocPortable | cudaHostAllocMapped);
    std::memset(p, 0, static_cast<std::size_t>(bytes));
    return static_cast<std::byte*>(p);
  }
  void release_mapped(std::byte* p) noexcept override { cudaFreeHost(p); }

  void copy(void* dst, const void* src, std::int64_t bytes) override {
    TASUKI_CUDA(cudaMemcpy, dst, src, static_cast<std::size_t>(bytes), cudaMemcpyDefault);
    TASUKI_CUDA(cudaStreamSynchronize, nullptr);
  }

  std::string share(const void* p, GpuHandle& handle, std::int64_t& offset) override {
    CUdeviceptr base = 0;
    std::size_t size = 0;
    const auto at = reinterpret_cast<CUdeviceptr>(p);
    if (address_range_(&base, &size, at) != CUDA_SUCCESS) return "the driver does not know the pointer";
    // Memory of pools and of virtual memory management has no such handle; the call fails for it.
    int legacy = 0;
    if (attribute_(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at) == CUDA_SUCCESS && legacy == 0) {
      return "it was not allocated by cudaMalloc (memory pools and virtual memory have no IPC handle)";
    }
    cudaIpcMemHandle_t ipc{};
    const cudaError_t code = cudaIpcGetMemHandle(&ipc, reinterpret_cast<void*>(base));
    if (code != cudaSuccess) {
      cudaGetLastError();
      return std::string("cudaIpcGetMemHandle refused it: ") + cudaGetErrorString(code);
    }
    std::memcpy(handle.bytes.data(), &ipc, sizeof ipc);
    offset = static_cast<std::int64_t>(at - base);
    return {};
  }

  std::byte* open(const GpuHandle& handle) override {
    cudaIpcMemHandle_t ipc{};
    std::memcpy(&ipc, handle.bytes.data(), sizeof ipc);
    void* base = nullptr;
    TASUKI_CUDA(cudaIpcOpenMemHandle, &base, ipc, cudaIpcMemLazyEnablePeerAccess);
    return static_cast<std::byte*>(base);
  }
  void close(std::byte* base) noexcept override { cudaIpcCloseMemHandle(base); }
  void reach(const void* p) override {
    cudaPointerAttributes attributes{};
    TASUKI_CUDA(cudaPointerGetAttributes, &attributes, p);
    const std::pair way{current(), attributes.device};
    const std::lock_guard lock(reaching_);
    if (way.first == way.second || reached_.contains(way)) return;
    const cudaError_t code = cudaDeviceEnablePeerAccess(attributes.device, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // another caller has enabled it already; clears the error, which the next call would report
                           // otherwise
    } else {
      check_cuda(code, "cudaDeviceEnablePeerAccess");
    }
    reached_.insert(way);
  }

  bool done(Stream stream) override {
    if (stream == nullptr && !in_use(current())) return true;
    return has_ended(cudaStreamQuery(stream), "cudaStreamQuery");
  }
  bool capturing(Stream stream) override {
    cudaStreamCaptureStatus status{};
    TASUKI_CUDA(cudaStreamIsCapturing, stream, &status);
    return status != cudaStreamCaptureStatusNone;
  }
  int device_of(Stream stream) override {
    int ordinal = current();
    if (stream != nullptr) TASUKI_CUDA(cudaStreamGetDevice, stream, &ordinal);
    return ordinal;
  }
  std::shared_ptr<GpuFork> fork() override { return std::make_shared<CudaFork>(); }
  std::shared_ptr<GpuGraph> capture(Stream stream, const std::function<void()>& enqueue) override {
    return std::make_shared<CudaGraph>(stream, enqueue);
  }

 private:
  // Whether this process has used the device, so that there is something that its default stream may have.
  bool in_use(int ordinal) const {
    unsigned flags = 0;
    int active = 0;
    return state_(ordinal, &flags, &active) != CUDA_SUCCESS || active != 0;
  }

  int count_;
  decltype(&cuMemGetAddressRange) address_range_ = nullptr;
  decltype(&cuPointerGetAttribute) attribute_ = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) state_ = nullptr;
  std::mutex reaching_;
  std::set<std::pair<int, int>> reached_;  // (device, other device) pairs that have been enabled
};

const GpuSupport support{[](std::string& why_not) -> Gpu* {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    cudaGetLastError();
    why_not = code != cudaSuccess ? std::string("CUDA finds no usable GPU: ") + cudaGetErrorString(code)
                                  : "CUDA finds no GPU; look at CUDA_VISIBLE_DEVICES";
    return nullptr;
  }
  static Cuda cuda(count);
  return &cuda;
}};

}  // namespace
}  // namespace tasuki
