// Operations other than halos by kernels and by the host in turns: transfers of scattered bytes, collectives of all
// ranks, whose lanes wait for each other.
#include <cstring>
#include <memory>
#include <numeric>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

#if defined(__CUDACC__)
constexpr const char* kPath = "peer:eager";
constexpr const char* kPathsOfLists[] = {"peer:eager", "peer:ll", "peer:put"};
#else
constexpr const char* kPath = "shared:eager";
constexpr const char* kPathsOfLists[] = {"shared:eager"};
#endif

/// Zeros where operations of kernels take their data: on a GPU in its memory, for peers cannot map managed memory.
template <class T>
class Data {
 public:
  explicit Data(std::size_t count) : count_(count) {
#if defined(__CUDACC__)
    void* p = nullptr;
    TASUKI_CUDA(cudaMalloc, &p, count * sizeof(T));
    TASUKI_CUDA(cudaMemset, p, 0, count * sizeof(T));
    memory_ = {static_cast<T*>(p), [](T* q) { cudaFree(q); }};
#else
    memory_ = {new T[count](), [](T* q) { delete[] q; }};
#endif
  }
  T* get() const {
    return memory_.get();
  }
  void set(const std::vector<T>& values) const {
    copy(get(), values.data());
  }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    copy(values.data(), get());
    return values;
  }

 private:
  void copy(T* to, const T* from) const {
#if defined(__CUDACC__)
    tasuki::copy_bytes(to, from, static_cast<std::int64_t>(count_ * sizeof(T)));
#else
    std::memcpy(to, from, count_ * sizeof(T));
#endif
  }

  std::size_t count_;
  std::shared_ptr<T> memory_;
};

TASUKI_KERNEL void once(device::Handle handle) {
  device::run(handle, device::this_grid());
}
TASUKI_KERNEL void in_parts(device::ReducingHandle handle) {
  if (!device::start(handle, device::this_grid())) return;
  device::wait(handle, device::this_grid());
}

constexpr tasuki::KernelGroup kGroups[] = {
    {.blocks = 1, .threads = 96, .cpu_threads = 2}, {.blocks = 3}, {.blocks = 9, .threads = 64}};
constexpr int kEpochs = 8;

tasuki::ResidentOptions launch_of(const tasuki::KernelGroup& group) {
  tasuki::ResidentOptions options;
  options.blocks = group.blocks;
  options.threads = group.threads;
  options.cpu_threads = group.cpu_threads;
  return options;
}

}  // namespace

RANK_TEST("plans: transfers by kernels and by the host in turns") {
  prepare(ctx);
  const int last = ctx.size() - 1;
  std::vector<float> sent(41);
  const Data<float> from(41);
  const Data<float> to(41);
  tasuki::TransferSide source{0, from.get(), tasuki::Layout::vector(7, 3, 5, tasuki::Layout::bytes(4))};
  tasuki::TransferSide target{last, to.get(), tasuki::Layout::vector(3, 7, 11, tasuki::Layout::bytes(4))};
  tasuki::OperationOptions options;
  options.path = kPath;
  tasuki::Transfer transfer(ctx, source, target, options);
  const bool sound = tasuki::verify(transfer).ok();
  CHECK(sound);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    std::iota(sent.begin(), sent.end(), static_cast<float>(100 * epoch));
    from.set(sent);
    if (epoch % 3 == 0) {
      transfer.start();
      transfer.wait();
    } else {
      const tasuki::KernelGroup group = kGroups[epoch % 2];
      tasuki::launch_resident(ctx, launch_of(group), once, transfer.device(group)).wait();
    }
    if (ctx.rank() != last) continue;
    const std::vector<float> got = to.values();
    for (std::size_t n = 0; n < 21; ++n)
      CHECK(got[n / 7 * 11 + n % 7] == static_cast<float>(100 * epoch) + static_cast<float>(n / 3 * 5 + n % 3));
  }
}

