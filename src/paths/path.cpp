// Path: what all paths share: registration, prices, packed sides.
#include "paths/path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::vector<PathRegistration::Make>& makers() {
  static std::vector<PathRegistration::Make> list;
  return list;
}

// Used only where nothing could be measured, that is where no second rank exists on which it could matter.
constexpr double kLatency = 1e-6;
constexpr double kBandwidth = 5e9;
constexpr double kPerRun = 2e-9;

std::int64_t round_up(std::int64_t bytes, std::int64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

std::vector<StridedCopy> packed(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain,
                                bool pack_destination) {
  std::vector<StridedCopy> result(copies.begin(), copies.end());
  for (auto& copy : result) {
    (pack_destination ? copy.dst_offset : copy.src_offset) = offset;
    offset += round_up(copy.bytes(), grain);
    std::int64_t stride = copy.block;
    for (int d = copy.ndims - 1; d >= 0; --d) {
      (pack_destination ? copy.dims[d].dst_stride : copy.dims[d].src_stride) = stride;
      stride *= copy.dims[d].count;
    }
  }
  return result;
}

}  // namespace

std::int64_t Move::bytes() const {
  return packed_bytes(copies);
}

std::int64_t Move::runs() const {
  std::int64_t sum = 0;
  for (const auto& copy : copies) sum += copy.blocks();
  return sum;
}

void Link::delivers(std::size_t move, int command) {
  if (commands.empty()) {
    commands.assign(moves.size(), -1);
    first_commands = commands;
  }
  commands[move] = command;
  if (first_commands[move] < 0) first_commands[move] = command;
}

std::string Link::name(const char* what, int writer) const {
  return fmt::format("{}/{}.{}<{}", path, what, number, writer);
}

std::int64_t Link::bytes() const {
  std::int64_t sum = 0;
  for (const auto* move : moves) sum += move->bytes();
  return sum;
}

void Path::prepare(Runtime&, const std::string&) {}

bool Path::carries(const Command& command) const {
  return command.verb == Verb::send || command.verb == Verb::recv;
}

std::unique_ptr<Channel> Path::open(const ChannelRequest& request) const {
  throw Error(fmt::format("rank {}: {}: path {} opens no channel for {} (a defect in Tasuki)", request.plan.rank,
                          request.plan.operation, name(), to_string(request.command.verb)));
}

namespace {

// The constant of the path called `name` that holds for the move.
double constant(const Profile& profile, const std::string& name, const Move& move, const char* key, double fallback) {
  const double one_way = profile.get(name, key, fallback);
  return move.mutual ? profile.get(name, std::string("mutual_") + key, one_way) : one_way;
}

double run_seconds(const Profile& profile, const std::string& name, const Move& move) {
  return static_cast<double>(move.runs()) * constant(profile, name, move, "per_run", kPerRun);
}

}  // namespace

Offer priced(const Profile& profile, const std::string& name, const Move& move) {
  const double bandwidth = constant(profile, name, move, "bandwidth", kBandwidth);
  const double bulk_bandwidth = constant(profile, name, move, "bulk_bandwidth", bandwidth);
  const auto bytes = static_cast<double>(move.bytes());
  const double whole = std::max(static_cast<double>(move.whole), bytes);
  const double bulk = whole > 0 ? bytes * std::max(1 - profile.get(name, "bulk_from", whole) / whole, 0.0) : 0;
  return Offer::yes(constant(profile, name, move, "latency", kLatency),
                    (bytes - bulk) / bandwidth + bulk / bulk_bandwidth + run_seconds(profile, name, move));
}

Offer priced_in_place(const Profile& profile, const std::string& name, const Move& move) {
  Offer offer = priced(profile, name, move);
  if (move.shares_lines()) offer.seconds += run_seconds(profile, name, move);
  return offer;
}

std::vector<StridedCopy> pack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain) {
  return packed(copies, offset, grain, true);
}

std::vector<StridedCopy> unpack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain) {
  return packed(copies, offset, grain, false);
}

std::int64_t packed_bytes(std::span<const StridedCopy> copies, std::int64_t grain) {
  std::int64_t sum = 0;
  for (const auto& copy : copies) sum += round_up(copy.bytes(), grain);
  return sum;
}

int deliver(Builder& builder, const Link& link, std::size_t i, int source, std::span<const StridedCopy> copies,
            std::int64_t source_step) {
  const Move& move = *link.moves[i];
  if (move.add != DType::none) {
    return builder.reduce(link.peer, source, link.dst[i], copies, source_step, builder.user_step(), move.add);
  }
  return builder.copy(link.peer, source, link.dst[i], copies, source_step, builder.user_step());
}

namespace {

std::string family_of(const std::string& name) {
  return name.substr(0, name.find(':'));
}

// The names in a list with commas.
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

PathRegistration::PathRegistration(Make make) {
  makers().push_back(make);
}

PathSet::PathSet(Runtime& runtime) {
  for (const auto make : makers()) paths_.push_back(make(runtime, profile));
  // Link order of the sources must not decide anything.
  std::sort(paths_.begin(), paths_.end(), [](const auto& a, const auto& b) { return a->name() < b->name(); });
}

const Path& PathSet::find(const std::string& name) const {
  for (const auto& path : paths_) {
    if (path->name() == name) return *path;
  }
  throw Error(fmt::format("a plan names path {}, which this build of Tasuki does not have", name));
}

bool PathSet::allows(const std::string& wanted, const Path& path) {
  const std::string name = path.name();
  const std::string family = family_of(name);
  for (const std::string& one : listed(wanted)) {
    if (one == "auto" || one == name || one == family) return true;
  }
  return false;
}

bool PathSet::forces(const std::string& wanted, const Path& path) {
  return wanted != "auto" && listed(wanted).size() == 1 && allows(wanted, path);
}

std::string PathSet::complaint(const std::string& wanted) const {
  std::vector<std::string> names{"auto"};
  for (const auto& path : paths_) {
    const std::string family = family_of(path->name());
    if (family == "self") continue;  // cannot be chosen
    if (std::find(names.begin(), names.end(), family) == names.end()) names.push_back(family);
    if (family != path->name()) names.push_back(path->name());
  }
  for (const std::string& one : listed(wanted)) {
    if (std::find(names.begin(), names.end(), one) != names.end()) continue;
    return fmt::format("there is no path '{}'; give one of {}, or several with commas between them", one,
                       fmt::join(names, ", "));
  }
  return {};
}

}  // namespace tasuki
