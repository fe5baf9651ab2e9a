// The results as a table for people and as JSON for programs.
#include "report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tasuki/error.hpp"

namespace bench {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, length);
  version = version.substr(0, std::min(version.find('\n'), version.find(", package")));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version;
}

double median_of(const CaseResult& result, const std::string& peer) {
  for (const Times& times : result.times) {
    if (times.peer == peer) return times.median;
  }
  return 0;
}

// The median of the peer that this one is compared with; 0 if there is none, or it is that one itself.
double reference_of(const CaseResult& result, const std::string& peer) {
  const bool graph = peer.ends_with(kReplayed);
  const std::string reference = graph ? std::string(kReference) + kReplayed : kReference;
  return peer == reference ? 0 : median_of(result, reference);
}

std::string microseconds(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  return value < 1000 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

void print_table(const std::vector<Measured>& all) {
  fmt::print("\n{:<36} {:>10}  {:<15} {:>10} {:>10} {:>10} {:>8} {:>9}\n", "case", "bytes", "peer", "median us", "p10",
             "p90", "GB/s", "/ tasuki");
  std::string group;
  for (const Measured& measured : all) {
    if (measured.one.group != group) fmt::print("--- {}\n", measured.one.group);
    group = measured.one.group;
    std::string name = measured.one.name;
    std::string bytes = std::to_string(measured.one.bytes);
    for (const Times& times : measured.result.times) {
      const double reference = reference_of(measured.result, times.peer);
      fmt::print("{:<36} {:>10}  {:<15} {:>10} {:>10} {:>10} {:>8.3f} {:>9}\n", name, bytes, times.peer,
                 microseconds(times.median), microseconds(times.p10), microseconds(times.p90),
                 static_cast<double>(measured.one.bytes) / times.median * 1e-3,
                 reference > 0 ? fmt::format("{:.2f}x", times.median / reference) : "-");
      if (times.overlap) {
        const Overlap& o = *times.overlap;
        fmt::print("{:<36} {:>10}  overlap {:.1f} %: pure {}, computation {}, both {}, start {}, init {} us\n", "", "",
                   o.percent(), microseconds(o.pure), microseconds(o.compute), microseconds(o.overall),
                   microseconds(o.start), microseconds(times.init));
      }
      name.clear();
      bytes.clear();
    }
  }
  std::fflush(stdout);
}

void write_json(const std::string& file, const std::vector<Measured>& all, const Settings& settings, int ranks,
                const std::string& commit, const Facts& facts) {
  nlohmann::json cases = nlohmann::json::array();
  for (const Measured& measured : all) {
    nlohmann::json one = {{"group", measured.one.group},        {"case", measured.one.name},
                          {"bytes", measured.one.bytes},        {"peers", nlohmann::json::object()},
                          {"ratios", nlohmann::json::object()}, {"failed", measured.result.complaints}};
    if (measured.result.cache_lines > 0) one["cache_lines"] = measured.result.cache_lines;
    if (measured.result.bound > 0) one["bound_us"] = measured.result.bound;
    if (measured.result.barrier > 0) one["barrier_us"] = measured.result.barrier;
    for (const Times& times : measured.result.times) {
      auto& peer = one["peers"][times.peer];
      peer = {{"median_us", times.median},
              {"p10_us", times.p10},
              {"p90_us", times.p90},
              {"init_us", times.init},
              {"iterations", times.iterations}};
      if (times.memory) peer["memory_bytes"] = *times.memory;
      if (times.overlap)
        peer["overlap"] = {{"percent", times.overlap->percent()},
                           {"pure_us", times.overlap->pure},
                           {"compute_us", times.overlap->compute},
                           {"overall_us", times.overlap->overall},
                           {"start_us", times.overlap->start}};
      if (times.predicted) peer["predicted_us"] = *times.predicted;
      const double reference = reference_of(measured.result, times.peer);
      if (reference > 0) one["ratios"][times.peer] = times.median / reference;
    }
    cases.push_back(one);
  }
  nlohmann::json machine = {{"cpu", cpu_model()},
                            {"cores", std::thread::hardware_concurrency()},
                            {"ranks", ranks},
                            {"mpi", mpi_version()},
                            {"compiler", "gcc " __VERSION__},
                            {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                            {"commit", commit}};
  for (const auto& [name, value] : facts) machine[name] = value;
  const nlohmann::json json = {{"machine", machine},
                               {"settings", {{"rounds", settings.rounds}, {"round_seconds", settings.round_seconds}}},
                               {"cases", cases}};
  std::ofstream out(file);
  out << json.dump(1) << '\n';
  out.close();
  if (!out) throw tasuki::Error(fmt::format("--json {}: cannot write this file", file));
}

}  // namespace bench
