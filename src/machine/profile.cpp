// Profile: see profile.hpp. The file is `{"machine": "...", "version": 13, "paths": {"mpi": {"latency": 1e-6, ...}}}`,
// with corrections also `"collectives": {"version": 2, "corrections": [...]}`, and `"measured": [{"date": ...}]`, which
// tells how the prices came about.
#include "machine/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "machine/corrections.hpp"
#include "machine/path_names.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr int kVersion = 13;
constexpr int kModel = 2;  // of what predicts collectives: a change makes corrections void
constexpr std::array kPrefixes{"", "mutual_", "own_", "own_mutual_"};
constexpr std::string_view kSized = "bandwidth_of_";
constexpr std::string_view kLatencyAbove = "latency_above_";
constexpr std::string_view kBandwidthAbove = "bandwidth_above_";
constexpr std::string_view kRunsOf = "per_run_of_";
constexpr std::string_view kReuseOf = "reuse_of_";
constexpr std::array kReusePrefixes{"", "own_"};  // both ranks send to each other

// The number in `bandwidth_of_4096`, which begins with `name` after the prefix; nothing for other keys.
std::optional<std::int64_t> number_of(std::string_view key, std::string_view prefix, std::string_view name) {
  if (!key.starts_with(prefix)) return {};
  key.remove_prefix(prefix.size());
  if (!key.starts_with(name)) return {};
  key.remove_prefix(name.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || number < 1) return {};
  return number;
}

