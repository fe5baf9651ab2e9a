// Tasuki itself on GPU memory: as it chooses, replayed as a CUDA graph, and forced to paths.
#include "gpu/cases.hpp"

#include <algorithm>

#include "gpu/problem.hpp"

namespace bench {
namespace {

class OperationsRunner : public Runner {
 public:
  OperationsRunner(const GpuCase& problem, const std::string& path)
      : context_(problem.context),
        stream_(gpu_stream(problem.context)),
        fields_(problem.fields),
        operations_(problem.operations(path)) {}
  void start() override {
    show_next_copy();
    for (auto& operation : operations_) operation.run(stream_);
  }
  void finish() override { finish_stream(context_); }
  std::optional<std::int64_t> memory() const override {
    std::int64_t sum = 0;
    for (const auto& operation : operations_) sum += operation.memory();
    return sum;
  }

 private:
  // Of fields with two copies. Others who take turns with this runner may have swapped them too.
  void show_next_copy() {
    for (tasuki::FieldBase& field : fields_) {
      if (field.copies() == 2 && field.current() != copy_) field.swap();
    }
    copy_ = 1 - copy_;
  }

  tasuki::Context context_;
  tasuki::Stream stream_;
  std::vector<tasuki::FieldBase> fields_;
  int copy_ = 0;
  std::vector<tasuki::Operation> operations_;
};

// Single numbers far apart take the copy engines milliseconds, which says nothing more than that. Collective.
bool has_short_rows(const GpuCase& problem) {
  constexpr std::int64_t kShort = 64;  // bytes
  const bool none = std::all_of(problem.moves.begin(), problem.moves.end(), [&](const GpuMove& move) {
    const tasuki::FieldBase& field = problem.fields[static_cast<std::size_t>(move.field)];
    const auto fine = [](const GpuRows& rows) { return rows.contiguous() || rows.row >= kShort; };
    return fine(rows_of(field, move.from)) && fine(rows_of(field, move.to));
  });
  return !everywhere(problem.context, none);
}

const RegisterPeer kGraph(gpu_peer(std::string("tasuki") + kReplayed,
                                   [](const GpuCase& problem) { return replayed(problem, tasuki_on_gpus(problem)); }));

}  // namespace

RunnerPtr tasuki_on_gpus(const GpuCase& problem) {
  return std::make_unique<OperationsRunner>(problem, "auto");
}

void add_forced_path(const std::string& path) {
  const std::string name = "tasuki " + path;
  RegisterPeer{gpu_peer(name, [name, path](const GpuCase& problem) {
    if (path == "peer:copy" && has_short_rows(problem)) return RunnerPtr();
    // Not every path can do everything.
    return unless_left_out(problem, name, [&] { return std::make_unique<OperationsRunner>(problem, path); });
  })};
}

}  // namespace bench
