// The process's GPUs. CUDA is initialised at the first call that needs a GPU.
#include "memory/gpu.hpp"

#include <dlfcn.h>

#include "tasuki/error.hpp"
#include "tasuki/graph.hpp"

namespace tasuki {

namespace {

GpuSupport::Make& maker() {
  static GpuSupport::Make make = nullptr;
  return make;
}

struct Found {
  Gpu* gpu = nullptr;
  std::string why_not = "this build of Tasuki has no CUDA; build it where nvcc is, with TASUKI_CUDA=ON";
  Found() {
    if (maker() != nullptr) gpu = maker()(why_not);
  }
};

const Found& found() {
  static const Found all;
  return all;
}

}  // namespace

GpuSupport::GpuSupport(Make make) {
  maker() = make;
}

Gpu* gpu() {
  return found().gpu;
}

Memory memory_of(const void* p) {
  if (maker() == nullptr) return Memory::host;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return Memory::host;
  dlclose(driver);
  return gpu() != nullptr ? gpu()->where(p) : Memory::host;
}

std::string why_no_gpu() {
  return gpu() != nullptr ? std::string() : found().why_not;
}

Fork::Fork() {
  if (gpu() == nullptr) throw Error("Fork: this process cannot use a GPU: " + why_no_gpu());
  parts_ = gpu()->fork();
}

Stream Fork::branch(Stream from) {
  return parts_->branch(from);
}

void Fork::join(Stream into) {
  parts_->join(into);
}

Graph::Graph(Stream stream, const std::function<void()>& enqueue) {
  if (gpu() == nullptr) throw Error("Graph: this process cannot use a GPU: " + why_no_gpu());
  constexpr std::uintptr_t kLegacy = 1;  // the value of cudaStreamLegacy
  if (reinterpret_cast<std::uintptr_t>(stream) <= kLegacy) {
    throw Error("Graph: argument 'stream' is the default stream, which CUDA cannot capture; make a stream of your own");
  }
  if (gpu()->capturing(stream)) {
    throw Error(
        "Graph: argument 'stream' is being captured already; end that capture first, or enqueue the work in it");
  }
  captured_ = gpu()->capture(stream, enqueue);
}

void Graph::launch(Stream stream) const {
  captured_->launch(stream);
}

}  // namespace tasuki
