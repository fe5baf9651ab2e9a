// tasuki-bench: times Tasuki and its peers on the same cases, in turn, after checking that each moves the right bytes.
//   mpirun -n 2 tasuki-bench --group halo --json halo.json
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "report.hpp"
#include "tasuki/error.hpp"

namespace {

struct Options {
  std::vector<std::string> groups;
  std::vector<std::string> peers;
  std::string filter;
  std::string json;
  std::string commit;
  bench::Settings settings;
  bool list = false;
  bool quick = false;
};

// Throws CLI::ParseError.
Options parse(CLI::App& app, int argc, char** argv) {
  Options options;
  const char* commit = std::getenv("TASUKI_COMMIT");
  options.commit = commit != nullptr ? commit : "unknown";
  std::vector<std::string> names;
  for (const auto& peer : bench::peers()) names.push_back(peer.name);
  app.add_option("--group", options.groups, "only these groups")
      ->check(CLI::IsMember({"halo", "halo-in-use", "face", "transfer", "broadcast", "overhead"}));
  app.add_option("--filter", options.filter, "only cases whose name contains this text");
  app.add_option("--peer", options.peers, "only these peers")->check(CLI::IsMember(names));
  auto* rounds = app.add_option("--rounds", options.settings.rounds, "samples a peer")
                     ->check(CLI::Range(1, 100000))
                     ->capture_default_str();
  app.add_option("--json", options.json, "write the results to this file");
  app.add_option("--commit", options.commit, "what to call this build in the JSON (or TASUKI_COMMIT)");
  app.add_flag("--list", options.list, "name the cases and the peers and end");
  app.add_flag("--quick", options.quick, "few cases, short rounds: to see that all works, not to quote");
  app.parse(argc, argv);
  if (options.quick) {
    options.settings.round_seconds = 0.003;
    if (rounds->empty()) options.settings.rounds = 5;
  }
  return options;
}

std::vector<bench::Case> chosen_cases(int ranks, const Options& options) {
  std::vector<bench::Case> chosen;
  for (const auto& group : {bench::halo_cases(ranks), bench::transfer_cases(ranks), bench::broadcast_cases(ranks),
                            bench::overhead_cases(ranks)}) {
    for (const auto& one : group) {
      const auto& groups = options.groups;
      if (!groups.empty() && std::find(groups.begin(), groups.end(), one.group) == groups.end()) continue;
      if (options.quick && !one.quick) continue;
      if (one.name.find(options.filter) != std::string::npos) chosen.push_back(one);
    }
  }
  return chosen;
}

int run(const tasuki::Context& context, const Options& options) {
  const std::vector<bench::Case> cases = chosen_cases(context.size(), options);
  if (options.list) {
    if (!context.is_root()) return 0;
    for (const auto& one : cases) fmt::print("{}: {}\n", one.group, one.name);
    fmt::print("peers:");
    for (const auto& peer : bench::peers()) fmt::print(" {}", peer.name);
    fmt::print("\n");
    return 0;
  }
  if (cases.empty()) throw tasuki::Error("tasuki-bench: no case is left by --group, --filter and --quick; see --list");
  std::vector<bench::Measured> all;
  bool failed = false;
  for (const auto& one : cases) {
    all.push_back({one, bench::measure(context, one, options.peers, options.settings)});
    for (const auto& complaint : all.back().result.complaints) {
      failed = true;
      if (context.is_root()) fmt::print(stderr, "WRONG: {}\n", complaint);
    }
    if (context.is_root()) fmt::print(stderr, "{} of {}: {}: {}\n", all.size(), cases.size(), one.group, one.name);
  }
  if (context.is_root()) {
    bench::print_table(all);
    if (!options.json.empty()) {
      bench::write_json(options.json, all, options.settings, context.size(), options.commit);
    }
  }
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const tasuki::Context context(argc, argv);
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
