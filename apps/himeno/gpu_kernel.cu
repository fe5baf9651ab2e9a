// The 19-point stencil on a GPU, a launch a step. Compiled without contraction to fused multiply-adds, as the CPU's.
#include "himeno/gpu_kernel.hpp"

#include <algorithm>
#include <string>

#include "himeno/gpu_tiles.cuh"
#include "himeno/serial.hpp"
#include "tasuki/cuda.cuh"

namespace himeno {
namespace {

template <int V>
__global__ void __launch_bounds__(kThreads, 2)
    sweep_boxes(const __grid_constant__ Launch l, const float* p, float* next) {
  tasuki::wait_for_stream();
  tasuki::let_next_begin();  // the exchange may prepare itself meanwhile
  keep_sum(l, sweep_tile<V>(l, p, next, blockIdx.x));
}

__global__ void fill_array(float* array, std::int64_t count, float value) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < count; n += step) array[n] = value;
}

// A block for each row.
__global__ void fill_rows(Region region, std::int64_t first, std::int64_t extent, float* now, float* next) {
  const std::int64_t rows = region.hi[1] - region.lo[1];
  const std::int64_t i = region.lo[0] + blockIdx.x / rows;
  const std::int64_t j = region.lo[1] + blockIdx.x % rows;
  const float value = initial_pressure(first + i - region.lo[0], extent);
  for (std::int64_t k = region.lo[2] + threadIdx.x; k < region.hi[2]; k += blockDim.x) {
    const std::int64_t n = i * region.stride_i + j * region.stride_j + k;
    now[n] = value;
    next[n] = value;
  }
}

}  // namespace

struct GpuSweep::Parts {
  Cut cut;
  ~Parts() { cudaFree(cut.launch.sums); }
};

GpuSweep::GpuSweep(const std::vector<Region>& regions) {
  auto parts = std::make_shared<Parts>();
  parts->cut = cut(regions);
  if (parts->cut.tiles > 0) {
    const auto bytes = static_cast<std::size_t>(parts->cut.tiles) * sizeof(double);
    TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&parts->cut.launch.sums), bytes);
    TASUKI_CUDA(cudaMemset, parts->cut.launch.sums, 0, bytes);
    // Loads the kernels: that must not happen in a capture, nor while another waits for a neighbour.
    cudaFuncAttributes attributes{};
    TASUKI_CUDA(cudaFuncGetAttributes, &attributes, sweep_boxes<4>);
    TASUKI_CUDA(cudaFuncGetAttributes, &attributes, sweep_boxes<1>);
  }
  parts_ = parts;
}

void GpuSweep::enqueue(const Coefficients& coefficients, const float* p, float* next, tasuki::Stream stream) const {
  if (parts_->cut.tiles == 0) return;
  Launch l = parts_->cut.launch;
  set_coefficients(l, coefficients);
  const auto blocks = static_cast<unsigned>(parts_->cut.tiles);
  tasuki::launch_early("launching a sweep", stream, blocks, kThreads,
                       parts_->cut.aligned ? sweep_boxes<4> : sweep_boxes<1>, l, p, next);
}

double GpuSweep::gosa() const {
  std::vector<double> sums(static_cast<std::size_t>(parts_->cut.tiles));
  if (sums.empty()) return 0;
  TASUKI_CUDA(cudaMemcpy, sums.data(), parts_->cut.launch.sums, sums.size() * sizeof(double), cudaMemcpyDeviceToHost);
  double gosa = 0;
  for (const double sum : sums) gosa += sum;
  return gosa;
}

void fill(float* array, std::int64_t count, float value, tasuki::Stream stream) {
  if (count == 0) return;
  const std::int64_t blocks = std::min<std::int64_t>((count + 255) / 256, 4096);
  fill_array<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(array, count, value);
  TASUKI_CUDA(cudaGetLastError);
}

void fill_initial(const Region& region, std::int64_t first, std::int64_t extent, float* now, float* next,
                  tasuki::Stream stream) {
  if (apps::is_empty(region)) return;
  const std::int64_t rows = (region.hi[0] - region.lo[0]) * (region.hi[1] - region.lo[1]);
  fill_rows<<<static_cast<unsigned>(rows), 128, 0, stream>>>(region, first, extent, now, next);
  TASUKI_CUDA(cudaGetLastError);
}

}  // namespace himeno
