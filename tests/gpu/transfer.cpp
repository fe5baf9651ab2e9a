// Transfers between layouts in GPU memory: every pattern against every other, every unit size, sizes across the limits
// of tiles and thread blocks.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "common.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

// A layout of exactly `count` blocks of `block` bytes.
Layout pattern(int kind, std::int64_t count, std::int64_t block, std::mt19937& random) {
  const Layout element = Layout::bytes(block);
  if (kind == 0) return Layout::contiguous(count, element);
  if (kind == 1) return Layout::hvector(count, 1, block + 1 + static_cast<std::int64_t>(random() % 61), element);
  if (kind == 2) {
    const std::array<std::int64_t, 3> extents{count + 3, 5, 7};
    const std::array<std::int64_t, 3> counts{count, 1, 1};
    const std::array<std::int64_t, 3> at{1, 2, 3};
    return Layout::subarray(extents, counts, at, element);
  }
  return Layout::hvector(count, 1, 4096, element);
}

}  // namespace

TEST_CASE("transfers between GPUs move every byte and no other, for all patterns and units") {
  Context ctx(MPI_COMM_WORLD);
  use_gpu(ctx);
  std::mt19937 random(5);
  const int last = ctx.size() - 1;
  for (const std::int64_t block : {1, 2, 3, 4, 8, 12, 16, 48, 520}) {
    for (const std::int64_t count : {1, 33, 5000}) {
      for (int kind = 0; kind < 4; ++kind) {
        const Layout from = pattern(kind, count, block, random);
        const Layout to = pattern(static_cast<int>(random() % 4), count, block, random);
        const auto room = static_cast<std::size_t>(std::max(from.true_upper_bound(), to.true_upper_bound()) + 64);
        const std::size_t shift = random() % 17;
        void* source = nullptr;
        void* target = nullptr;
        CUDA_OK(cudaMalloc(&source, room));
        CUDA_OK(cudaMalloc(&target, room));
        std::vector<std::byte> sent(room);
        for (auto& byte : sent) byte = static_cast<std::byte>(random());
        const std::vector<std::byte> blank(room, std::byte{0xEE});
        CUDA_OK(cudaMemcpy(source, sent.data(), room, cudaMemcpyHostToDevice));
        CUDA_OK(cudaMemcpy(target, blank.data(), room, cudaMemcpyHostToDevice));
        CUDA_OK(cudaStreamSynchronize(nullptr));
        {
          Transfer transfer(ctx, {0, static_cast<std::byte*>(source) + shift, from},
                            {last, static_cast<std::byte*>(target) + shift, to});
          CHECK(verify(transfer).ok());
          transfer.run(nullptr);
          synchronize(ctx, nullptr);
        }
        if (ctx.rank() == last) {
          std::vector<std::byte> expected = blank;
          std::vector<std::byte> packed(static_cast<std::size_t>(from.size()));
          from.pack(sent.data() + shift, packed.data());
          to.unpack(packed.data(), expected.data() + shift);
          std::vector<std::byte> got(room);
          CUDA_OK(cudaMemcpy(got.data(), target, room, cudaMemcpyDeviceToHost));
          CAPTURE(block);
          CAPTURE(count);
          CAPTURE(kind);
          CHECK(got == expected);
        }
        ctx.barrier();
        CUDA_OK(cudaFree(source));
        CUDA_OK(cudaFree(target));
      }
    }
  }
}

TEST_CASE("a transfer of more than 2 GiB, by single numbers too far apart for 32 bits") {
  Context ctx(MPI_COMM_WORLD);
  use_gpu(ctx);
  const int last = ctx.size() - 1;
  const std::int64_t stride = std::int64_t{1} << 20;
  const std::int64_t count = 3000;
  const Layout scattered = Layout::hvector(count, 1, stride, Layout::bytes(8));
  void* source = nullptr;
  void* target = nullptr;
  CUDA_OK(cudaMalloc(&source, static_cast<std::size_t>(count * stride)));
  CUDA_OK(cudaMalloc(&target, static_cast<std::size_t>(count * 8)));
  CUDA_OK(cudaMemset(source, 0, static_cast<std::size_t>(count * stride)));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  CUDA_OK(cudaMemcpy2D(source, static_cast<std::size_t>(stride), numbers.data(), 8, 8, static_cast<std::size_t>(count),
                       cudaMemcpyHostToDevice));
  CUDA_OK(cudaStreamSynchronize(nullptr));
  {
    Transfer transfer(ctx, {0, source, scattered}, {last, target, Layout::bytes(count * 8)});
    transfer.run(nullptr);
    synchronize(ctx, nullptr);
  }
  if (ctx.rank() == last) {
    std::vector<std::int64_t> got(numbers.size());
    CUDA_OK(cudaMemcpy(got.data(), target, got.size() * 8, cudaMemcpyDeviceToHost));
    CHECK(got == numbers);
  }
  ctx.barrier();
  CUDA_OK(cudaFree(source));
  CUDA_OK(cudaFree(target));
}
