// Neighbour collectives in GPU memory: a ring both ways, with blocks of different lengths and with layouts, driven in
// every way, with new data at every start, every plan verified; and what is said about memory of two kinds.
#include "tasuki/neighbours.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common.hpp"
#include "ranks/error_of.hpp"
#include "strided_blocks.hpp"

using namespace tasuki;
using namespace gpu_tests;
using strided_blocks::Strided;

namespace {

constexpr std::int64_t kElement = 4;

class DeviceBytes {
 public:
  explicit DeviceBytes(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    CUDA_OK(cudaMalloc(&memory_, bytes_ + 16));
  }
  ~DeviceBytes() { cudaFree(memory_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(memory_); }
  void put(const std::vector<std::byte>& from) {
    CUDA_OK(cudaMemcpy(memory_, from.data(), from.size(), cudaMemcpyHostToDevice));
    CUDA_OK(cudaStreamSynchronize(nullptr));  // other streams do not wait for the copy
  }
  std::vector<std::byte> take() const {
    std::vector<std::byte> to(bytes_);
    CUDA_OK(cudaMemcpy(to.data(), memory_, bytes_, cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
};

std::int32_t value(int from, int block, std::int64_t i, int turn) {
  return static_cast<std::int32_t>(1000000 * turn + 100000 * from + 50000 * block + i);
}

// Every rank sends block 0 to the rank above and block 1 to the rank below it.
std::int64_t length_of(int from, int block, int round) {
  constexpr std::int64_t kLengths[] = {0, 3, 70, 1031, 20000};
  return kLengths[(from * 2 + block + round) % 5];
}

}  // namespace

RANK_TEST("neighbours on a ring exchange blocks of GPU memory, one after the other and with layouts, in every mode") {
  use_gpu(ctx);
  const int n = ctx.size();
  const int me = ctx.rank();
  const std::vector<int> to{(me + 1) % n, (me + n - 1) % n};
  const std::vector<int> from{(me + n - 1) % n, (me + 1) % n};
  std::mt19937 random(81 + static_cast<unsigned>(me));
  int turn = 0;
  for (int round = 0; round < 5; ++round) {
    const std::vector<std::int64_t> sent{length_of(me, 0, round), length_of(me, 1, round)};
    const std::vector<std::int64_t> received{length_of(from[0], 0, round), length_of(from[1], 1, round)};
    for (const bool layouts : {false, true}) {
      Strided in = strided_blocks::random_blocks(random, sent, kElement);
      Strided out = strided_blocks::random_blocks(random, received, kElement);
      for (Strided* side : {&in, &out}) {
        if (layouts) continue;
        side->base = 0;
        side->bytes = kElement * (static_cast<std::int64_t>(side->at.size()) + 1);
        for (std::size_t i = 0; i < side->at.size(); ++i) side->at[i] = kElement * static_cast<std::int64_t>(i);
      }
      DeviceBytes source(in.bytes), target(out.bytes);
      for (const std::string& path : gpu_paths(ctx)) {
        if (path == "peer:ll") continue;  // for small messages
        INFO(path << " round " << round << std::string(layouts ? " layouts" : ""));
        OperationOptions options;
        options.path = path == "peer:copy" ? "peer:copy,peer:put" : path;  // copy engines make few pieces only
        const Neighbours ring(to, from);
        Operation exchange =
            layouts ? NeighbourAlltoall(ctx, ring, source.get() + in.base, in.layouts, target.get() + out.base,
                                        out.layouts, options)
                    : NeighbourAlltoall(ctx, ring, source.get(), target.get(), sent, received, DType::i32, options);
        const VerifyReport report = verify(exchange);
        INFO(report.text());
        CHECK(report.ok());
        for (const std::string& mode : Driver::modes()) {
          INFO(mode);
          Driver drive(ctx, mode);
          for (int again = 0; again < 3; ++again, ++turn) {
            std::vector<std::byte> memory(static_cast<std::size_t>(in.bytes), std::byte{0x11});
            std::size_t at = 0;
            for (int block = 0; block < 2; ++block) {
              for (std::int64_t i = 0; i < sent[static_cast<std::size_t>(block)]; ++i) {
                const std::int32_t number = value(me, block, i, turn);
                std::memcpy(memory.data() + in.at[at++], &number, sizeof number);
              }
            }
            source.put(memory);
            target.put(std::vector<std::byte>(static_cast<std::size_t>(out.bytes), std::byte{0x5A}));
            drive(exchange, 0);
            std::vector<std::byte> got = target.take();
            int wrong = 0;
            at = 0;
            for (int block = 0; block < 2; ++block) {
              for (std::int64_t i = 0; i < received[static_cast<std::size_t>(block)]; ++i, ++at) {
                const std::int32_t number = value(from[static_cast<std::size_t>(block)], block, i, turn);
                wrong += std::memcmp(got.data() + out.at[at], &number, sizeof number) == 0 ? 0 : 1;
                std::fill_n(got.begin() + out.at[at], kElement, std::byte{0x5A});
              }
            }
            CHECK(wrong == 0);
            CHECK(std::all_of(got.begin(), got.end(), [](std::byte b) { return b == std::byte{0x5A}; }));
          }
        }
      }
    }
  }
}

RANK_TEST("neighbours with memory of hosts and of GPUs in one call are told who has which") {
  use_gpu(ctx);
  const DeviceBytes device(64);
  std::vector<double> host(8);
  const Neighbours self({ctx.rank()}, {ctx.rank()});
  const std::string error =
      error_of([&] { NeighbourAllgather x(ctx, self, host.data(), device.get(), 2, DType::f64); });
  INFO(error);
  CHECK(error.find("NeighbourAllgather: memory of hosts and of GPUs in one call") != std::string::npos);
  CHECK(error.find("rank 0: 'in' is host memory, 'out' is device memory") != std::string::npos);
}
