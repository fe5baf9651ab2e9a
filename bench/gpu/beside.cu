// A collective beside a computation: see beside.hpp.
#include "gpu/beside.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/device_memory.cuh"
#include "gpu/problem.hpp"
#include "measure.hpp"

namespace bench {
namespace {

constexpr unsigned kThreads = 128;
constexpr int kCaptured = 10;  // epochs in a graph

// Each multiplication waits for the one before it. The number of units is read from memory, so that a captured kernel
// can be made longer or shorter. `sink` is never written, which the compiler cannot know.
__global__ void __launch_bounds__(kThreads) compute(const std::int64_t* units, float* sink) {
  float a = static_cast<float>(threadIdx.x);
  for (std::int64_t n = *units; n > 0; --n) {
#pragma unroll
    for (int step = 0; step < 8; ++step) a = fmaf(a, 0.999F, 1e-3F);
  }
  if (a < 0) *sink = a;
}

enum class Part : std::size_t { collective, computation, both };
constexpr Part kParts[] = {Part::collective, Part::computation, Part::both};

struct Seconds {
  double start = 0;
  double all = 0;
};

class Beside : public Runner {
 public:
  Beside(const tasuki::Context& context, tasuki::Fork fork, tasuki::Stream branch, RunnerPtr collective, int epochs,
         bool graph)
      : context_(context),
        fork_(std::move(fork)),
        main_(gpu_stream(context)),
        branch_(branch),
        collective_(std::move(collective)),
        epochs_(epochs),
        units_(device_memory(sizeof(std::int64_t))),
        sink_(device_memory(sizeof(float))) {
    int device = 0;
    int sms = 0;
    TASUKI_CUDA(cudaGetDevice, &device);
    TASUKI_CUDA(cudaDeviceGetAttribute, &sms, cudaDevAttrMultiProcessorCount, device);
    blocks_ = static_cast<unsigned>(sms);
    set_units(1000);
    for (const Part part : kParts) enqueue(part);  // what is done lazily may not be captured
    finish();
    if (!graph) return;
    for (const Part part : kParts) {
      graph_of(part).emplace(part == Part::collective ? branch_ : main_, [this, part] {
        for (int done = 0; done < kCaptured; done += epochs_) enqueue(part);
      });
    }
  }
  void start() override { run(computes ? Part::both : Part::collective); }
  void finish() override {
    collective_->finish();
    finish_stream(context_, main_);
    finish_stream(context_, branch_);
  }
  int exchanges() const override { return graphs_[0] ? kCaptured : epochs_; }
  std::optional<std::int64_t> memory() const override { return collective_->memory(); }

  Overlap overlap(int iterations, int rounds) {
    std::vector<double> pure, computed, overall, start;
    for (int round = 0; round <= rounds; ++round) {
      const Seconds alone = timed(Part::collective, iterations);
      if (round == 0) {  // it warms up, and says how long the computation has to be
        set_units(units_for(alone.all, iterations));
        continue;
      }
      pure.push_back(alone.all * 1e6);
      start.push_back(alone.start * 1e6);
      computed.push_back(timed(Part::computation, iterations).all * 1e6);
      overall.push_back(timed(Part::both, iterations).all * 1e6);
    }
    return {percentile(pure, 0.5), percentile(computed, 0.5), percentile(overall, 0.5), percentile(start, 0.5)};
  }

  bool computes = false;

 private:
  std::optional<tasuki::Graph>& graph_of(Part part) { return graphs_[static_cast<std::size_t>(part)]; }

  void set_units(std::int64_t units) {
    TASUKI_CUDA(cudaMemcpy, units_.get(), &units, sizeof units, cudaMemcpyDefault);
    TASUKI_CUDA(cudaStreamSynchronize, nullptr);
  }

  // A turn.
  void enqueue(Part part) {
    if (part == Part::both) fork_.branch(main_);
    if (part != Part::computation) {
      for (int epoch = 0; epoch < epochs_; ++epoch) {
        collective_->start();
        collective_->wait();
      }
    }
    if (part != Part::collective) {
      compute<<<blocks_, kThreads, 0, main_>>>(reinterpret_cast<const std::int64_t*>(units_.get()),
                                               reinterpret_cast<float*>(sink_.get()));
      TASUKI_CUDA(cudaGetLastError);
    }
    if (part == Part::both) fork_.join(main_);
  }

  void run(Part part) {
    if (const auto& graph = graph_of(part)) {
      graph->launch(main_);
    } else {
      enqueue(part);
    }
  }

  double max_over_ranks(double value) const {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, context_.comm());
    return value;
  }

  // Of an epoch.
  Seconds timed(Part part, int iterations) {
    MPI_Barrier(context_.comm());
    const double begin = MPI_Wtime();
    for (int n = 0; n < iterations; ++n) run(part);
    const double started = MPI_Wtime();
    finish();
    const int epochs = iterations * exchanges();
    return {max_over_ranks(started - begin) / epochs, max_over_ranks(MPI_Wtime() - begin) / epochs};
  }

  // Units with which the computation takes as long, less what its launch takes. The same on all ranks.
  std::int64_t units_for(double seconds, int iterations) {
    const auto taken = [&](std::int64_t units) {
      set_units(units);
      double least = timed(Part::computation, iterations).all;
      for (int trial = 1; trial < 3; ++trial) least = std::min(least, timed(Part::computation, iterations).all);
      return least;
    };
    const double launch = taken(0);
    if (seconds <= launch) return 1;
    std::int64_t units = 100;
    double now = taken(units);
    while (now - launch < (seconds - launch) / 2) now = taken(units *= 2);
    for (int step = 0; step < 3 && now > launch; ++step) {
      const double scaled = static_cast<double>(units) * (seconds - launch) / (now - launch);
      units = std::max<std::int64_t>(std::llround(scaled), 1);
      now = taken(units);
    }
    return units;
  }

  tasuki::Context context_;
  tasuki::Fork fork_;
  tasuki::Stream main_;
  tasuki::Stream branch_;
  RunnerPtr collective_;  // outlives the graphs, which use its memory
  int epochs_;
  DeviceMemory units_;
  DeviceMemory sink_;
  unsigned blocks_ = 0;
  std::array<std::optional<tasuki::Graph>, std::size(kParts)> graphs_;
};

}  // namespace

RunnerPtr beside(const tasuki::Context& context, int epochs, bool graph,
                 const std::function<RunnerPtr(tasuki::Stream)>& make) {
  tasuki::Fork fork;
  tasuki::Stream branch = fork.branch(gpu_stream(context));
  RunnerPtr collective = make(branch);
  if (!collective) return nullptr;
  return std::make_unique<Beside>(context, std::move(fork), branch, std::move(collective), epochs, graph);
}

void compute_beside(Runner& runner, bool computes) {
  dynamic_cast<Beside&>(runner).computes = computes;
}

Overlap overlap_beside(Runner& runner, int iterations, int rounds) {
  return dynamic_cast<Beside&>(runner).overlap(iterations, rounds);
}

}  // namespace bench
