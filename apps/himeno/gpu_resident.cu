// The Himeno benchmark on GPUs as one kernel for all iterations, which exchanges by itself: no launch an iteration, and
// nothing for the host to do. A block has the same tiles in every iteration. If the coefficients of all of them fit in
// its shared memory, it keeps them there: they are loaded from their arrays once, not in every iteration. Else the
// memory serves better as a cache of the pressure. Compiled without contraction, as all stencils here.
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "common/resident.cuh"
#include "himeno/gpu_kernel.hpp"
#include "himeno/gpu_tiles.cuh"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

namespace device = tasuki::device;

using Steps = apps::ResidentSteps<float>;

constexpr int kBlocksEach = 2;  // on a multiprocessor; with more, the registers do not hold what a thread computes from

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

template <int V, bool kKept, bool kExchanges>
__global__ void __launch_bounds__(kThreads, kBlocksEach)
    iterate(const __grid_constant__ device::Handle halo, const __grid_constant__ device::Neighbours neighbours,
            const __grid_constant__ Launch l, const __grid_constant__ Steps steps) {
  extern __shared__ float4 kept[];
  auto* const memory = reinterpret_cast<Group<V>*>(kept);
  if constexpr (kKept) {
    const apps::Share share = steps.shares[blockIdx.x];
    int turn = 0;
    for (const bool sides : {true, false})
      apps::each_tile(share, sides, [&](std::uint32_t tile) {
        const Place place = place_in<V>(l, tile);
        for (int a = 0; place.is && a < static_cast<int>(kArrays.size()); ++a)
          Kept<V>{memory, turn}.at(a) = FromArrays<V>{l}(a, place.n);
        ++turn;
      });
  }
  double gosa = 0;
  const auto sweep = [&](const float* p, float* next, std::uint32_t tile, int turn) {
    if constexpr (kKept) {
      const Place place = place_in<V>(l, tile);
      if (place.is) gosa += sweep_group<V>(l, p, next, place, Kept<V>{memory, turn});
    } else {
      gosa += sweep_tile<V>(l, p, next, tile);
    }
  };
  if (apps::run_steps<kExchanges>(
          halo, neighbours, steps, [&] { gosa = 0; }, sweep))
    keep_sum(l, gosa);
}

class GpuResident final : public Solver {
 public:
  GpuResident(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device),
        queue_(context, false),
        boxes_(apps::step_boxes(p_, halo_, options.overlap)),
        cut_(cut(regions(boxes_.all()))) {
    const apps::Tiling tiling = tiling_of(cut_, cut(regions(boxes_.sides)).tiles);
    halo_ = make_halo(apps::side_cuts(p_, tiling));
    steps_.emplace(p_, tiling, boxes_.exchanges, kernel(true), kThreads);
    keeps_ = steps_->tiles() <= apps::tiles_in_shared(kernel(true), kThreads, kept_bytes());
    if (!keeps_) steps_.emplace(p_, tiling, boxes_.exchanges, kernel(false), kThreads);
    set_coefficients(cut_.launch, coefficients_);
    cut_.launch.sums = steps_->numbers();
    const auto cells = p_.bytes() / static_cast<std::int64_t>(sizeof(float));
    for (std::size_t n = 0; n < arrays_.size(); ++n) fill(arrays_[n].data(), cells, kArrays[n].value, queue_.stream());
    queue_.finish();
  }

  void initialise() override {
    start_on_gpu(queue_.stream());
    halo_.run(queue_.stream());
    queue_.finish();
    steps_->launches().check(halo_);  // an error now rather than in a run
  }

  apps::Timing run(int iterations) override {
    return steps_->launches().run(p_, halo_, iterations, kernel(keeps_), cut_.launch, queue_.stream(),
                                  keeps_ ? steps_->tiles() * kept_bytes() : 0);
  }
  std::optional<apps::Split> split(int) override { return {}; }

 private:
  using Kernel = void (*)(device::Handle, device::Neighbours, Launch, Steps);
  template <bool kExchanges>
  Kernel kernel_that(bool keeps) const {
    if (keeps) return cut_.aligned ? iterate<4, true, kExchanges> : iterate<1, true, kExchanges>;
    return cut_.aligned ? iterate<4, false, kExchanges> : iterate<1, false, kExchanges>;
  }
  Kernel kernel(bool keeps) const { return boxes_.exchanges ? kernel_that<true>(keeps) : kernel_that<false>(keeps); }

  // Bytes of a tile's coefficients.
  int kept_bytes() const {
    return static_cast<int>(kArrays.size() * sizeof(float)) * kThreads * (cut_.aligned ? 4 : 1);
  }

  double local_gosa() const override {
    const std::vector<double> sums = steps_->numbers_on_host();
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  apps::GpuQueue queue_;
  apps::StepBoxes boxes_;
  Cut cut_;
  std::optional<apps::GpuResidentSteps<float>> steps_;
  bool keeps_ = false;  // all coefficients fit in shared memory
};

}  // namespace

std::unique_ptr<apps::Solver> make_gpu_resident(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuResident>(context, options);
}

}  // namespace himeno
