// tasuki-bench: times Tasuki and its peers on the same cases, in turn, after checking that each moves the right bytes.
//   mpirun -n 2 tasuki-bench --group halo --json halo.json
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#ifdef TASUKI_HAVE_CUDA
#include "gpu/cases.hpp"
#include "gpu/problem.hpp"
#endif
#include "report.hpp"
#include "tasuki/device.hpp"
#include "tasuki/error.hpp"
#include "tasuki/operation.hpp"

namespace {

struct Options {
  std::vector<std::string> groups;
  std::vector<std::string> peers;
  std::vector<std::string> paths;
  std::string device = "auto";
  std::string filter;
  std::string json;
  std::string commit;
  bench::Settings settings;
  bool rounds_given = false;
  bool list = false;
  bool quick = false;
  bool forced = false;
};

// Throws CLI::ParseError.
Options parse(CLI::App& app, int argc, char** argv) {
  Options options;
  const char* commit = std::getenv("TASUKI_COMMIT");
  options.commit = commit != nullptr ? commit : "unknown";
  std::vector<std::string> names;
  for (const auto& peer : bench::peers()) names.push_back(peer.name);
  app.add_option("--group", options.groups, "only these groups")
      ->check(CLI::IsMember({"halo", "halo-in-use", "face", "transfer", "broadcast", "collective", "collective-own",
                             "collective-large", "price", "neighbour", "transpose", "mesh", "overhead", "gpu-halo",
                             "gpu-face", "gpu-copy", "gpu-collectives", "gpu-collectives-alone", "gpu-overlap"}));
  app.add_option("--device", options.device, "where the data are; auto: as --group says, else on GPUs if all have one")
      ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--peer-path", options.paths, "on GPUs also Tasuki forced to these paths, as peers of their own")
      ->delimiter(',');
  app.add_option("--filter", options.filter, "only cases whose line in --list contains this text");
  app.add_option("--peer", options.peers, "only these peers")->check(CLI::IsMember(names));
  auto* rounds = app.add_option("--rounds", options.settings.rounds, "samples a peer; 7 on GPUs")
                     ->check(CLI::Range(1, 100000))
                     ->capture_default_str();
  app.add_option("--json", options.json, "write the results to this file");
  app.add_option("--commit", options.commit, "what to call this build in the JSON (or TASUKI_COMMIT)");
  app.add_flag("--forced", options.forced,
               "on hosts also Tasuki forced to each path and algorithm, as peers of their own");
  app.add_flag("--list", options.list, "name the cases and the peers and end");
  app.add_flag("--quick", options.quick, "few cases, short rounds: to see that all works, not to quote");
  app.parse(argc, argv);
  options.rounds_given = !rounds->empty();
  return options;
}

// Machines with several GPUs are dear, and quieter than small ones: fewer and shorter rounds.
bench::Settings settings_for(bool gpus, const Options& options) {
  bench::Settings settings = options.settings;
  if (gpus) settings.round_seconds = 0.02;
  if (gpus && !options.rounds_given) settings.rounds = 7;
  if (options.forced) settings.round_seconds = 0.015;  // there are dozens of peers
  if (options.quick) settings.round_seconds = 0.003;
  if (options.quick && !options.rounds_given) settings.rounds = 5;
  return settings;
}

bool of_gpus(const std::string& group) {
  return group.starts_with("gpu-");
}

// Whether the cases on GPUs are to run. Collective; throws on all ranks if they cannot.
bool settle_device(const tasuki::Context& context, const Options& options) {
  const auto& groups = options.groups;
  std::string device = options.device;
  if (device == "auto" && !groups.empty()) {
    device = std::any_of(groups.begin(), groups.end(), of_gpus) ? "gpu" : "cpu";
  }
  if (device == "cpu") return false;
  std::string missing = tasuki::why_no_gpu();
#ifndef TASUKI_HAVE_CUDA
  if (missing.empty()) missing = "this program was built without its GPU sources; `make build` adds them";
#endif
  if (!missing.empty()) missing = fmt::format("rank {}: {}", context.rank(), missing);
  missing = bench::agree(context, missing);
  if (missing.empty()) return true;
  if (device == "gpu") throw tasuki::Error("the cases on GPUs cannot run: " + missing);
  return false;
}

std::vector<bench::Case> cases_on([[maybe_unused]] bool gpus, int ranks) {
#ifdef TASUKI_HAVE_CUDA
  if (gpus) return bench::gpu_cases(ranks);
#endif
  std::vector<bench::Case> all;
  for (const auto& group : {bench::halo_cases(ranks), bench::transfer_cases(ranks), bench::broadcast_cases(ranks),
                            bench::transpose_cases(ranks), bench::mesh_cases(ranks), bench::collective_cases(ranks),
                            bench::overhead_cases(ranks)}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

std::vector<bench::Case> chosen_cases(bool gpus, int ranks, const Options& options) {
  std::vector<bench::Case> chosen;
  for (const auto& one : cases_on(gpus, ranks)) {
    const auto& groups = options.groups;
    if (!groups.empty() && std::find(groups.begin(), groups.end(), one.group) == groups.end()) continue;
    if (options.quick && !one.quick) continue;
    const std::string listed = fmt::format("{}: {}", one.group, one.name);
    if (listed.find(options.filter) != std::string::npos) chosen.push_back(one);
  }
  return chosen;
}

// What belongs to GPUs alone: the facts for the report, and the peers that --peer-path adds. Collective.
bench::Facts prepare_gpus([[maybe_unused]] const tasuki::Context& context, [[maybe_unused]] Options& options) {
#ifdef TASUKI_HAVE_CUDA
  for (const auto& path : options.paths) {
    bench::add_forced_path(path);
    if (!options.peers.empty()) options.peers.push_back("tasuki " + path);
  }
  bench::Facts facts = bench::gpu_machine(context);
  for (const auto& [name, value] : facts) {
    if (name != "gpus" || !context.is_root() || std::stoi(value) >= context.size()) continue;
    fmt::print(stderr, "{} ranks share {} GPUs and take turns of milliseconds: these times say nothing\n",
               context.size(), value);
  }
  return facts;
#else
  return {};
#endif
}

int run(const tasuki::Context& context, Options options) {
  const bool gpus = settle_device(context, options);
  const std::vector<bench::Case> cases = chosen_cases(gpus, context.size(), options);
  if (!gpus && !options.paths.empty()) throw tasuki::Error("--peer-path is for the cases on GPUs; add --device gpu");
  if (gpus && options.forced) throw tasuki::Error("--forced is for the cases on hosts; --peer-path is for GPUs");
  if (options.forced) bench::add_forced();
  const bench::Settings settings = settings_for(gpus, options);
  bench::Facts facts = gpus ? prepare_gpus(context, options) : bench::Facts{};
  facts.emplace_back("prices", tasuki::machine_of(context).source);
  if (options.list) {
    if (!context.is_root()) return 0;
    for (const auto& one : cases) fmt::print("{}: {}\n", one.group, one.name);
    for (const auto& peer : bench::peers()) fmt::print("peer: {}\n", peer.name);
    return 0;
  }
  if (cases.empty()) throw tasuki::Error("tasuki-bench: no case is left by --group, --filter and --quick; see --list");
  std::vector<bench::Measured> all;
  bool failed = false;
  for (const auto& one : cases) {
    all.push_back({one, bench::measure(context, one, options.peers, settings)});
    for (const auto& complaint : all.back().result.complaints) {
      failed = true;
      if (context.is_root()) fmt::print(stderr, "WRONG: {}\n", complaint);
    }
    if (!context.is_root()) continue;
    fmt::print(stderr, "{} of {}: {}: {}\n", all.size(), cases.size(), one.group, one.name);
    // After every case: what has been measured is kept if a later one ends the job.
    if (!options.json.empty()) {
      bench::write_json(options.json, all, settings, context.size(), options.commit, facts);
    }
  }
#ifdef TASUKI_HAVE_CUDA
  bench::end_nvshmem();
#endif
  if (context.is_root()) bench::print_table(all);
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Peer `peer copies` is the only one with an MPI window; Open MPI's module for UCX prints an error at making one
  // where there is no fast network.
  setenv("OMPI_MCA_osc", "^ucx", 0);
  const tasuki::Context context(argc, argv);
  tasuki::machine_of(context);  // transfers take the prices that are there
  CLI::App app("Times Tasuki and its peers on the same cases", "tasuki-bench");
  try {
    return run(context, parse(app, argc, argv));
  } catch (const CLI::ParseError& end) {
    const bool failed = end.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success);
    if (context.is_root() && failed) fmt::print(stderr, "tasuki-bench: {}\n", end.what());
    if (context.is_root() && !failed) fmt::print("{}", app.help());
    return failed ? 2 : 0;
  } catch (const std::exception& error) {
    // Rank 0 speaks for errors that come up everywhere; it ends the job before the others' patience does.
    if (!context.is_root()) usleep(500'000);
    fmt::print(stderr, "rank {}: {}\n", context.rank(), error.what());
    std::fflush(nullptr);
    MPI_Abort(context.comm(), 1);
  }
}
