// Provenance: see provenance.hpp.
#include "machine/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tasuki {

namespace {

using Json = nlohmann::json;

constexpr double kUncertain = 0.25;    // prices that differ by more from turn to turn may decide wrongly
constexpr double kIdle = 0.25;         // cores that some process or other uses on a machine that does nothing
constexpr int kMostAttempts = 3;       // a machine may be as uncertain as its prices
constexpr int kMostBusyAttempts = 12;  // but what was measured beside others says little of it

template <class Visit>
void each_text(Visit&& visit) {
  visit("date", &Provenance::date);
  visit("host", &Provenance::host);
  visit("tasuki", &Provenance::version);
}

template <class Visit>
void each_count(Visit&& visit) {
  visit("ranks", &Provenance::ranks);
  visit("cores", &Provenance::cores);
  visit("attempts", &Provenance::attempts);
}

template <class Visit>
void each_number(Visit&& visit) {
  visit("seconds", &Provenance::seconds);
  visit("load", &Provenance::load);
  visit("others", &Provenance::others);
  visit("switches", &Provenance::switches);
}

// `2026-11-24 17:24 UTC` of `2026-11-24T17:24:05Z`.
std::string minute(const std::string& date) {
  return date.size() < 16 ? date : fmt::format("{} {} UTC", date.substr(0, 10), date.substr(11, 5));
}

std::string described(const Provenance& one) {
  std::string text = fmt::format("measured {}{}, within {:.0f} %", minute(one.date),
                                 one.host.empty() ? "" : " on " + one.host, std::ceil(one.widest() * 100));
  if (one.uncertain()) {
    std::string paths;
    for (const auto& [path, spread] : one.spread)
      if (spread > kUncertain) paths += fmt::format("{}{} {:.0f} %", paths.empty() ? "" : ", ", path, spread * 100);
    text += paths.empty() ? ", uncertain" : fmt::format(", uncertain ({})", paths);
  }
  if (one.busy()) text += fmt::format(", while other processes used {:.1f} of {} cores", one.others, one.cores);
  for (const auto& [path, why] : one.derived)
    text += fmt::format(", {} derived from plain copies because {}", path, why);
  return text;
}

}  // namespace

bool Provenance::busy() const {
  return cores > 0 && others > 2 * kIdle && ranks + others > cores + kIdle;
}

double Provenance::widest() const {
  double most = 0;
  for (const auto& [path, value] : spread) most = std::max(most, value);
  return most;
}

bool Provenance::uncertain() const {
  return busy() || widest() > kUncertain || !derived.empty();
}

bool Provenance::may_improve(double others_now) const {
  if (!uncertain() || attempts >= (busy() ? kMostBusyAttempts : kMostAttempts)) return false;
  return others_now <= (busy() ? others / 2 : kIdle);
}

bool Provenance::surer(const Provenance& other, const std::string& path) const {
  if (busy() != other.busy()) return !busy();
  if (busy() && std::abs(others - other.others) > kIdle) return others < other.others;
  if (derived.contains(path) != other.derived.contains(path)) return !derived.contains(path);
  return spread.at(path) < other.spread.at(path);
}

std::vector<std::string> keep_surer(std::vector<Provenance>& known, Provenance& newer) {
  std::vector<Provenance*> before;
  for (Provenance& one : known) {
    const auto has = [&](const auto& entry) { return one.spread.contains(entry.first); };
    if (!std::any_of(newer.spread.begin(), newer.spread.end(), has)) continue;
    before.push_back(&one);
    // The first one that has the machine to itself begins anew.
    if (newer.busy() || !one.busy()) newer.attempts = std::max(newer.attempts, one.attempts + 1);
  }
  std::vector<std::string> kept;
  for (Provenance* one : before) {
    for (const auto& [path, spread] : one->spread)
      if (newer.spread.contains(path) && one->surer(newer, path)) kept.push_back(path);
    one->attempts = std::max(one->attempts, newer.attempts);
  }
  for (const std::string& path : kept) {
    newer.spread.erase(path);
    newer.derived.erase(path);
  }
  return kept;
}

void add_provenance(std::vector<Provenance>& all, Provenance newer) {
  for (Provenance& one : all) {
    for (const auto& [path, spread] : newer.spread) {
      one.spread.erase(path);
      one.derived.erase(path);
    }
  }
  std::erase_if(all, [](const Provenance& one) { return one.spread.empty(); });
  all.push_back(std::move(newer));
}

std::string described(const std::vector<Provenance>& all) {
  if (all.empty()) return "measured";
  std::string text;
  for (const Provenance& one : all) text += (text.empty() ? "" : "; ") + described(one);
  return text;
}

Json json_of(const std::vector<Provenance>& all) {
  Json list = Json::array();
  for (const Provenance& one : all) {
    Json json;
    each_text([&](const char* name, auto member) { json[name] = one.*member; });
    each_count([&](const char* name, auto member) { json[name] = one.*member; });
    each_number([&](const char* name, auto member) { json[name] = one.*member; });
    json["spread"] = one.spread;
    if (!one.derived.empty()) json["derived"] = one.derived;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Provenance> provenance_of(
    const Json& json, const std::string& place,
    const std::function<void(const std::string& place, const std::string& what)>& fail) {
  if (!json.is_array()) fail(place, "is no list");
  std::vector<Provenance> all;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", place, i);
    const Json& entry = json[i];
    if (!entry.is_object()) fail(here, "is no object");
    Provenance one;
    const auto find = [&](const char* name, bool (Json::*is)() const noexcept, const char* kind) -> const Json* {
      const auto found = entry.find(name);
      if (found == entry.end()) return nullptr;
      if (!((*found).*is)()) fail(fmt::format("{}.{}", here, name), fmt::format("is no {}", kind));
      return &*found;
    };
    each_text([&](const char* name, auto member) {
      if (const Json* value = find(name, &Json::is_string, "text")) one.*member = value->get<std::string>();
    });
    each_count([&](const char* name, auto member) {
      const Json* value = find(name, &Json::is_number_integer, "whole number");
      if (value == nullptr) return;
      constexpr double kMost = 1 << 24;
      if (value->get<double>() < 0 || value->get<double>() > kMost)
        fail(fmt::format("{}.{}", here, name), fmt::format("is {}, not from 0 to {}", value->dump(), kMost));
      one.*member = value->get<int>();
    });
    each_number([&](const char* name, auto member) {
      if (const Json* value = find(name, &Json::is_number, "number")) one.*member = value->get<double>();
    });
    if (const Json* spread = find("spread", &Json::is_object, "object")) {
      for (const auto& [path, value] : spread->items()) {
        if (!value.is_number() || !(value.get<double>() >= 0))
          fail(fmt::format("{}.spread.{}", here, path), fmt::format("is {}, not a number of 0 or more", value.dump()));
        one.spread[path] = value.get<double>();
      }
    }
    if (const Json* derived = find("derived", &Json::is_object, "object")) {
      for (const auto& [path, value] : derived->items()) {
        if (!value.is_string()) fail(fmt::format("{}.derived.{}", here, path), "is no text");
        one.derived[path] = value.get<std::string>();
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace tasuki
