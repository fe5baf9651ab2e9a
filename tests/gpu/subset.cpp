// Subsets on GPUs: each rank keeps the GPU that it has in its context, whichever of the two is asked for it first, and
// exchanges in its subset alone.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "common.hpp"
#include "session/deferred_release.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

double value(std::int64_t cell, int epoch, int salt) {
  return static_cast<double>(cell) + 1000.0 * epoch + 1e5 * salt;
}

// A periodic ring of odd size with a shadow of 2, with other data each time.
void check_ring(const Context& ctx, int salt) {
  constexpr std::int64_t kCells = 1027;
  const Grid grid(ctx, {kCells}, {.periodic = {true}});
  Field<double> u(grid, {.name = "u", .shadow = 2, .memory = Memory::device});
  Halo halo{HaloField(u)};
  CHECK(verify(halo).ok());
  const Box owned = grid.owned();
  const std::int64_t inside = owned.hi[0] - owned.lo[0];
  std::vector<double> cells(static_cast<std::size_t>(inside + 4));
  const OwnStream stream;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::ranges::fill(cells, -1.0);
    for (std::int64_t i = 0; i < inside; ++i)
      cells[static_cast<std::size_t>(i + 2)] = value(owned.lo[0] + i, epoch, salt);
    CUDA_OK(cudaMemcpy(u.data(), cells.data(), cells.size() * sizeof(double), cudaMemcpyHostToDevice));
    halo.run(stream.get());
    synchronize(ctx, stream.get());
    CUDA_OK(cudaMemcpy(cells.data(), u.data(), cells.size() * sizeof(double), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (std::int64_t i = -2; i < inside + 2; ++i)
      wrong +=
          cells[static_cast<std::size_t>(i + 2)] == value((owned.lo[0] + i + kCells) % kCells, epoch, salt) ? 0 : 1;
    CHECK(wrong == 0);
  }
  ctx.barrier();
}

}  // namespace

RANK_TEST("a subset uses the GPUs of its context, in another order of ranks and on half of them") {
  const int gpu = use_gpu(ctx);
  std::vector<int> all;
  for (int rank = ctx.size(); rank-- > 0;) all.push_back(rank);
  std::vector<int> half;
  for (const int rank : all)
    if (rank % 2 == ctx.rank() % 2) half.push_back(rank);
  int salt = 0;
  for (const auto& ranks : {all, half, std::vector<int>{ctx.rank()}}) {
    const Context part = ctx.subset(ranks);
    CHECK(use_gpu(part) == gpu);
    CHECK(current_gpu() == gpu);
    check_ring(part, ++salt);
    CHECK(use_gpu(part.subset({part.rank()})) == gpu);
  }
  check_ring(ctx, ++salt);
}

RANK_TEST("a subset that is asked for its GPUs first takes those that its context will have") {
  std::vector<int> half;
  for (int rank = 0; rank < ctx.size(); ++rank)
    if (rank % 2 == ctx.rank() % 2) half.push_back(rank);
  const Context part = ctx.subset(half);
  const int gpu = use_gpu(part);
  check_ring(part, 7);
  CHECK(use_gpu(ctx) == gpu);
  check_ring(ctx, 8);
}

RANK_TEST("a subset over NCCL that this rank has released keeps no rank that has other things to do") {
  int gpus = 0;
  CUDA_OK(cudaGetDeviceCount(&gpus));
  if (ctx.size() == 1 || ctx.comm() == MPI_COMM_NULL || gpus < ctx.size()) return;
  use_gpu(ctx);
  std::vector<int> all;
  for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rank);
  const bool last = ctx.rank() == ctx.size() - 1;
  for (int turn = 0; turn < 3; ++turn) {
    std::optional<Context> part(ctx.subset(all));
    {
      const Grid grid(*part, {64 * ctx.size()}, {.periodic = {true}});
      const Field<double> u(grid, {.name = "u", .memory = Memory::device});
      HaloOptions options;
      options.path = "nccl";
      Halo halo{HaloField(u), options};
      const OwnStream stream;
      halo.run(stream.get());
      synchronize(*part, stream.get());
    }
    if (last) part.reset();  // the others have not, so that it is destroyed later
    MPI_Barrier(ctx.comm());
    part.reset();
    // The others destroy it while the last rank waits for them in MPI. NCCL's own communicator is destroyed together.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!last && deferred_releases() > 0 && std::chrono::steady_clock::now() < end) collect_released_with_gpus();
    if (!last) CHECK(deferred_releases() == 0);
    MPI_Barrier(ctx.comm());
    collect_released_with_gpus();
  }
}
