// Fit: see fit.hpp.
#include "calibrate/fit.hpp"

#include <algorithm>
#include <string>

namespace tasuki {

namespace {

void set_constants(CostSection& section, const std::string& prefix, const Seconds& t, bool on_gpu) {
  constexpr double kLeast = 1e-9;
  const auto large = static_cast<double>(on_gpu ? kLargeOnGpu : kLarge);
  const auto bulk = static_cast<double>(on_gpu ? kBulkOnGpu : kBulk);
  const auto runs = static_cast<double>(on_gpu ? kRunsOnGpu : kRuns);
  const double bandwidth = large / std::max(t.large - t.word, kLeast);
  section[prefix + "latency"] = std::max(t.word, kLeast);
  section[prefix + "bandwidth"] = bandwidth;
  section[prefix + "per_run"] = std::max((t.scattered - t.word - runs * 8 / bandwidth) / runs, 1e-11);
  section["bulk_from"] = large;
  section[prefix + "bulk_bandwidth"] = (bulk - large) / std::max(t.bulk - t.large, kLeast);
}

}  // namespace

CostSection constants_of(const Times& times, bool on_gpu, bool alone) {
  CostSection section;
  set_constants(section, "", times.one_way, on_gpu);
  if (!alone) set_constants(section, "mutual_", times.both_ways, on_gpu);
  // Links occur in both situations. On a host an epoch takes the longer of the two: what is stored runs ahead, but its
  // receiver still waits for the way; of what a library carries, a message may cost more than its way. On GPUs, where
  // graphs of many epochs are timed, it is the mean.
  const double way = times.one_way.word;
  section["latency"] =
      std::max(on_gpu ? (way + times.after) / 2 : std::max(way, times.after), section["latency"] * 1e-3);
  return section;
}

}  // namespace tasuki
