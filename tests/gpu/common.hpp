// What the GPU tests share: checked calls, a stream, and the modes in which an exchange can be driven.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

#define CUDA_OK(call) REQUIRE((call) == cudaSuccess)

namespace gpu_tests {

class OwnStream {
 public:
  OwnStream() { CUDA_OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Drives one operation in one way: `run` and `split` in a stream, `host` without one, `graph` from captured graphs,
/// one for each state that `key` tells apart; `mixed` in all these ways in turn, and not in the same on every rank.
class Driver {
 public:
  static std::vector<std::string> modes() { return {"run", "split", "host", "graph", "mixed"}; }

  Driver(const tasuki::Context& context, std::string mode) : context_(context), mode_(std::move(mode)) {}
  ~Driver() {
    for (auto& [key, graph] : graphs_) cudaGraphExecDestroy(graph);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void operator()(tasuki::Operation& operation, int key) {
    const char* const ways[] = {"run", "split", "run", "graph", "split", "host"};
    const std::string mode = mode_ == "mixed" ? ways[turn_++ % std::size(ways)] : mode_;
    if (mode == "host") {
      operation.start();
      operation.wait();
      return;
    }
    if (mode == "run") operation.run(stream_.get());
    if (mode == "split") {
      operation.start(stream_.get());
      operation.wait(stream_.get());
    }
    if (mode == "graph") {
      if (!graphs_.contains(key)) {
        cudaGraph_t graph = nullptr;
        CUDA_OK(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
        operation.run(stream_.get());
        CUDA_OK(cudaStreamEndCapture(stream_.get(), &graph));
        CUDA_OK(cudaGraphInstantiate(&graphs_[key], graph, 0));
        CUDA_OK(cudaGraphDestroy(graph));
      }
      CUDA_OK(cudaGraphLaunch(graphs_[key], stream_.get()));
    }
    tasuki::synchronize(context_, stream_.get());
  }

 private:
  tasuki::Context context_;
  std::string mode_;
  std::size_t turn_ = static_cast<std::size_t>(context_.rank());
  OwnStream stream_;
  std::map<int, cudaGraphExec_t> graphs_;
};

/// Whether GPUs are told not to reach each other.
inline bool in_islands() {
  return std::getenv("TASUKI_ISLAND") != nullptr;
}

inline std::vector<std::string> gpu_paths(const tasuki::Context& context) {
  std::vector<std::string> paths{"auto"};
  if (context.size() == 1) return paths;
  // Across islands only messages travel; `auto` then is the hybrid.
  if (!in_islands()) {
    paths.insert(paths.end(), {"peer:put", "peer:eager", "peer:ll", "peer:copy"});
  }
  int gpus = 0;
  CUDA_OK(cudaGetDeviceCount(&gpus));
  if (gpus >= context.size()) paths.emplace_back("nccl");  // which wants one for each rank
  if (context.comm() != MPI_COMM_NULL) paths.emplace_back("mpi");
  return paths;
}

}  // namespace gpu_tests
