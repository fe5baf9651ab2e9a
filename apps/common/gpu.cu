// Repeated work on this rank's GPU.
#include "common/gpu.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "tasuki/cuda.cuh"

namespace apps {
namespace {

constexpr int kMostInGraph = 20;  // even: so many that starting a graph does not count, so few that capturing is quick

}  // namespace

Gpus gpus_of(const tasuki::Context& context) {
  int ordinal = 0;
  TASUKI_CUDA(cudaGetDevice, &ordinal);
  cudaDeviceProp properties{};
  TASUKI_CUDA(cudaGetDeviceProperties, &properties, ordinal);
  const auto all = context.allgather(std::string(properties.uuid.bytes, sizeof properties.uuid.bytes));
  const std::set<std::string> different(all.begin(), all.end());
  return {static_cast<int>(different.size()), properties.name};
}

GpuQueue::GpuQueue(const tasuki::Context& context, bool graphs) : context_(context), graphs_(graphs) {
  // Tasuki's own run time has done so already; this one has its own idea of the current device.
  TASUKI_CUDA(cudaSetDevice, tasuki::use_gpu(context));
  cudaStream_t stream = nullptr;
  TASUKI_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  stream_ = {stream, [](cudaStream_t s) { cudaStreamDestroy(s); }};
}

tasuki::Stream GpuQueue::stream() const {
  return stream_.get();
}

void GpuQueue::finish() const {
  tasuki::synchronize(context_, stream());
}

double GpuQueue::time(int count, const std::function<void()>& enqueue) {
  const int in_graph = graphs_ ? std::min(count, kMostInGraph) / 2 * 2 : 0;
  std::optional<tasuki::Graph> graph;
  if (in_graph > 0) {
    graph.emplace(stream(), [&] {
      for (int n = 0; n < in_graph; ++n) enqueue();
    });
  }
  finish();
  context_.barrier();
  const double begin = now();
  int done = 0;
  for (; graph && done + in_graph <= count; done += in_graph) graph->launch(stream());
  for (; done < count; ++done) enqueue();
  finish();
  return now() - begin;
}

GpuSteps::GpuSteps(const tasuki::Context& context, const Options& options, const tasuki::FieldBase& field,
                   const tasuki::Halo& halo, Sweep sweep)
    : context_(context),
      options_(options),
      field_(field),
      halo_(halo),
      sweep_(std::move(sweep)),
      queue_(context, options.engine == "graph"),
      exchanges_(!halo.plan().commands.empty()),
      overlaps_(options.overlap && exchanges_) {}

std::vector<tasuki::Box> GpuSteps::sides() const {
  return overlaps_ ? field_.boundary(1) : std::vector<tasuki::Box>{};
}

tasuki::Box GpuSteps::rest() const {
  return overlaps_ ? field_.interior(1) : field_.local_owned();
}

void GpuSteps::exchange() {
  if (exchanges_) halo_.run(stream());
}

Timing GpuSteps::run(int iterations) {
  const double seconds = time(iterations, true, options_.communicate);
  return {seconds, seconds};
}

std::optional<Split> GpuSteps::split(int iterations) {
  if (!options_.communicate) return {};
  const double compute = time(iterations, true, false);
  const double exchange = time(iterations, false, true);  // nearly nothing on a rank without neighbours
  return Split{compute / iterations, exchange / iterations};
}

double GpuSteps::time(int iterations, bool compute, bool exchange) {
  Progress progress(context_, options_, iterations);
  int done = 0;
  return queue_.time(iterations, [&] {
    step(compute, exchange);
    progress.done(++done);
  });
}

// Puts a step into the stream.
void GpuSteps::step(bool compute, bool exchange) {
  if (exchange) field_.swap();  // from here on `now` is the copy to compute
  const int now = exchange ? field_.current() : (unshown_ = 1 - unshown_);
  const bool aside = overlaps_ && compute;
  const tasuki::Stream ahead = aside ? fork_.branch(stream()) : stream();
  if (aside) sweep_(true, now, ahead);
  if (exchange && exchanges_ && overlaps_) halo_.run(ahead);
  if (compute) sweep_(false, now, stream());
  if (aside) fork_.join(stream());
  if (exchange && exchanges_ && !overlaps_) halo_.run(stream());
}

}  // namespace apps
