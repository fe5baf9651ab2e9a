// A rank is killed in the middle of a collective on GPU memory. The others must leave it with an error that names the
// dead rank. Run with the launcher's recovery on (killed_gpu_collective.py); on host memory killed_collective.cpp does
// the same.
//
//   killed_gpu_collective VICTIM KIND HOW
//
// KIND is one of each_collective.hpp. HOW: `host` (every epoch is started and waited for by the host), `stream`, or
// `graph`, each launch of which is eight epochs.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "each_collective.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/tasuki.hpp"

std::string (*why_skip)(int ranks) = nullptr;  // gpu/enough.cpp

namespace {

using namespace tasuki;

void kill_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(237));
    kill(getpid(), SIGKILL);
  }).detach();
}

// Epochs without end, until one fails.
void repeat(const Context& ctx, Operation& operation, const std::string& how, Stream stream) {
  if (how == "host") {
    for (;;) {
      operation.start();
      operation.wait();
    }
  }
  const auto epochs = [&] {
    for (int epoch = 0; epoch < 8; ++epoch) operation.run(stream);
  };
  std::optional<Graph> graph;
  if (how == "graph") graph.emplace(stream, epochs);
  for (;;) {
    graph ? graph->launch(stream) : epochs();
    synchronize(ctx, stream);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Context ctx(argc, argv);
  const int victim = std::atoi(argv[1]);
  const std::string kind = argv[2];
  const std::string how = argv[3];
  if (const std::string why = why_skip(ctx.size()); !why.empty()) {
    if (ctx.is_root()) fmt::print("SKIPPED: {}\n", why);
    return 0;
  }
  ctx.set_deadline(10);
  use_gpu(ctx);
  const std::size_t bytes = each_collective::kCount * static_cast<std::size_t>(ctx.size()) * sizeof(double);
  double* memory = nullptr;
  TASUKI_CUDA(cudaMalloc, &memory, 2 * bytes);
  TASUKI_CUDA(cudaMemset, memory, 0, 2 * bytes);
  cudaStream_t stream = nullptr;
  TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  Operation operation =
      each_collective::make(ctx, kind, 0, memory, memory + bytes / sizeof(double), {}, Memory::device);
  if (!verify(operation).ok()) throw Error("the plan is wrong");
  operation.run(stream);
  synchronize(ctx, stream);
  ctx.barrier();
  std::string error;
  if (ctx.rank() == victim) kill_soon();
  const auto begin = std::chrono::steady_clock::now();
  try {
    repeat(ctx, operation, how, stream);
  } catch (const Error& caught) {
    error = caught.what();
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  fmt::print("survivor {} after {:.2f} s: {}\n", ctx.rank(), waited.count(), error);
  std::fflush(stdout);
  _exit(0);
}
