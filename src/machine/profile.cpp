// Profile: see profile.hpp. The file is `{"machine": "...", "version": 8, "paths": {"mpi": {"latency": 1e-6, ...}}}`,
// and with corrections also `"collectives": {"version": 1, "corrections": [...]}`.
#include "machine/profile.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "machine/corrections.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr int kVersion = 8;
constexpr int kModel = 1;  // of what predicts collectives: a change makes corrections void

}  // namespace

PathCost cost_of(const CostSection& section) {
  PathCost cost;
  const auto get = [&](const std::string& key, double fallback) {
    const auto found = section.find(key);
    return found == section.end() ? fallback : found->second;
  };
  LinkCost& one = cost.one_way;
  one.latency = get("latency", one.latency);
  one.bandwidth = get("bandwidth", one.bandwidth);
  one.bulk_bandwidth = get("bulk_bandwidth", one.bandwidth);
  one.per_run = get("per_run", one.per_run);
  cost.mutual.latency = get("mutual_latency", one.latency);
  cost.mutual.bandwidth = get("mutual_bandwidth", one.bandwidth);
  cost.mutual.bulk_bandwidth = get("mutual_bulk_bandwidth", get("bulk_bandwidth", cost.mutual.bandwidth));
  cost.mutual.per_run = get("mutual_per_run", one.per_run);
  cost.bulk_from = static_cast<std::int64_t>(get("bulk_from", 0));
  cost.measured = true;
  return cost;
}

CostSection section_of(const PathCost& cost) {
  CostSection section;
  for (const auto& [prefix, link] : {std::pair{"", &cost.one_way}, std::pair{"mutual_", &cost.mutual}}) {
    const std::string p = prefix;
    section[p + "latency"] = link->latency;
    section[p + "bandwidth"] = link->bandwidth;
    section[p + "bulk_bandwidth"] = link->bulk_bandwidth;
    section[p + "per_run"] = link->per_run;
  }
  if (cost.bulk_from > 0) section["bulk_from"] = static_cast<double>(cost.bulk_from);
  return section;
}

std::string Profile::to_json(const std::string& machine) const {
  nlohmann::json json{{"machine", machine}, {"version", kVersion}, {"paths", sections_}};
  if (!corrections_.empty()) json["collectives"] = {{"version", kModel}, {"corrections", json_of(corrections_)}};
  return json.dump(2) + "\n";
}

Profile Profile::from_json(const std::string& text, const std::string& file) {
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format(
        "machine profile {}: {}; delete the file to have it measured again, or set TASUKI_PROFILE to another", file,
        what));
  };
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
      profile.sections_[section][key] = value.get<double>();
    }
  }
  if (!json.contains("collectives")) return profile;
  const nlohmann::json& told = json["collectives"];
  if (!told.is_object() || !told.contains("version") || !told["version"].is_number_integer() ||
      !told.contains("corrections"))
    throw fail("\"collectives\" is no object with \"version\" and \"corrections\"");
  if (told["version"] == kModel)
    profile.corrections_ =
        corrections_of(told["corrections"], "collectives.corrections",
                       [&](const auto& place, const auto& what) { throw fail(fmt::format("{}: {}", place, what)); });
  return profile;
}

}  // namespace tasuki
