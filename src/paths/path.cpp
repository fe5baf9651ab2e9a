// Path: what all paths share: registration, names, prices.
#include "paths/path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::vector<Path (*)()>& makers() {
  static std::vector<Path (*)()> list;
  return list;
}

const LinkCost& link_cost(const Question& q) {
  if (q.own_memory && q.cost.own) return q.move.mutual ? q.cost.own_mutual : q.cost.own_one_way;
  return q.move.mutual ? q.cost.mutual : q.cost.one_way;
}

// Between two sizes that are known, the logarithm of the bandwidth changes with that of the size.
double bandwidth_of(const std::vector<SizedBandwidth>& by_size, double bytes) {
  const auto above = std::find_if(by_size.begin(), by_size.end(),
                                  [&](const auto& one) { return static_cast<double>(one.bytes) >= bytes; });
  if (above == by_size.begin()) return above->bandwidth;
  if (above == by_size.end()) return by_size.back().bandwidth;
  const SizedBandwidth& below = above[-1];
  const double share = std::log(bytes / static_cast<double>(below.bytes)) /
                       std::log(static_cast<double>(above->bytes) / static_cast<double>(below.bytes));
  return below.bandwidth * std::pow(above->bandwidth / below.bandwidth, share);
}

double run_seconds(const Question& q) {
  return static_cast<double>(q.move.runs()) * link_cost(q).per_run;
}

std::string family_of(const std::string& name) {
  return name.substr(0, name.find(':'));
}

// The names in a list that is separated by commas.
std::vector<std::string> listed(const std::string& names) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    all.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

}  // namespace

PathRegistration::PathRegistration(Path (*make)()) {
  makers().push_back(make);
}

bool Path::carries(Verb verb) const {
  return std::find(carried.begin(), carried.end(), verb) != carried.end();
}

const std::vector<Path>& all_paths() {
  static const std::vector<Path> paths = [] {
    std::vector<Path> list;
    for (const auto make : makers()) list.push_back(make());
    // The order in which sources are linked must not decide anything.
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return list;
  }();
  return paths;
}

const Path& path_named(const std::string& name) {
  for (const Path& path : all_paths()) {
    if (path.name == name) return path;
  }
  throw Error(fmt::format("a plan names path '{}', which this build of Tasuki does not have", name));
}

bool allows(const std::string& wanted, const Path& path) {
  if (wanted == "auto") return true;
  const std::string family = family_of(path.name);
  for (const std::string& one : listed(wanted)) {
    if (one == "auto" || one == path.name || one == family) return true;
  }
  return false;
}

bool forces(const std::string& wanted, const Path& path) {
  return wanted != "auto" && listed(wanted).size() == 1 && allows(wanted, path);
}

std::string path_complaint(const std::string& wanted) {
  std::vector<std::string> names{"auto"};
  for (const Path& path : all_paths()) {
    const std::string family = family_of(path.name);
    if (family == "self") continue;  // cannot be chosen
    if (std::find(names.begin(), names.end(), family) == names.end()) names.push_back(family);
    if (family != path.name) names.push_back(path.name);
  }
  for (const std::string& one : listed(wanted)) {
    if (std::find(names.begin(), names.end(), one) != names.end()) continue;
    return fmt::format("there is no path '{}'; give one of {}, or several with commas between them", one,
                       fmt::join(names, ", "));
  }
  return {};
}

Offer priced(const Question& q) {
  const LinkCost& cost = link_cost(q);
  const auto bytes = static_cast<double>(q.move.bytes());
  const double whole = std::max(static_cast<double>(q.move.whole), bytes);
  const double moved = cost.by_size.empty() ? whole : std::max(static_cast<double>(q.moved), whole);
  return Offer::yes(cost.latency, seconds_of(q.cost, cost, bytes, moved) + run_seconds(q));
}

double seconds_of(const PathCost& cost, const LinkCost& link, double bytes, double whole) {
  if (whole <= 0) return 0;
  if (!link.by_size.empty()) return bytes / bandwidth_of(link.by_size, whole);
  const double bulk_from = cost.bulk_from > 0 ? static_cast<double>(cost.bulk_from) : whole;
  const double bulk = bytes * std::max(1 - bulk_from / whole, 0.0);
  return (bytes - bulk) / link.bandwidth + bulk / link.bulk_bandwidth;
}

Offer priced_in_place(const Question& q) {
  Offer offer = priced(q);
  if (q.move.shares_lines()) offer.seconds += run_seconds(q);
  return offer;
}

bool joins_in_island(const Machine& machine, int a, int b) {
  return a != b && machine.same_island(a, b);
}

bool joins_gpus(const Machine& machine, int a, int b) {
  return a != b && machine.reach(a, b);
}

std::string not_in_island(const Question& q) {
  if (q.move.src_rank == q.move.dst_rank) return "same rank";
  return q.machine.same_island(q.move.src_rank, q.move.dst_rank) ? "" : "another island";
}

std::string not_between_gpus(const Question& q) {
  if (q.move.src_rank == q.move.dst_rank) return "same rank";
  if (q.machine.reach(q.move.src_rank, q.move.dst_rank)) return {};
  return q.machine.gpu_reason.empty() ? "the GPUs do not reach each other" : q.machine.gpu_reason;
}

std::string not_between_islands(const Question& q, const std::string& path) {
  if (q.move.src_rank == q.move.dst_rank) return "same rank";
  if (!q.forced && q.machine.reach(q.move.src_rank, q.move.dst_rank))
    return fmt::format("the GPUs reach each other (path '{}' takes it all the same)", path);
  return {};
}

}  // namespace tasuki
