// The process's GPUs. CUDA is initialised at the first call that needs a GPU.
#include "memory/gpu.hpp"

#include <link.h>

#include <atomic>
#include <string_view>

#include "memory/gpu_driver.hpp"
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

// A look through the libraries that the process has loaded. It ends at the first one if none was loaded since the last
// look.
struct Look {
  unsigned long long before;      // libraries loaded so far at the last look, which did not find the driver
  unsigned long long loaded = 0;  // and at this one
  bool driver = false;
};

int look_at(dl_phdr_info* library, std::size_t, void* to) {
  Look& look = *static_cast<Look*>(to);
  look.loaded = library->dlpi_adds;
  if (look.loaded == look.before) return 1;
  const std::string_view path = library->dlpi_name;
  look.driver = path.substr(path.rfind('/') + 1).starts_with("libcuda.so");
  return look.driver ? 1 : 0;
}

// Libraries loaded so far at the last look, which did not find the driver.
std::atomic<unsigned long long> seen = 0;

// Whether the process has loaded the CUDA driver. This is asked for every argument of every operation, so most answers
// must take no time: `dlopen` with RTLD_NOLOAD searches the file system, which takes 26 us or more.
bool driver_is_loaded() {
  static std::atomic<bool> yes = false;
  if (yes.load(std::memory_order_relaxed)) return true;
  Look look{seen.load(std::memory_order_relaxed)};
  dl_iterate_phdr(look_at, &look);
  if (look.driver) {
    yes.store(true, std::memory_order_relaxed);
  } else {
    seen.store(look.loaded, std::memory_order_relaxed);
  }
  return look.driver;
}

}  // namespace

GpuSupport::GpuSupport(Make make) {
  maker() = make;
}

Gpu* gpu() {
  return found().gpu;
}

Gpu* used_gpu() {
  return maker() == nullptr || !driver_is_loaded() ? nullptr : gpu();
}

void look_for_driver() {
  if (maker() != nullptr) (void)driver_is_loaded();
}

unsigned long long libraries_seen() {
  return seen.load(std::memory_order_relaxed);
}

Memory memory_of(const void* p) {
  Gpu* const used = used_gpu();
  return used != nullptr ? used->where(p) : Memory::host;
}

std::string why_no_gpu() {
  return gpu() != nullptr ? std::string() : found().why_not;
}

Fork::Fork() {
  if (gpu() == nullptr) throw Error(ErrorKind::not_possible, "Fork: this process cannot use a GPU: " + why_no_gpu());
  parts_ = gpu()->fork();
}

Stream Fork::branch(Stream from) {
  return parts_->branch(from);
}

void Fork::join(Stream into) {
  parts_->join(into);
}

Graph::Graph(Stream stream, const std::function<void()>& enqueue) {
  if (gpu() == nullptr) throw Error(ErrorKind::not_possible, "Graph: this process cannot use a GPU: " + why_no_gpu());
  constexpr std::uintptr_t kLegacy = 1;  // the value of cudaStreamLegacy
  if (reinterpret_cast<std::uintptr_t>(stream) <= kLegacy) {
    throw Error("Graph: argument 'stream' is the default stream, which CUDA cannot capture; make a stream of your own");
  }
  if (gpu()->capturing(stream)) {
    throw Error(
        "Graph: argument 'stream' is being captured already; end that capture first, or enqueue the work in it");
  }
  if (const int its = gpu()->device_of(stream), current = gpu()->current(); its != current) {
    throw Error("Graph: argument 'stream' belongs to GPU " + std::to_string(its) + ", but GPU " +
                std::to_string(current) + " is current; make that of the stream current (cudaSetDevice)");
  }
  captured_ = gpu()->capture(stream, enqueue);
}

void Graph::launch(Stream stream) const {
  captured_->launch(stream);
}

}  // namespace tasuki
