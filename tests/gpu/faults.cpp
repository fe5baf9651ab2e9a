// Operations on GPU memory that go wrong, or in another order than elsewhere: nothing hangs, nothing is lost, and what
// failed is not taken for done.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common.hpp"
#include "ranks/error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/memory.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

constexpr std::int64_t kBytes = 1 << 20;

class DeviceBytes {
 public:
  explicit DeviceBytes(int value) {
    CUDA_OK(cudaMalloc(&memory_, kBytes));
    set(value);
  }
  ~DeviceBytes() { cudaFree(memory_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void set(int value) {
    CUDA_OK(cudaMemset(memory_, value, kBytes));
    CUDA_OK(cudaDeviceSynchronize());
  }
  void* get() const { return memory_; }
  /// The value that all bytes have, or -1.
  int value() const {
    std::vector<unsigned char> bytes(kBytes);
    CUDA_OK(cudaMemcpy(bytes.data(), memory_, bytes.size(), cudaMemcpyDeviceToHost));
    for (const unsigned char byte : bytes)
      if (byte != bytes[0]) return -1;
    return bytes[0];
  }

 private:
  void* memory_ = nullptr;
};

}  // namespace

RANK_TEST("operations on GPUs may be started in orders that differ between ranks") {
  use_gpu(ctx);
  const int last = ctx.size() - 1;
  const Layout whole = Layout::bytes(kBytes);
  for (const auto& path : gpu_paths(ctx)) {
    // NCCL wants its calls in the same order everywhere, and across islands `auto` takes NCCL.
    if (path == "nccl" || (path == "auto" && in_islands()) || last == 0) continue;
    CAPTURE(path);
    DeviceBytes out(1);
    DeviceBytes in(0);
    Transfer up(ctx, {0, out.get(), whole}, {last, in.get(), whole}, {.path = path});
    Transfer down(ctx, {last, out.get(), whole}, {0, in.get(), whole}, {.path = path});
    for (int epoch = 1; epoch < 5; ++epoch) {
      out.set(10 * epoch + ctx.rank());
      std::vector<Operation*> order{&up, &down};
      if (ctx.rank() == last) std::swap(order[0], order[1]);
      for (Operation* operation : order) operation->start();
      for (Operation* operation : order) operation->wait();
      if (ctx.rank() == 0) CHECK(in.value() == 10 * epoch + last);
      if (ctx.rank() == last) CHECK(in.value() == 10 * epoch);
    }
    ctx.barrier();
  }
}

RANK_TEST("an exchange that gave up is an error of synchronize, also when its kernel has ended") {
  // With a context of its own, which is spent afterwards.
  if (ctx.size() == 1 || ctx.comm() == MPI_COMM_NULL) return;
  if (in_islands()) return;  // NCCL's kernels do not give up
  Context own(ctx.comm());
  use_gpu(own);
  const Layout whole = Layout::bytes(kBytes);
  const int last = own.size() - 1;
  const DeviceBytes out(7);
  const DeviceBytes in(0);
  {
    Transfer transfer(own, {last, out.get(), whole}, {0, in.get(), whole});
    own.barrier();
    own.set_deadline(0.2);
    if (own.rank() == 0) {
      transfer.run(nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the kernel's own deadline passes
      const std::string text = error_of([&] { synchronize(own, nullptr); });
      CHECK(text.find("epoch 1 did not end: the GPU waited for") != std::string::npos);
      CHECK(text.find("transfer") != std::string::npos);
      CHECK(runtime_of(own).failed());
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
    }
  }
  CUDA_OK(cudaDeviceSynchronize());
  ctx.barrier();
}

RANK_TEST("synchronize that is called at once hears what a kernel waits for before it gives up itself") {
  if (ctx.size() == 1 || ctx.comm() == MPI_COMM_NULL) return;
  const Layout whole = Layout::bytes(kBytes);
  const int last = ctx.size() - 1;
  for (const std::string path : {"auto", "mpi"}) {
    if (path == "auto" && in_islands()) continue;  // NCCL's kernels do not give up
    Context own(ctx.comm());
    use_gpu(own);
    const DeviceBytes out(7);
    const DeviceBytes in(0);
    const OwnStream stream;
    {
      Transfer transfer(own, {last, out.get(), whole}, {0, in.get(), whole}, {.path = path});
      own.barrier();
      own.set_deadline(1);
      if (own.rank() == 0) {
        transfer.run(stream.get());
        const std::string text = error_of([&] { synchronize(own, stream.get()); });
        INFO(text);
        CHECK(text.find("epoch 1 did not end: the GPU waited for") != std::string::npos);
        const std::string standing =
            "; the GPU has asked for epoch 1 of the message, MPI has been given 1 and has ended 0";
        CHECK((text.find(standing) != std::string::npos) == (path == "mpi"));
      }
      ctx.barrier();
    }
    CUDA_OK(cudaDeviceSynchronize());
    ctx.barrier();
  }
}

RANK_TEST("an operation that is destroyed in flight takes no other with it") {
  const Grid grid(ctx, {33, 40}, {.periodic = {true, true}});
  const Field<double> a(grid, {.name = "a", .shadow = 1, .memory = Memory::device});
  const Field<double> b(grid, {.name = "b", .shadow = 1, .memory = Memory::device});
  const OwnStream stream;
  std::optional<Halo> leaves(std::in_place, HaloField(a));
  Halo stays{HaloField(b)};
  leaves->start(stream.get());
  leaves.reset();
  ctx.barrier();
  for (int i = 0; i < 300; ++i) stays.run(stream.get());
  CHECK(error_of([&] { synchronize(ctx, stream.get()); }) == "no error");
}

RANK_TEST("a stream of another GPU is refused, and the operation stays usable") {
  const int own = use_gpu(ctx);
  int gpus = 0;
  CUDA_OK(cudaGetDeviceCount(&gpus));
  if (gpus < 2) return;
  const Grid grid(ctx, {33, 40}, {.periodic = {true, true}});
  const Field<double> field(grid, {.name = "f", .shadow = 1, .memory = Memory::device});
  Halo halo{HaloField(field)};
  const OwnStream stream;
  const int other = (own + 1) % gpus;
  const std::string numbers = "GPU " + std::to_string(other) + ", ";
  select_gpu(other);
  {
    const OwnStream foreign;
    CHECK(error_of([&] { halo.run(nullptr); }).find("is the default stream of " + numbers) != std::string::npos);
    select_gpu(own);
    for (int i = 0; i < 2; ++i)
      CHECK(error_of([&] { halo.run(foreign.get()); }).find("'stream' belongs to " + numbers) != std::string::npos);
    CHECK(error_of([&] {
            Graph graph(foreign.get(), [&] { halo.run(foreign.get()); });
          }).find("Graph: argument 'stream' belongs to " + numbers) != std::string::npos);
  }
  halo.run(stream.get());
  halo.run(nullptr);
  CHECK(error_of([&] { synchronize(ctx, stream.get()); }) == "no error");
  CHECK(error_of([&] { synchronize(ctx, nullptr); }) == "no error");
}

RANK_TEST("GPU memory that was given up is used again, also where ranks have shared different amounts") {
  use_gpu(ctx);
  const auto uneven = shared_alloc(ctx, ctx.rank() == 0 ? 4096 : 64 * (1 + ctx.rank()));
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  CUDA_OK(cudaMemGetInfo(&free_bytes, &all_bytes));
  const auto least = static_cast<std::int64_t>(all_bytes) / 8;
  const Grid grid(ctx, {ctx.size(), least / 8});
  // Twice what there is.
  for (int i = 0; i < 16; ++i) Field<double>(grid, {.memory = Memory::device});
  CHECK(uneven != nullptr);
}

RANK_TEST("synchronize of a context that has used no GPU waits, and tells what failed in its subset") {
  if (ctx.size() == 1 || ctx.comm() == MPI_COMM_NULL) return;
  if (in_islands()) return;  // NCCL's kernels do not give up
  const Context own(ctx.comm());
  std::vector<int> all;
  for (int rank = 0; rank < own.size(); ++rank) all.push_back(rank);
  Context part = own.subset(all);
  use_gpu(part);
  REQUIRE(!uses_gpu(own));
  const Layout whole = Layout::bytes(kBytes);
  const int last = own.size() - 1;
  const OwnStream stream;
  DeviceBytes out(7);
  const DeviceBytes in(0);
  {
    Transfer transfer(part, {last, out.get(), whole}, {0, in.get(), whole});
    // Rank 0 waits for the last rank, which comes later: what it reads after `synchronize` is new.
    for (int epoch = 1; epoch < 4; ++epoch) {
      out.set(40 + epoch);
      ctx.barrier();
      if (ctx.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      transfer.run(stream.get());
      synchronize(own, stream.get());
      if (ctx.rank() == 0) CHECK(in.value() == 40 + epoch);
    }
    ctx.barrier();
    part.set_deadline(0.2);
    if (ctx.rank() == 0) {
      transfer.run(stream.get());
      const std::string text = error_of([&] { synchronize(own, stream.get()); });
      CHECK_MESSAGE(text.find("epoch 4 did not end: the GPU waited for") != std::string::npos, text);
      CHECK(runtime_of(part).failed());
      CHECK(!runtime_of(own).failed());
    }
    ctx.barrier();
  }
  CUDA_OK(cudaDeviceSynchronize());
  ctx.barrier();
}

RANK_TEST("as many epochs as CUDA runs side by side may be started in any order, and no more") {
  use_gpu(ctx);
  const int last = ctx.size() - 1;
  if (last == 0 || in_islands()) return;
  const Layout whole = Layout::bytes(kBytes);
  const char* const set = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const auto most = static_cast<std::size_t>(set == nullptr ? 8 : std::atoi(set));
  std::vector<std::unique_ptr<DeviceBytes>> out, in;
  std::vector<Transfer> all;
  for (std::size_t i = 0; i <= most; ++i) {
    out.push_back(std::make_unique<DeviceBytes>(0));
    in.push_back(std::make_unique<DeviceBytes>(0));
    const int from = i % 2 == 0 ? 0 : last;
    // Few blocks each, so that all are on the GPU at once.
    OperationOptions options;
    options.blocks = 8;
    all.emplace_back(ctx, TransferSide{from, out[i]->get(), whole}, TransferSide{last - from, in[i]->get(), whole},
                     options);
  }
  for (int epoch = 1; epoch < 20; ++epoch) {
    for (std::size_t i = 0; i < most; ++i) out[i]->set(epoch + static_cast<int>(i));
    for (std::size_t i = 0; i < most; ++i) all[ctx.rank() == 0 ? i : most - 1 - i].start();
    if (ctx.rank() == 0 || ctx.rank() == last) {
      const std::string text = error_of([&] { all[most].start(); });
      CHECK_MESSAGE(
          text.find("start: " + std::to_string(most) + " epochs that the host has started") != std::string::npos, text);
    }
    for (std::size_t i = 0; i < most; ++i) all[ctx.rank() == 0 ? most - 1 - i : i].wait();
    for (std::size_t i = 0; i < most; ++i)
      if (ctx.rank() == (i % 2 == 0 ? last : 0)) CHECK(in[i]->value() == epoch + static_cast<int>(i));
  }
  all[most].start();  // it was refused, and is as it was
  all[most].wait();
  ctx.barrier();
}

RANK_TEST("with TASUKI_CHECK unlike orders in a stream are told before the deadline, with both names") {
  if (ctx.size() == 1 || ctx.comm() == MPI_COMM_NULL || in_islands()) return;
  setenv("TASUKI_CHECK", "1", 1);
  const Context own(ctx.comm());
  unsetenv("TASUKI_CHECK");
  use_gpu(own);
  const int last = own.size() - 1;
  const Layout whole = Layout::bytes(kBytes);
  const OwnStream stream;
  const DeviceBytes out(1);
  const DeviceBytes in(0);
  {
    Transfer up(own, {0, out.get(), whole}, {last, in.get(), whole}, {.path = "peer:put"});
    Transfer down(own, {last, out.get(), whole}, {0, in.get(), whole}, {.path = "peer:put"});
    std::string text;
    if (own.rank() == 0 || own.rank() == last) {
      std::vector<Operation*> order{&up, &down};
      if (own.rank() == last) std::swap(order[0], order[1]);
      const auto begin = std::chrono::steady_clock::now();
      text = error_of([&] {
        for (Operation* operation : order) operation->run(stream.get());
        synchronize(own, stream.get());
      });
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    }
    const auto texts = ctx.allgather(text);
    const auto both = [](const std::string& one) {
      return one.find("in the same order on all ranks") != std::string::npos &&
             one.find("transfer 0->") != std::string::npos;
    };
    const std::string together = texts.front() + " | " + texts.back();
    CHECK_MESSAGE((both(texts.front()) || both(texts.back())), together);
  }
  CUDA_OK(cudaDeviceSynchronize());
  ctx.barrier();
}