// What is missing is as in `usual`.
LinkCost link_of(const CostSection& section, const std::string& prefix, const LinkCost& usual) {
  LinkCost link = usual;
  const auto read = [&](const char* key, double& value) {
    const auto found = section.find(prefix + key);
    if (found != section.end()) value = found->second;
    return found != section.end();
  };
  read("latency", link.latency);
  const bool other = read("bandwidth", link.bandwidth);
  const bool usual_bulk = !prefix.empty() && section.contains("bulk_bandwidth");
  if (!read("bulk_bandwidth", link.bulk_bandwidth) && other && !usual_bulk) link.bulk_bandwidth = link.bandwidth;
  read("per_run", link.per_run);
  std::vector<SizedBandwidth> by_size;
  for (const auto& [key, value] : section)
    if (const auto bytes = number_of(key, prefix, kSized)) by_size.push_back({*bytes, value});
  std::sort(by_size.begin(), by_size.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (!by_size.empty()) link.by_size = std::move(by_size);
  std::map<std::int64_t, double> by_runs;
  for (const auto& [key, value] : section)
    if (const auto runs = number_of(key, prefix, kRunsOf)) by_runs.emplace(*runs, value);
  if (!by_runs.empty()) link.by_runs.clear();
  for (const auto& [runs, seconds] : by_runs) link.by_runs.push_back({runs, seconds});
  std::map<std::int64_t, ProtocolSwitch> switches;
  for (const auto& [key, value] : section) {
    const auto bytes = number_of(key, prefix, kLatencyAbove);
    const auto other_bytes = bytes ? bytes : number_of(key, prefix, kBandwidthAbove);
    if (!other_bytes) continue;
    auto& one =
        switches.try_emplace(*other_bytes, ProtocolSwitch{*other_bytes, link.latency, link.bandwidth}).first->second;
    (bytes ? one.latency : one.bandwidth) = value;
  }
  if (!switches.empty()) link.switches.clear();
  for (const auto& [bytes, one] : switches) link.switches.push_back(one);
  return link;
}

std::vector<SizedReuse> reuse_of(const CostSection& section, const char* prefix) {
  std::vector<SizedReuse> reuse;
  for (const auto& [key, value] : section)
    if (const auto bytes = number_of(key, prefix, kReuseOf)) reuse.push_back({*bytes, value});
  std::sort(reuse.begin(), reuse.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return reuse;
}

}  // namespace

std::string price_of_runs(const std::string& prefix, std::int64_t runs) {
  return fmt::format("{}{}{}", prefix, kRunsOf, runs);
}

std::string sized_reuse(const std::string& prefix, std::int64_t bytes) {
  return fmt::format("{}{}{}", prefix, kReuseOf, bytes);
}

std::string sized_bandwidth(const std::string& prefix, std::int64_t bytes) {
  return fmt::format("{}{}{}", prefix, kSized, bytes);
}

bool is_sized(const std::string& key) {
  const auto of_link = [&](const char* prefix) {
    return number_of(key, prefix, kSized) || number_of(key, prefix, kLatencyAbove) ||
           number_of(key, prefix, kBandwidthAbove) || number_of(key, prefix, kRunsOf);
  };
  const auto of_path = [&](const char* prefix) { return number_of(key, prefix, kReuseOf).has_value(); };
  return std::ranges::any_of(kPrefixes, of_link) || std::ranges::any_of(kReusePrefixes, of_path);
}

PathCost cost_of(const CostSection& section) {
  PathCost cost;
  cost.one_way = link_of(section, "", LinkCost{});
  cost.mutual = link_of(section, "mutual_", cost.one_way);
  const auto from = section.lower_bound("own_");
  cost.own = from != section.end() && from->first.starts_with("own_");
  if (cost.own) {
    cost.own_one_way = link_of(section, "own_", cost.one_way);
    // What is not known of such memory is as in other memory, and as one way only where that is not known either.
    LinkCost usual = cost.own_one_way;
    if (!section.contains("own_latency")) usual.latency = cost.mutual.latency;
    if (!section.contains("own_per_run")) usual.per_run = cost.mutual.per_run;
    cost.own_mutual = link_of(section, "own_mutual_", usual);
  }
  cost.reuse = reuse_of(section, kReusePrefixes[0]);
  cost.own_reuse = reuse_of(section, kReusePrefixes[1]);
  if (const auto found = section.find("bulk_from"); found != section.end())
    cost.bulk_from = static_cast<std::int64_t>(found->second);
  if (const auto found = section.find("descriptors"); found != section.end())
    cost.descriptors = static_cast<std::int64_t>(found->second);
  if (const auto found = section.find("more_descriptors"); found != section.end())
    cost.more_descriptors = found->second;
  cost.measured = true;
  return cost;
}

CostSection section_of(const PathCost& cost) {
  CostSection section;
  const std::array<const LinkCost*, 4> links{&cost.one_way, &cost.mutual, &cost.own_one_way, &cost.own_mutual};
  for (std::size_t i = 0; i < (cost.own ? links.size() : 2); ++i) {
    const std::string p = kPrefixes[i];
    section[p + "latency"] = links[i]->latency;
    section[p + "bandwidth"] = links[i]->bandwidth;
    section[p + "bulk_bandwidth"] = links[i]->bulk_bandwidth;
    section[p + "per_run"] = links[i]->per_run;
    for (const SizedBandwidth& one : links[i]->by_size) section[sized_bandwidth(p, one.bytes)] = one.bandwidth;
    for (const RunsPrice& one : links[i]->by_runs) section[price_of_runs(p, one.runs)] = one.seconds;
    for (const ProtocolSwitch& one : links[i]->switches) {
      section[fmt::format("{}{}{}", p, kLatencyAbove, one.bytes)] = one.latency;
      section[fmt::format("{}{}{}", p, kBandwidthAbove, one.bytes)] = one.bandwidth;
    }
  }
  for (const SizedReuse& one : cost.reuse) section[sized_reuse(kReusePrefixes[0], one.bytes)] = one.seconds;
  for (const SizedReuse& one : cost.own_reuse) section[sized_reuse(kReusePrefixes[1], one.bytes)] = one.seconds;
  if (cost.bulk_from > 0) section["bulk_from"] = static_cast<double>(cost.bulk_from);
  if (cost.descriptors > 0) section["descriptors"] = static_cast<double>(cost.descriptors);
  if (cost.more_descriptors > 0) section["more_descriptors"] = cost.more_descriptors;
  return section;
}

std::string Profile::to_json(const std::string& machine) const {
  nlohmann::json json{{"machine", machine}, {"version", kVersion}, {"paths", sections_}};
  if (!provenance_.empty()) json["measured"] = json_of(provenance_);
  if (!corrections_.empty()) json["collectives"] = {{"version", kModel}, {"corrections", json_of(corrections_)}};
  return json.dump(2) + "\n";
}

int Profile::version() {
  return kVersion;
}

Profile Profile::from_json(const std::string& text, const std::string& file) {
  try {
    return parsed(text);
  } catch (const Error& error) {
    throw Error(fmt::format(
        "machine profile {}: {}; delete the file to have it measured again, or set TASUKI_PROFILE to another", file,
        error.what()));
  }
}

Profile Profile::parsed(const std::string& text) {
  const auto fail = [](const std::string& what) { return Error(what); };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw fail(fmt::format("not JSON at byte {}", error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw fail(error.what());  // for example, a number too large for a double
  }
  const bool numbered = json.is_object() && json.contains("version") && json["version"].is_number_integer();
  const int version = numbered ? json["version"].get<int>() : 0;
  if (version < 1 || version > kVersion) throw fail(fmt::format("no profile of version {} or before", kVersion));
  if (version < kVersion) return {};  // it lacks constants that planning uses now
  if (!json.contains("paths") || !json["paths"].is_object()) throw fail("\"paths\" is missing or no object");
  Profile profile;
  for (const auto& [section, values] : json["paths"].items()) {
    if (!values.is_object()) throw fail(fmt::format("\"paths\".\"{}\" is no object", section));
    for (const auto& [key, value] : values.items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
        throw fail(fmt::format("\"{}\".\"{}\" is {}, not a positive number", section, key, value.dump()));
      }
      profile.sections_[current_path_name(section)][key] = value.get<double>();
    }
  }
  const auto fail_at = [&](const auto& place, const auto& what) { throw fail(fmt::format("{}: {}", place, what)); };
  if (json.contains("measured")) profile.provenance_ = provenance_of(json["measured"], "measured", fail_at);
  if (!json.contains("collectives")) return profile;
  const nlohmann::json& told = json["collectives"];
  if (!told.is_object() || !told.contains("version") || !told["version"].is_number_integer() ||
      !told.contains("corrections"))
    throw fail("\"collectives\" is no object with \"version\" and \"corrections\"");
  if (told["version"] == kModel)
    profile.corrections_ = corrections_of(told["corrections"], "collectives.corrections", fail_at);
  return profile;
}

}  // namespace tasuki
