// The 5-point stencil on a GPU, a kernel for each step.
#include "laplace/gpu_kernel.hpp"

#include <algorithm>

#include "laplace/gpu_groups.cuh"
#include "laplace/serial.hpp"
#include "tasuki/cuda.cuh"

namespace laplace {
namespace {

template <int V>
__global__ void __launch_bounds__(kThreads)
    sweep_boxes(const __grid_constant__ Launch l, const double* u, double* next) {
  tasuki::wait_for_stream();
  tasuki::let_next_begin();  // the exchange may prepare itself meanwhile
  keep_largest(l, sweep_block<V>(l, u, next, blockIdx.x));
}

// A block for each row.
__global__ void fill_rows(Region region, std::int64_t row, std::int64_t column, std::int64_t rows, double* now,
                          double* next) {
  const std::int64_t i = region.lo[0] + blockIdx.x;
  for (std::int64_t j = region.lo[1] + threadIdx.x; j < region.hi[1]; j += blockDim.x) {
    const double value = initial_value(row + blockIdx.x, column + j - region.lo[1], rows);
    now[i * region.stride + j] = value;
    next[i * region.stride + j] = value;
  }
}

}  // namespace

struct GpuSweep::Parts {
  explicit Parts(const std::vector<Region>& regions) : cut(laplace::cut(regions)) {}
  ~Parts() { cudaFree(cut.launch.changes); }
  Cut cut;
};

GpuSweep::GpuSweep(const std::vector<Region>& regions) {
  auto parts = std::make_shared<Parts>(regions);
  Launch& l = parts->cut.launch;
  if (l.boxes > 0) {
    TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&l.changes), parts->cut.blocks * sizeof(double));
    TASUKI_CUDA(cudaMemset, l.changes, 0, parts->cut.blocks * sizeof(double));
    // Loads the kernels: that must not happen in a capture, nor while another waits for a neighbour.
    cudaFuncAttributes attributes{};
    TASUKI_CUDA(cudaFuncGetAttributes, &attributes, sweep_boxes<2>);
    TASUKI_CUDA(cudaFuncGetAttributes, &attributes, sweep_boxes<1>);
  }
  parts_ = parts;
}

void GpuSweep::enqueue(const double* u, double* next, tasuki::Stream stream) const {
  const Cut& cut = parts_->cut;
  if (cut.launch.boxes == 0) return;
  const auto blocks = static_cast<unsigned>(cut.blocks);
  if (cut.aligned) {
    tasuki::launch_early("launching a sweep", stream, blocks, kThreads, sweep_boxes<2>, cut.launch, u, next);
  } else {
    tasuki::launch_early("launching a sweep", stream, blocks, kThreads, sweep_boxes<1>, cut.launch, u, next);
  }
}

double GpuSweep::change() const {
  std::vector<double> changes(static_cast<std::size_t>(parts_->cut.blocks));
  if (changes.empty()) return 0;
  TASUKI_CUDA(cudaMemcpy, changes.data(), parts_->cut.launch.changes, changes.size() * sizeof(double),
              cudaMemcpyDeviceToHost);
  return *std::max_element(changes.begin(), changes.end());
}

void fill_initial(const Region& region, std::int64_t row, std::int64_t column, std::int64_t rows, double* now,
                  double* next, tasuki::Stream stream) {
  if (apps::is_empty(region)) return;
  fill_rows<<<static_cast<unsigned>(region.hi[0] - region.lo[0]), 256, 0, stream>>>(region, row, column, rows, now,
                                                                                    next);
  TASUKI_CUDA(cudaGetLastError);
}

}  // namespace laplace
