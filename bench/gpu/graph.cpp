// A runner whose starts are captured in a CUDA graph and replayed.
#include <memory>
#include <optional>
#include <utility>

#include "gpu/problem.hpp"

namespace bench {
namespace {

constexpr int kExchanges = 10;

class Replayed : public Runner {
 public:
  Replayed(const tasuki::Context& context, RunnerPtr runner)
      : runner_(std::move(runner)), stream_(gpu_stream(context)) {
    exchange();  // what is done lazily may not be captured
    runner_->finish();
    graph_.emplace(stream_, [this] {
      for (int n = 0; n < kExchanges; ++n) exchange();
    });
  }
  void start() override { graph_->launch(stream_); }
  void finish() override { runner_->finish(); }
  int exchanges() const override { return kExchanges; }
  std::optional<std::int64_t> memory() const override { return runner_->memory(); }
  std::optional<double> predicted(bool together) const override { return runner_->predicted(together); }

 private:
  void exchange() {
    runner_->start();
    runner_->wait();
  }

  RunnerPtr runner_;  // outlives the graph, which uses its memory
  tasuki::Stream stream_;
  std::optional<tasuki::Graph> graph_;
};

}  // namespace

RunnerPtr replayed(const tasuki::Context& context, RunnerPtr runner) {
  if (!runner) return nullptr;
  return std::make_unique<Replayed>(context, std::move(runner));
}

RunnerPtr replayed(const GpuCase& problem, RunnerPtr runner) {
  return replayed(problem.context, std::move(runner));
}

}  // namespace bench
