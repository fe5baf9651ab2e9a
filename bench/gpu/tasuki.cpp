// Tasuki itself on GPU memory: as it chooses, replayed as a CUDA graph, and forced to paths.
#include "gpu/cases.hpp"
#include "gpu/problem.hpp"

namespace bench {
namespace {

class OperationsRunner : public Runner {
 public:
  OperationsRunner(const GpuCase& problem, const std::string& path)
      : context_(problem.context), stream_(gpu_stream(problem.context)), operations_(problem.operations(path)) {}
  void start() override {
    for (auto& operation : operations_) operation.run(stream_);
  }
  void finish() override { finish_stream(context_); }
  std::optional<std::int64_t> memory() const override {
    std::int64_t sum = 0;
    for (const auto& operation : operations_) sum += operation.memory();
    return sum;
  }

 private:
  tasuki::Context context_;
  tasuki::Stream stream_;
  std::vector<tasuki::Operation> operations_;
};

const RegisterPeer kGraph(gpu_peer(std::string("tasuki") + kReplayed,
                                   [](const GpuCase& problem) { return replayed(problem, tasuki_on_gpus(problem)); }));

}  // namespace

RunnerPtr tasuki_on_gpus(const GpuCase& problem) {
  return std::make_unique<OperationsRunner>(problem, "auto");
}

void add_forced_path(const std::string& path) {
  const std::string name = "tasuki " + path;
  RegisterPeer{gpu_peer(name, [name, path](const GpuCase& problem) {
    // Not every path can do everything.
    return unless_left_out(problem, name, [&] { return std::make_unique<OperationsRunner>(problem, path); });
  })};
}

}  // namespace bench
