// A runner whose starts are captured in a CUDA graph and replayed.
#include <type_traits>

#include "gpu/problem.hpp"
#include "tasuki/cuda.cuh"

namespace bench {
namespace {

constexpr int kExchanges = 10;

class Replayed : public Runner {
 public:
  Replayed(const GpuCase& problem, RunnerPtr runner)
      : runner_(std::move(runner)), stream_(gpu_stream(problem.context)) {
    once();  // what is done lazily may not be captured
    TASUKI_CUDA(cudaStreamBeginCapture, stream_, cudaStreamCaptureModeThreadLocal);
    cudaGraph_t captured = nullptr;
    try {
      for (int n = 0; n < kExchanges; ++n) {
        runner_->start();
        runner_->wait();
      }
    } catch (...) {
      cudaStreamEndCapture(stream_, &captured);
      if (captured != nullptr) cudaGraphDestroy(captured);
      throw;
    }
    TASUKI_CUDA(cudaStreamEndCapture, stream_, &captured);
    cudaGraphExec_t ready = nullptr;
    const cudaError_t code = cudaGraphInstantiate(&ready, captured, 0);
    cudaGraphDestroy(captured);
    tasuki::check_cuda(code, "cudaGraphInstantiate");
    graph_.reset(ready);
    TASUKI_CUDA(cudaGraphUpload, ready, stream_);
  }
  void start() override { TASUKI_CUDA(cudaGraphLaunch, graph_.get(), stream_); }
  void finish() override { runner_->finish(); }
  int exchanges() const override { return kExchanges; }
  std::optional<std::int64_t> memory() const override { return runner_->memory(); }

 private:
  void once() {
    runner_->start();
    runner_->wait();
    runner_->finish();
  }

  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  RunnerPtr runner_;  // outlives the graph, which uses its memory
  cudaStream_t stream_;
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> graph_;
};

}  // namespace

RunnerPtr replayed(const GpuCase& problem, RunnerPtr runner) {
  if (!runner) return nullptr;
  return std::make_unique<Replayed>(problem, std::move(runner));
}

}  // namespace bench
