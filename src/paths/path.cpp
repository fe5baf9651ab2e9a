// Path: what all paths share: registration, names, prices.
#include "paths/path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layout/transpose_kernels.hpp"
#include "machine/path_names.hpp"
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

// Where `at` lies between two sizes, by their logarithms: 0 is at the one below, 1 at the one above.
double share_between(std::int64_t below, std::int64_t above, double at) {
  const auto least = static_cast<double>(below);
  return std::log(at / least) / std::log(static_cast<double>(above) / least);
}

// Between two sizes that are known, the logarithm of the bandwidth changes with that of the size.
double bandwidth_of(const std::vector<SizedBandwidth>& by_size, double bytes) {
  const auto above = std::find_if(by_size.begin(), by_size.end(),
                                  [&](const auto& one) { return static_cast<double>(one.bytes) >= bytes; });
  if (above == by_size.begin()) return above->bandwidth;
  if (above == by_size.end()) return by_size.back().bandwidth;
  const SizedBandwidth& below = above[-1];
  const double share = share_between(below.bytes, above->bytes, bytes);
  return below.bandwidth * std::pow(above->bandwidth / below.bandwidth, share);
}

// The protocol by which a piece of so many bytes goes; null: the path's first one.
const ProtocolSwitch* switched(const LinkCost& link, double bytes) {
  const ProtocolSwitch* found = nullptr;
  for (const ProtocolSwitch& one : link.switches)
    if (bytes > static_cast<double>(one.bytes)) found = &one;
  return found;
}

// Seconds that a host's copy takes more for each cache line where it turns rows into columns, in any memory. Measured
// on an EPYC: the runs that calibration moves lie otherwise, and their times do not hold here.
constexpr double kTurnedLine = 8e-9;

// By how many seconds a run that is scattered at both ends takes longer than `per_run` where an epoch moves so many.
double more_of_a_run(const LinkCost& link, double runs) {
  RunsPrice below{LinkCost::few_runs, link.per_run};
  for (const RunsPrice& above : link.by_runs) {
    const auto few = static_cast<double>(below.runs);
    const auto many = static_cast<double>(above.runs);
    if (runs <= few) break;
    if (runs < many) {
      below.seconds += (above.seconds - below.seconds) * std::log(runs / few) / std::log(many / few);
      break;
    }
    below = above;
  }
  return below.seconds - link.per_run;
}

// As many runs as the epoch would have if all of its pieces were like this one.
double runs_of_epoch(const Question& q) {
  const auto bytes = static_cast<double>(std::max<std::int64_t>(q.move.bytes(), 1));
  return static_cast<double>(q.move.runs()) * std::max(static_cast<double>(q.moved) / bytes, 1.0);
}

double more_of_a_run(const Question& q) {
  return more_of_a_run(link_cost(q), runs_of_epoch(q));
}

// Seconds that the runs take: that is work for each of them, and waiting for lines at each end where they are
// scattered.
double run_seconds(const Question& q) {
  const LinkCost& link = link_cost(q);
  const auto lines = static_cast<double>(q.src.memory == Memory::host ? q.move.turned_lines() : 0);
  const double seconds = static_cast<double>(q.move.other_runs()) * link.per_run + lines * kTurnedLine;
  const double more = more_of_a_run(q);
  if (more == 0) return seconds;  // caches hold the lines, and nobody need look at the patterns
  double ends = 0;
  for (const StridedCopy& copy : q.move.copies) {
    if (turned(copy)) continue;
    const int scattered =
        int{copy.src_pattern() != Pattern::contiguous} + int{copy.dst_pattern() != Pattern::contiguous};
    ends += static_cast<double>(copy.blocks() * scattered);
  }
  return seconds + ends / 2 * more;
}

// Seconds of the program's next stores to the piece, and loads of it. Where ranks touch single elements of cache lines,
// the price of a run contains them (`priced_in_place`).
double reuse_seconds(const Question& q) {
  const std::vector<SizedReuse>& by_size = q.own_memory && q.cost.own ? q.cost.own_reuse : q.cost.reuse;
  if (by_size.empty()) return 0;
  double bytes = 0;
  for (const StridedCopy& copy : q.move.copies)
    if (copy.block >= q.machine.constants.cache_line) bytes += static_cast<double>(copy.bytes());
  const auto of_byte = [](const SizedReuse& one) { return one.seconds / static_cast<double>(one.bytes); };
  const double all = static_cast<double>(std::max({q.move.bytes(), q.move.whole, q.moved}));
  const auto above =
      std::ranges::find_if(by_size, [&](const SizedReuse& one) { return static_cast<double>(one.bytes) >= all; });
  if (above == by_size.begin()) return bytes * of_byte(*above);
  const SizedReuse& below = above[-1];
  if (above == by_size.end()) return bytes * of_byte(below);
  const double share = share_between(below.bytes, above->bytes, all);
  return bytes * (of_byte(below) + share * (of_byte(*above) - of_byte(below)));
}

// At how many ends the move is packed or unpacked where a message carries it.
int scattered_sides(const Move& move) {
  const auto scattered = [&](const auto& pattern) {
    return move.copies.size() > 1 || (move.copies.size() == 1 && pattern(move.copies.front()) > Pattern::contiguous);
  };
  return int{scattered([](const StridedCopy& copy) { return copy.src_pattern(); })} +
         int{scattered([](const StridedCopy& copy) { return copy.dst_pattern(); })};
}

}  // namespace

PathRegistration::PathRegistration(Path (*make)()) {
  makers().push_back(make);
}

bool Path::carries(Verb verb) const {
  return std::find(carried.begin(), carried.end(), verb) != carried.end();
}

