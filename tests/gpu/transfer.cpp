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

// Whether everything about patterns of these blocks is a multiple of 4 bytes; of 48 it could be, but is not.
bool in_words(std::int64_t block) {
  return block % 4 == 0 && block != 48;
}

// A layout of exactly `count` blocks of `block` bytes.
Layout pattern(int kind, std::int64_t count, std::int64_t block, std::mt19937& random) {
  const Layout element = Layout::bytes(block);
  if (kind == 0) return Layout::contiguous(count, element);
  if (kind == 1) {
    const auto gap = static_cast<std::int64_t>(1 + random() % 61);
    return Layout::hvector(count, 1, block + (in_words(block) ? 4 * gap : gap), element);
  }
  if (kind == 2) {
    const std::array<std::int64_t, 3> extents{count + 3, 5, 7};
    const std::array<std::int64_t, 3> counts{count, 1, 1};
    const std::array<std::int64_t, 3> at{1, 2, 3};
    return Layout::subarray(extents, counts, at, element);
  }
  return Layout::hvector(count, 1, 4096, element);
}

}  // namespace

RANK_TEST("transfers between GPUs move every byte and no other, for all patterns and units") {
  use_gpu(ctx);
  std::mt19937 random(5);
  const int last = ctx.size() - 1;
  for (const std::int64_t block : {1, 2, 3, 4, 8, 12, 16, 48, 520}) {
    for (const std::int64_t count : {1, 33, 5000}) {
      for (int kind = 0; kind < 4; ++kind) {
        const Layout from = pattern(kind, count, block, random);
        const Layout to = pattern(static_cast<int>(random() % 4), count, block, random);
        const auto room = static_cast<std::size_t>(std::max(from.true_upper_bound(), to.true_upper_bound()) + 64);
        const std::size_t shift = in_words(block) ? 4 * (random() % 5) : random() % 17;
        void* source = nullptr;
        void* target = nullptr;
        CUDA_OK(cudaMalloc(&source, room));
        CUDA_OK(cudaMalloc(&target, room));
        std::vector<std::byte> sent(room);
        for (auto& byte : sent) byte = static_cast<std::byte>(random());
        const std::vector<std::byte> blank(room, std::byte{0xEE});
        CUDA_OK(cudaMemcpy(source, sent.data(), room, cudaMemcpyHostToDevice));
        for (const auto& path : gpu_paths(ctx)) {
          if (path == "peer:ll" && !in_words(block)) continue;
          CUDA_OK(cudaMemcpy(target, blank.data(), room, cudaMemcpyHostToDevice));
          CUDA_OK(cudaStreamSynchronize(nullptr));
          {
            Transfer transfer(ctx, {0, static_cast<std::byte*>(source) + shift, from},
                              {last, static_cast<std::byte*>(target) + shift, to}, {.path = path});
            CHECK(verify(transfer).ok());
            transfer.run(nullptr);
            synchronize(ctx, nullptr);
          }
          if (ctx.rank() != last) continue;
          std::vector<std::byte> expected = blank;
          std::vector<std::byte> packed(static_cast<std::size_t>(from.size()));
          from.pack(sent.data() + shift, packed.data());
          to.unpack(packed.data(), expected.data() + shift);
          std::vector<std::byte> got(room);
          CUDA_OK(cudaMemcpy(got.data(), target, room, cudaMemcpyDeviceToHost));
          CAPTURE(path);
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

RANK_TEST("transfers there and back keep their order in a stream, without waits on the host, on every path") {
  use_gpu(ctx);
  const int last = ctx.size() - 1;
  constexpr int kEpochs = 12;
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{3} << 20}) {
    const Layout whole = Layout::bytes(static_cast<std::int64_t>(bytes));
    std::array<void*, 3> memory{};
    for (void*& m : memory) CUDA_OK(cudaMalloc(&m, bytes));
    void* kept = nullptr;
    CUDA_OK(cudaMalloc(&kept, bytes * kEpochs));
    for (const auto& path : gpu_paths(ctx)) {
      const OwnStream stream;
      Transfer there(ctx, {0, memory[0], whole}, {last, memory[1], whole}, {.path = path});
      Transfer back(ctx, {last, memory[1], whole}, {0, memory[2], whole}, {.path = path});
      for (int epoch = 0; epoch < kEpochs; ++epoch) {
        if (ctx.is_root()) CUDA_OK(cudaMemsetAsync(memory[0], epoch + 1, bytes, stream.get()));
        there.run(stream.get());
        back.run(stream.get());
        if (!ctx.is_root()) continue;
        CUDA_OK(cudaMemcpyAsync(static_cast<std::byte*>(kept) + static_cast<std::size_t>(epoch) * bytes, memory[2],
                                bytes, cudaMemcpyDeviceToDevice, stream.get()));
      }
      synchronize(ctx, stream.get());
      if (!ctx.is_root()) continue;
      std::vector<unsigned char> got(bytes * kEpochs);
      CUDA_OK(cudaMemcpy(got.data(), kept, got.size(), cudaMemcpyDeviceToHost));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == i / bytes + 1 ? 0 : 1;
      CAPTURE(path);
      CAPTURE(bytes);
      CHECK(wrong == 0);
    }
    ctx.barrier();
    for (void* m : memory) CUDA_OK(cudaFree(m));
    CUDA_OK(cudaFree(kept));
  }
}

RANK_TEST("a transfer of more than 2 GiB, by single numbers too far apart for 32 bits") {
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
