// Operations other than halos by kernels on threads and by the host in turns: transfers of scattered bytes, collectives
// of all ranks, whose lanes wait for each other.
#include <numeric>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

#if !defined(__CUDACC__)
namespace {

TASUKI_KERNEL void once(device::Handle handle) {
  device::run(handle, device::this_grid());
}
TASUKI_KERNEL void in_parts(device::ReducingHandle handle) {
  if (!device::start(handle, device::this_grid())) return;
  device::wait(handle, device::this_grid());
}

constexpr tasuki::KernelGroup kGroups[] = {{.blocks = 1, .cpu_threads = 2}, {.blocks = 3}, {.blocks = 9}};
constexpr int kEpochs = 8;

tasuki::ResidentOptions launch_of(const tasuki::KernelGroup& group) {
  tasuki::ResidentOptions options;
  options.blocks = group.blocks;
  options.cpu_threads = group.cpu_threads;
  return options;
}

}  // namespace

RANK_TEST("plans: transfers by kernels and by the host in turns") {
  prepare(ctx);
  const int last = ctx.size() - 1;
  std::vector<float> from(41);
  std::vector<float> to(41);
  tasuki::TransferSide source{0, from.data(), tasuki::Layout::vector(7, 3, 5, tasuki::Layout::bytes(4))};
  tasuki::TransferSide target{last, to.data(), tasuki::Layout::vector(3, 7, 11, tasuki::Layout::bytes(4))};
  tasuki::OperationOptions options;
  options.path = "shared:eager";
  tasuki::Transfer transfer(ctx, source, target, options);
  const bool sound = tasuki::verify(transfer).ok();
  CHECK(sound);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    std::iota(from.begin(), from.end(), static_cast<float>(100 * epoch));
    if (epoch % 3 == 0) {
      transfer.start();
      transfer.wait();
    } else {
      const tasuki::KernelGroup group = kGroups[epoch % 2];
      tasuki::launch_resident(ctx, launch_of(group), once, transfer.device(group)).wait();
    }
    if (ctx.rank() != last) continue;
    for (std::size_t n = 0; n < 21; ++n)
      CHECK(to[n / 7 * 11 + n % 7] == static_cast<float>(100 * epoch) + static_cast<float>(n / 3 * 5 + n % 3));
  }
}

RANK_TEST("plans: collectives by kernels and by the host in turns") {
  prepare(ctx);
  constexpr std::int64_t kCount = 37;
  std::vector<std::int32_t> in(kCount);
  std::vector<std::int32_t> sum(kCount);
  std::vector<std::int32_t> all(static_cast<std::size_t>(kCount * ctx.size()));
  tasuki::CollectiveOptions options;
  options.path = "shared:eager";
  for (const char* const algorithm : {"auto", "ring", "doubling"}) {
    CAPTURE(algorithm);
    if (algorithm != std::string("auto") && (ctx.size() & (ctx.size() - 1)) != 0) continue;
    options.algorithm = algorithm;
    tasuki::Allreduce reduce(ctx, in.data(), sum.data(), kCount, tasuki::DType::i32, tasuki::ReduceOp::sum, options);
    tasuki::Allgather gather(ctx, in.data(), all.data(), kCount, tasuki::DType::i32, options);
    const bool sound = tasuki::verify(reduce).ok() && tasuki::verify(gather).ok();
    CHECK(sound);
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      const auto value = [&](int rank, std::size_t n) {
        return static_cast<std::int32_t>(n) * 7 + rank * 1000 + epoch * 13;
      };
      for (std::size_t n = 0; n < in.size(); ++n) in[n] = value(ctx.rank(), n);
      if (epoch % 4 == 0) {
        reduce.start();
        gather.start();
        gather.wait();
        reduce.wait();
      } else {
        const tasuki::KernelGroup group = kGroups[epoch % 3];
        tasuki::launch_resident(ctx, launch_of(group), in_parts, reduce.device_reducing(group)).wait();
        tasuki::launch_resident(ctx, launch_of(group), once, gather.device(group)).wait();
      }
      int wrong = 0;
      for (std::size_t n = 0; n < in.size(); ++n) {
        std::int32_t expected = 0;
        for (int rank = 0; rank < ctx.size(); ++rank) {
          expected += value(rank, n);
          if (all[static_cast<std::size_t>(rank) * kCount + n] != value(rank, n)) ++wrong;
        }
        if (sum[n] != expected) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}
#endif