std::string_view to_string(Resource resource) {
  switch (resource) {
    case Resource::core:
      return "core";
    case Resource::peer_core:
      return "peer core";
    case Resource::gpu:
      return "GPU";
    case Resource::links:
      return "links of the GPU";
    case Resource::network:
      break;
  }
  return "network outside";
}

bool by_outside(const Machine& machine, const Path& path, int a, int b) {
  const bool on_gpu = path.memory == Memory::device;
  if (!(on_gpu ? machine.reach(a, b) : machine.same_island(a, b))) return true;
  if (const auto found = machine.uses.find(path.name); found != machine.uses.end()) return found->second == "outside";
  if (!path.outside || on_gpu) return path.outside;
  // Within a host messages of host memory need no network, and an island may have one network only.
  return !machine.same_host(a, b) && machine.outside.kind != Network::Kind::none;
}

Resource resource_of(const Machine& machine, const Path& path, int a, int b) {
  if (path.memory == Memory::host || a == b) return path.resource;
  return by_outside(machine, path, a, b) ? Resource::network : Resource::links;
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
  const std::string current = current_path_name(name);
  for (const Path& path : all_paths()) {
    if (path.name == current) return path;
  }
  throw Error(fmt::format("a plan names path '{}', which this build of Tasuki does not have", name));
}

Offer priced(const Question& q) {
  const LinkCost& cost = link_cost(q);
  const auto bytes = static_cast<double>(q.move.bytes());
  const double whole = std::max(static_cast<double>(q.move.whole), bytes);
  // A piece is no faster for what else moves in the epoch, and slower if caches do not hold all of it.
  const double moved = cost.by_size.empty() ? whole : std::max(static_cast<double>(q.moved), whole);
  const double seconds = std::max(seconds_of(q.cost, cost, bytes, whole), seconds_of(q.cost, cost, bytes, moved));
  Offer offer = Offer::yes(latency_of(cost, std::max(q.move.whole, q.move.bytes())), seconds + run_seconds(q));
  offer.reuse = reuse_seconds(q);
  if (q.cost.descriptors > 0 && q.move.descriptors() > q.cost.descriptors) offer.seconds += q.cost.more_descriptors;
  return offer;
}

double latency_of(const LinkCost& link, std::int64_t bytes) {
  const ProtocolSwitch* other = switched(link, static_cast<double>(bytes));
  return other != nullptr ? other->latency : link.latency;
}

double seconds_of(const PathCost& cost, const LinkCost& link, double bytes, double whole) {
  if (whole <= 0) return 0;
  if (const ProtocolSwitch* other = switched(link, whole)) return bytes / other->bandwidth;
  if (!link.by_size.empty()) return bytes / bandwidth_of(link.by_size, whole);
  const double bulk_from = cost.bulk_from > 0 ? static_cast<double>(cost.bulk_from) : whole;
  const double bulk = bytes * std::max(1 - bulk_from / whole, 0.0);
  return (bytes - bulk) / link.bandwidth + bulk / link.bulk_bandwidth;
}

double packing_seconds(const Machine& machine, std::int64_t bytes, std::int64_t runs) {
  const PathCost& own = machine.cost("self:gpu");
  const auto all = static_cast<double>(bytes);
  if (!own.measured) return all / machine.constants.gpu_copy_bandwidth;
  return own.one_way.latency + seconds_of(own, own.one_way, all, all) + static_cast<double>(runs) * own.one_way.per_run;
}

Offer priced_packed(const Question& q) {
  Offer offer = priced(q);
  offer.seconds += scattered_sides(q.move) * packing_seconds(q.machine, q.move.bytes(), q.move.other_runs());
  return offer;
}

Offer priced_as_message(const Question& q) {
  Offer offer = priced_through_ring(q);
  const PathCost& self = q.machine.cost("self");
  if (!self.measured) return offer;
  const auto bytes = static_cast<double>(q.move.bytes());
  const double moved = std::max({bytes, static_cast<double>(q.move.whole), static_cast<double>(q.moved)});
  offer.seconds += scattered_sides(q.move) * seconds_of(self, q.move.mutual ? self.mutual : self.one_way, bytes, moved);
  return offer;
}

Offer without_tiles(Offer offer, const Question& q) {
  offer.seconds += static_cast<double>(q.move.runs() - q.move.other_runs()) * link_cost(q).per_run;
  return offer;
}

Offer priced_through_ring(const Question& q) {
  Offer offer = priced(q);
  double less = 0;
  for (const StridedCopy& copy : q.move.copies) {
    const bool one = (copy.src_pattern() == Pattern::contiguous) != (copy.dst_pattern() == Pattern::contiguous);
    if (one && !turned(copy)) less += static_cast<double>(copy.blocks()) * link_cost(q).per_run / 2;
  }
  offer.seconds -= less;
  return offer;
}

Offer priced_in_place(const Question& q, Pattern (StridedCopy::*far)() const) {
  Offer offer = priced(q);
  double more = 0;
  for (const StridedCopy& copy : q.move.copies) {
    if (turned(copy)) continue;
    const auto blocks = static_cast<double>(copy.blocks());
    if ((copy.*far)() == Pattern::contiguous) {
      // The runs lie in this rank's memory only, which is as when it packs.
      const PathCost& self = q.machine.cost("self");
      if (!self.measured) continue;
      const double waits = more_of_a_run(self.one_way, runs_of_epoch(q)) - more_of_a_run(q);
      more += blocks * (self.one_way.per_run - link_cost(q).per_run + waits / 2);
    } else if (copy.block < q.machine.constants.cache_line) {
      more += blocks * (link_cost(q).per_run + more_of_a_run(q));  // both ranks touch each of these cache lines
    }
  }
  offer.seconds = std::max(offer.seconds + more, 0.0);
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

}  // namespace tasuki
