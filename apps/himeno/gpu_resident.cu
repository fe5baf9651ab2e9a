// The Himeno benchmark on GPUs as one kernel for all iterations, which exchanges by itself: no launch an iteration, and
// nothing for the host to do. A block has the same tiles in every iteration. If the coefficients of all of them fit in
// its shared memory, it keeps them there: they are loaded from their arrays once, not in every iteration. Else the
// memory serves better as a cache of the pressure. Compiled without contraction, as all stencils here.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/gpu.hpp"
#include "common/resident.cuh"
#include "himeno/gpu_kernel.hpp"
#include "himeno/gpu_tiles.cuh"
#include "himeno/solver.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/kernel.hpp"

namespace himeno {
namespace {

namespace device = tasuki::device;

struct Steps : apps::ResidentSteps<float> {
  int kept;  // tiles of a block, if their coefficients are in shared memory
};

// A thread's coefficients of the tiles that are kept, in shared memory.
template <int V>
struct Kept {
  Group<V>* memory;  // of a tile each array after the other, of an array each thread
  int tile;
  __device__ Group<V>& at(int array) const {
    return memory[(tile * static_cast<int>(kArrays.size()) + array) * kThreads + static_cast<int>(threadIdx.x)];
  }
  __device__ Group<V> operator()(int array, std::int64_t) const { return at(array); }
};

template <int V, bool kKept>
__global__ void __launch_bounds__(kThreads, 2)
    iterate(const __grid_constant__ device::Handle halo, const __grid_constant__ Launch l,
            const __grid_constant__ Steps steps) {
  extern __shared__ float4 kept[];
  auto* const memory = reinterpret_cast<Group<V>*>(kept);
  if constexpr (kKept) {
    int turn = 0;
    for (const bool sides : {true, false})
      apps::each_tile(steps, sides, turn, [&](std::uint32_t tile, int mine) {
        const Place place = place_in<V>(l, tile);
        if (!place.is) return;
        for (int a = 0; a < static_cast<int>(kArrays.size()); ++a)
          Kept<V>{memory, mine}.at(a) = FromArrays<V>{l}(a, place.n);
      });
  }
  double gosa = 0;
  const auto sweep = [&](const float* p, float* next, std::uint32_t tile, int mine) {
    if constexpr (kKept) {
      const Place place = place_in<V>(l, tile);
      if (place.is) gosa += sweep_group<V>(l, p, next, place, Kept<V>{memory, mine});
    } else {
      gosa += sweep_tile<V>(l, p, next, tile);
    }
  };
  if (apps::run_steps(
          halo, steps, [&] { gosa = 0; }, sweep))
    keep_sum(l, gosa);
}

class GpuResident final : public Solver {
 public:
  GpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device), queue_(context, false) {
    std::vector<Region> regions;
    const bool overlaps = options.overlap && !halo_.plan().commands.empty();
    for (const tasuki::Box& box : overlaps ? p_.boundary(1) : std::vector<tasuki::Box>{p_.local_owned()})
      regions.push_back(region(box));
    const std::int64_t sides = cut(regions).tiles;
    if (overlaps) regions.push_back(region(p_.interior(1)));
    cut_ = cut(regions);
    steps_.side_tiles = static_cast<std::uint32_t>(sides);
    steps_.tiles = static_cast<std::uint32_t>(cut_.tiles);
    set_coefficients(cut_.launch, coefficients_);
    group_ = apps::resident_group(kernel(true), kThreads, cut_.tiles);
    steps_.kept = kept();
    double* sums = nullptr;
    TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&sums), static_cast<std::size_t>(group_.blocks) * sizeof(double));
    sums_ = {sums, [](double* p) { cudaFree(p); }};
    cut_.launch.sums = sums;
    const auto cells = p_.bytes() / static_cast<std::int64_t>(sizeof(float));
    for (std::size_t n = 0; n < arrays_.size(); ++n) fill(arrays_[n].data(), cells, kArrays[n].value, queue_.stream());
    queue_.finish();
  }

  void initialise() override {
    p_.swap();  // once between two exchanges, as promised by `alternating`
    const tasuki::Box own = p_.local_owned();
    const Region all{
        {own.lo[0], own.lo[1], own.lo[2]}, {own.hi[0], own.hi[1], own.hi[2]}, p_.strides()[0], p_.strides()[1]};
    fill_initial(all, p_.owned().lo[0], grid_.extent(0), p_.data(), p_.next(), queue_.stream());
    halo_.run(queue_.stream());
    queue_.finish();
    (void)halo_.device(group_);  // if no kernel can start it, an error now rather than in a run
  }

  apps::Timing run(int iterations) override {
    tasuki::ResidentOptions launch;
    launch.stream = queue_.stream();
    launch.shared_bytes = steps_.kept * kept_bytes();
    return apps::run_resident(grid_.context(), p_, halo_, iterations, group_, launch, kernel(steps_.kept > 0),
                              cut_.launch, steps_);
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  using Kernel = void (*)(device::Handle, Launch, Steps);
  Kernel kernel(bool keeps) const {
    if (keeps) return cut_.aligned ? iterate<4, true> : iterate<1, true>;
    return cut_.aligned ? iterate<4, false> : iterate<1, false>;
  }

  // Bytes of a tile's coefficients.
  int kept_bytes() const {
    return static_cast<int>(kArrays.size() * sizeof(float)) * kThreads * (cut_.aligned ? 4 : 1);
  }

  // All, if they fit beside the other blocks of a multiprocessor.
  int kept() const {
    cudaFuncAttributes takes{};
    TASUKI_CUDA(cudaFuncGetAttributes, &takes, reinterpret_cast<const void*>(kernel(true)));
    const int taken =
        static_cast<int>(takes.sharedSizeBytes) + apps::gpu_attribute(cudaDevAttrReservedSharedMemoryPerBlock);
    const int each = apps::gpu_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                     std::max(1, apps::blocks_each(kernel(true), kThreads));
    const int room = std::min(each, apps::gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) - taken;
    const auto blocks = static_cast<std::uint32_t>(group_.blocks);
    const std::uint32_t sides = (steps_.side_tiles + blocks - 1) / blocks;
    const std::uint32_t rest = (steps_.tiles - steps_.side_tiles + blocks - 1) / blocks;
    const auto all = static_cast<int>(sides + rest);
    return std::int64_t{all} * kept_bytes() <= room ? all : 0;
  }

  double local_gosa() const override {
    std::vector<double> sums(static_cast<std::size_t>(group_.blocks));
    TASUKI_CUDA(cudaMemcpy, sums.data(), sums_.get(), sums.size() * sizeof(double), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (const double one : sums) sum += one;
    return sum;
  }

  apps::GpuQueue queue_;
  Cut cut_;
  Steps steps_{};
  tasuki::KernelGroup group_;
  std::shared_ptr<double> sums_;
};

}  // namespace

std::unique_ptr<apps::Solver> make_gpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuResident>(context, options);
}

}  // namespace himeno
