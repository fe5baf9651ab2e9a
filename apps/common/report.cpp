// What the apps measure and how they say it.
#include "common/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/gpu.hpp"
#include "tasuki/error.hpp"

namespace apps {
namespace {

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, length);
  version = version.substr(0, version.find('\n'));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version.substr(0, version.find(", package"));
}

double longest(const tasuki::Context& context, double value) {
  const std::vector<double> all = context.allgather(value);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Progress::say(int iterations) {
  fmt::print(stderr, "{} of {}\n", iterations, total_);
  next_ += step_;
}

int choose_iterations(const tasuki::Context& context, const Options& options, const std::function<Timing(int)>& run) {
  if (options.iterations > 0) return options.iterations;
  if (options.verify) return 3;
  int iterations = 1;
  for (;;) {
    const double seconds = context.allgather(run(iterations).total)[0];
    const double factor = 3.0 / std::max(seconds, 1e-7);
    // Trust a trial that took a tenth of a second; a shorter one only leads to the next.
    if (seconds >= 0.1) return std::max(1, static_cast<int>(std::min(iterations * factor, 1e9)));
    iterations = static_cast<int>(std::min(iterations * std::min(factor, 10.0), 1e9));
  }
}

void reduce_times(const tasuki::Context& context, const Timing& timing, Result& result) {
  result.seconds_per_iteration = longest(context, timing.total) / result.iterations;
  result.communication_share = longest(context, (timing.total - timing.compute) / timing.total);
  if (result.stages) {
    const double exchange = timing.total - timing.compute - timing.norm;
    result.stages =
        Stages{longest(context, timing.compute) / result.iterations, longest(context, exchange) / result.iterations,
               longest(context, timing.norm) / result.iterations};
  }
}

void describe_gpus(const tasuki::Context& context, [[maybe_unused]] bool on_gpus, [[maybe_unused]] Result& result) {
#ifdef TASUKI_HAVE_CUDA
  if (!on_gpus) return;
  const Gpus gpus = gpus_of(context);
  result.gpus = gpus.number;
  result.gpu_name = gpus.name;
#else
  static_cast<void>(context);
#endif
}

void reduce_split(const tasuki::Context& context, const Split& split, Result& result) {
  result.split = Split{longest(context, split.compute), longest(context, split.exchange)};
  result.communication_share = std::max(0.0, 1 - result.split->compute / result.seconds_per_iteration);
}

int report(const tasuki::Grid& grid, const std::string& app, const Options& options, const tasuki::Operation& halo,
           const Result& result) {
  const bool failed = result.norm_wrong || !result.verified.value_or(true);
  const tasuki::Context& context = grid.context();
  if (!context.is_root()) return failed ? 1 : 0;
  const double gflops = result.flops_per_iteration / result.seconds_per_iteration * 1e-9;
  const double bandwidth = result.bytes_per_iteration / result.seconds_per_iteration * 1e-9;
  const double exposed = result.split ? std::max(0.0, result.seconds_per_iteration - result.split->compute) : 0;
  const std::string overlap = options.overlap ? "on" : "off";

  fmt::print("{} {}: {} cells on {} {}{}, split {}\n", app, options.size, join(options.extents), context.size(),
             options.threads > 0 ? "thread" : "rank", context.size() == 1 ? "" : "s", split_of(grid));
  const auto& paths = halo.plan().paths;
  if (result.gpus > 0) fmt::print("  on {} GPU{}, {}\n", result.gpus, result.gpus == 1 ? "" : "s", result.gpu_name);
  if (!options.communicate) fmt::print("  WITHOUT COMMUNICATION: the result is wrong on more than one rank\n");
  fmt::print("  overlap {}, path {} ({}), engine {}\n", overlap, options.path,
             paths.empty() ? "not needed" : fmt::format("{}", fmt::join(paths, ", ")), options.engine);
  if (!result.engine_why.empty()) fmt::print("  engine by trial       {}\n", result.engine_why);
  if (!halo.plan().commands.empty() && !halo.device_group().empty())
    fmt::print("  who exchanges         {}\n", halo.device_group());
  fmt::print("  iterations            {}\n", result.iterations);
  fmt::print("  time per iteration    {:.2f} us\n", result.seconds_per_iteration * 1e6);
  fmt::print("  performance           {:.3f} GFLOPS\n", gflops);
  fmt::print("  effective bandwidth   {:.2f} GB/s\n", bandwidth);
  if (options.engine != "kernel") fmt::print("  communication share   {:.1f} %\n", result.communication_share * 100);
  if (result.stages)
    fmt::print("  stages                compute {:.2f} us, exchange {:.2f} us, {} {:.2f} us\n",
               result.stages->compute * 1e6, result.stages->exchange * 1e6, result.norm_name,
               result.stages->norm * 1e6);
  if (result.split) {
    fmt::print("  computation alone     {:.1f} us\n", result.split->compute * 1e6);
    fmt::print("  exchange alone        {:.1f} us, of which {:.1f} us are not hidden\n", result.split->exchange * 1e6,
               exposed * 1e6);
  }
  fmt::print("  {:<21} {:.6e}{}\n", result.norm_name, result.norm, result.norm_remark);
  if (result.verified) {
    fmt::print("  verified              {}\n",
               *result.verified ? "every bit as in the serial run" : "NO: the result differs from the serial run");
  }
  if (options.explain) fmt::print("\n{}\n", halo.explain());
  std::fflush(stdout);

  if (!options.json.empty()) {
    nlohmann::json json = {{"app", app},
                           {"size", options.size},
                           {"extents", options.extents},
                           {"split", split_of(grid)},
                           {"ranks", context.size()},
                           {"threads", options.threads > 0},
                           {"iterations", result.iterations},
                           {result.norm_name, result.norm},
                           {"gflops", gflops},
                           {"bandwidth_gbs", bandwidth},
                           {"norm_every", options.norm_every},
                           {"stages_us", nullptr},
                           {"seconds_per_iteration", result.seconds_per_iteration},
                           {"communication_share", result.communication_share},
                           {"verified", nullptr},
                           {"device", result.gpus > 0 ? "gpu" : "cpu"},
                           {"gpus", result.gpus},
                           {"gpu", result.gpu_name},
                           {"compute_us", nullptr},
                           {"exchange_us", nullptr},
                           {"exposed_us", nullptr},
                           {"communicate", options.communicate},
                           {"path", options.path},
                           {"paths_used", halo.plan().paths},
                           {"engine", options.engine},
                           {"engine_why", result.engine_why},
                           {"group", halo.device_group()},
                           {"overlap", options.overlap},
                           {"reorder", options.reorder},
                           {"mapping", options.mapping},
                           {"mpi", mpi_version()}};
    if (options.engine == "kernel") json.erase("communication_share");  // nobody measures it within the kernel
    if (result.verified) json["verified"] = *result.verified;
    if (result.stages)
      json["stages_us"] = {{"compute", result.stages->compute * 1e6},
                           {"exchange", result.stages->exchange * 1e6},
                           {"norm", result.stages->norm * 1e6}};
    if (result.split) {
      json["compute_us"] = result.split->compute * 1e6;
      json["exchange_us"] = result.split->exchange * 1e6;
      json["exposed_us"] = exposed * 1e6;
    }
    std::ofstream file(options.json);
    file << json.dump(2) << '\n';
    file.close();
    if (!file) throw tasuki::Error(fmt::format("--json {}: cannot write this file", options.json));
  }
  return failed ? 1 : 0;
}

}  // namespace apps