RANK_TEST("plans: collectives by kernels and by the host in turns") {
  prepare(ctx);
  constexpr std::int64_t kCount = 37;
  std::vector<std::int32_t> mine(kCount);
  const Data<std::int32_t> in(kCount);
  const Data<std::int32_t> sum(kCount);
  const Data<std::int32_t> all(static_cast<std::size_t>(kCount * ctx.size()));
  tasuki::CollectiveOptions options;
  options.path = kPath;
  for (const char* const algorithm : {"auto", "ring", "doubling"}) {
    CAPTURE(algorithm);
    if (algorithm != std::string("auto") && (ctx.size() & (ctx.size() - 1)) != 0) continue;
    options.algorithm = algorithm;
    tasuki::Allreduce reduce(ctx, in.get(), sum.get(), kCount, tasuki::DType::i32, tasuki::ReduceOp::sum, options);
    tasuki::Allgather gather(ctx, in.get(), all.get(), kCount, tasuki::DType::i32, options);
    const bool sound = tasuki::verify(reduce).ok() && tasuki::verify(gather).ok();
    CHECK(sound);
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      const auto value = [&](int rank, std::size_t n) {
        return static_cast<std::int32_t>(n) * 7 + rank * 1000 + epoch * 13;
      };
      for (std::size_t n = 0; n < mine.size(); ++n) mine[n] = value(ctx.rank(), n);
      in.set(mine);
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
      const std::vector<std::int32_t> summed = sum.values();
      const std::vector<std::int32_t> gathered = all.values();
      int wrong = 0;
      for (std::size_t n = 0; n < mine.size(); ++n) {
        std::int32_t expected = 0;
        for (int rank = 0; rank < ctx.size(); ++rank) {
          expected += value(rank, n);
          if (gathered[static_cast<std::size_t>(rank) * kCount + n] != value(rank, n)) ++wrong;
        }
        if (summed[n] != expected) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

RANK_TEST("plans: exchanges of scattered cells by kernels and by the host in turns") {
  prepare(ctx);
  constexpr std::int64_t kOwned = 150;
  constexpr std::int64_t kGhosts = 70;  // of the rank before this one
  constexpr std::int64_t kCells = kOwned + kGhosts;
  // Which cells are sent, and in which order they arrive: without a pattern, and the same on all ranks.
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
  for (std::int64_t n = 0; n < kGhosts; ++n) {
    sent.push_back(n * n * n % 101);  // 101 is prime, and 3 does not divide 100: no cell twice
    received.push_back(kOwned + n * 29 % kGhosts);
  }
  const int after = (ctx.rank() + 1) % ctx.size();
  const int before = (ctx.rank() + ctx.size() - 1) % ctx.size();
  const auto exchange_of = [&](const char* path, std::int64_t numbers, bool reverse) {
    CAPTURE(path);
    CAPTURE(numbers);
    CAPTURE(reverse);
    const auto all = static_cast<std::size_t>(kCells * numbers);
    const Data<std::int32_t> field(all);
    tasuki::ExchangeOptions options;
    options.path = path;
    options.reverse = reverse;
    tasuki::Exchange exchange(ctx, {{field.get(), kCells, numbers}}, {{after, sent, {}}, {before, {}, received}},
                              options);
    const bool sound = tasuki::verify(exchange).ok();
    CHECK(sound);
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      const auto value = [&](int rank, std::int64_t cell, std::int64_t k) {
        return static_cast<std::int32_t>(cell * 7 + k * 1000 + rank * 10000 + epoch * 13);
      };
      std::vector<std::int32_t> mine(all);
      for (std::size_t n = 0; n < all; ++n)
        mine[n] = value(ctx.rank(), static_cast<std::int64_t>(n) / numbers, static_cast<std::int64_t>(n) % numbers);
      field.set(mine);
      const tasuki::KernelGroup group = kGroups[epoch % 3];
      if (epoch % 4 == 0) {
        exchange.start();
        exchange.wait();
      } else if (reverse) {
        tasuki::launch_resident(ctx, launch_of(group), in_parts, exchange.device_reducing(group)).wait();
      } else {
        tasuki::launch_resident(ctx, launch_of(group), once, exchange.device(group)).wait();
      }
      for (std::size_t n = 0; n < sent.size(); ++n) {
        for (std::int64_t k = 0; k < numbers; ++k) {
          std::int32_t& owned = mine[static_cast<std::size_t>(sent[n] * numbers + k)];
          std::int32_t& ghost = mine[static_cast<std::size_t>(received[n] * numbers + k)];
          reverse ? owned += value(after, received[n], k) : ghost = value(before, sent[n], k);
        }
      }
      const bool right = field.values() == mine;
      CHECK(right);
    }
  };
  for (const char* path : kPathsOfLists)
    for (const std::int64_t numbers : {1, 5})
      for (const bool reverse : {false, true})
        if (!reverse || path != std::string("peer:put")) exchange_of(path, numbers, reverse);
}
