// Corrections as JSON: see corrections.hpp.
#include "machine/corrections.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace tasuki {

namespace {

using Json = nlohmann::json;

/// Calls `visit(name, member, least)` for every whole number; what is missing has its default.
template <class Visit>
void each_number(Visit&& visit) {
  visit("ranks", &Correction::ranks, 2);
  visit("islands", &Correction::islands, 1);
  visit("trees", &Correction::trees, 0);
  visit("arity", &Correction::arity, 0);
  visit("chunk", &Correction::chunk, 0);
  visit("bytes", &Correction::bytes, 0);
}

/// The same for texts.
template <class Visit>
void each_text(Visit&& visit) {
  visit("collective", &Correction::collective);
  visit("algorithm", &Correction::algorithm);
  visit("path", &Correction::path);
}

}  // namespace

Json json_of(const std::vector<Correction>& corrections) {
  const Correction usual;
  Json list = Json::array();
  for (const Correction& one : corrections) {
    Json json;
    each_text([&](const char* name, auto member) {
      if (one.*member != usual.*member) json[name] = one.*member;
    });
    each_number([&](const char* name, auto member, int) {
      if (one.*member != usual.*member) json[name] = one.*member;
    });
    if (one.memory != usual.memory) json["memory"] = to_string(one.memory);
    if (one.shared != usual.shared) json["shared"] = one.shared;
    json["factor"] = one.factor;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Correction> corrections_of(
    const Json& json, const std::string& place,
    const std::function<void(const std::string& place, const std::string& what)>& fail) {
  std::set<std::string> known{"memory", "shared", "factor"};
  each_text([&](const char* name, auto) { known.insert(name); });
  each_number([&](const char* name, auto, int) { known.insert(name); });
  if (!json.is_array()) fail(place, "is no list");
  std::vector<Correction> all;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", place, i);
    const Json& entry = json[i];
    if (!entry.is_object()) fail(here, fmt::format("is {}, not an object", entry.dump()));
    for (const auto& [key, value] : entry.items())
      if (!known.contains(key)) fail(here, fmt::format("has the unknown key \"{}\"", key));
    Correction one;
    each_text([&](const std::string& name, auto member) {
      if (!entry.contains(name)) return;
      if (!entry[name].is_string())
        fail(fmt::format("{}.{}", here, name), fmt::format("is {}, not a text", entry[name].dump()));
      one.*member = entry[name].template get<std::string>();
    });
    each_number([&](const std::string& name, auto member, std::int64_t least) {
      if (!entry.contains(name)) return;
      using Number = std::remove_reference_t<decltype(one.*member)>;
      const Json& value = entry[name];
      constexpr double kMost = sizeof(Number) == 4 ? 1 << 24 : 1e18;
      if (!value.is_number_integer() || value.get<double>() < static_cast<double>(least) || value.get<double>() > kMost)
        fail(fmt::format("{}.{}", here, name),
             fmt::format("is {}, not a whole number from {} to {}", value.dump(), least, kMost));
      one.*member = value.get<Number>();
    });
    if (entry.contains("memory")) {
      const Json& memory = entry["memory"];
      if (memory != "host" && memory != "device")
        fail(here + ".memory", fmt::format("is {}; it is \"host\" or \"device\"", memory.dump()));
      one.memory = memory == "host" ? Memory::host : Memory::device;
    }
    if (entry.contains("shared")) {
      if (!entry["shared"].is_boolean())
        fail(here + ".shared", fmt::format("is {}, not true or false", entry["shared"].dump()));
      one.shared = entry["shared"].get<bool>();
    }
    if (one.collective.empty()) fail(here + ".collective", "is missing");
    if (one.algorithm.empty()) fail(here + ".algorithm", "is missing");
    const bool number = entry.contains("factor") && entry["factor"].is_number();
    one.factor = number ? entry["factor"].get<double>() : 0;
    if (!std::isfinite(one.factor) || one.factor <= 0)
      fail(here + ".factor",
           number ? fmt::format("is {}, not a positive number", entry["factor"].dump()) : "is no number, or missing");
    Correction named = one;
    named.factor = 1;
    if (!seen.insert(json_of({named}).dump()).second) fail(here, "is of the same candidate as one before");
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace tasuki
