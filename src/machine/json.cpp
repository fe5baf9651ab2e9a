// Machine files: `{"tasuki_machine": 1, "name": "...", "source": "...", "ranks": ..., "paths": {...}, ...}`.
//
// "ranks" is either a pattern, {"count": 64, "per_host": 1, "per_island": 16, "gpus": true}, or a list with an entry
// [host, island, gpus] a rank. Everything else may be left out.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "machine/corrections.hpp"
#include "machine/path_names.hpp"
#include "machine/profile.hpp"
#include "tasuki/error.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

namespace {

using Json = nlohmann::json;
constexpr int kMachineFormat = 1;
constexpr int kMostRanks = 1 << 24;

/// Calls `visit(name, member)` for every constant.
template <class Visit>
void each_constant(Visit&& visit) {
  visit("of_sum", &Constants::of_sum);
  visit("second_link", &Constants::second_link);
  visit("noise_host", &Constants::noise_host);
  visit("noise_device", &Constants::noise_device);
  visit("further_network", &Constants::further_network);
  visit("eager_small", &Constants::eager_small);
  visit("eager_short_ring", &Constants::eager_short_ring);
  visit("eager_long_ring", &Constants::eager_long_ring);
  visit("eager_most_epochs", &Constants::eager_most_epochs);
  visit("eager_epochs", &Constants::eager_epochs);
  visit("eager_slice", &Constants::eager_slice);
  visit("eager_large", &Constants::eager_large);
  visit("eager_slot", &Constants::eager_slot);
  visit("eager_step", &Constants::eager_step);
  visit("eager_ring", &Constants::eager_ring);
  visit("cache_line", &Constants::cache_line);
  visit("many_lines", &Constants::many_lines);
  visit("slice_lines", &Constants::slice_lines);
  visit("few_lines", &Constants::few_lines);
  visit("most_interleaved", &Constants::most_interleaved);
  visit("message_most", &Constants::message_most);
  visit("message_read", &Constants::message_read);
  visit("staged_slice", &Constants::staged_slice);
  visit("staged_slices", &Constants::staged_slices);
  visit("copy_engine_calls", &Constants::copy_engine_calls);
  visit("copy_engine_call", &Constants::copy_engine_call);
  visit("gpu_copy_bandwidth", &Constants::gpu_copy_bandwidth);
  visit("copy_engine_signal", &Constants::copy_engine_signal);
  visit("gpu_signal", &Constants::gpu_signal);
  visit("gpu_round", &Constants::gpu_round);
  visit("gpu_chunk", &Constants::gpu_chunk);
  visit("gpu_hop", &Constants::gpu_hop);
  visit("line_start", &Constants::line_start);
  visit("line_hop", &Constants::line_hop);
  visit("line_sum", &Constants::line_sum);
  visit("gpu_sum_on", &Constants::gpu_sum_on);
  visit("gpu_to_all", &Constants::gpu_to_all);
  visit("second_pass", &Constants::second_pass);
  visit("thread_hand_over", &Constants::thread_hand_over);
  visit("gpu_launch", &Constants::gpu_launch);
  visit("gpu_sms", &Constants::gpu_sms);
  visit("gpu_sm_bandwidth", &Constants::gpu_sm_bandwidth);
  visit("transfer_part", &Constants::transfer_part);
  visit("transfer_parts", &Constants::transfer_parts);
}

/// Constants by the names that earlier versions had for them, with today's.
constexpr std::pair<const char*, const char*> kEarlierConstants[] = {{"gpu_tell", "gpu_signal"},
                                                                     {"copy_engine_tell", "copy_engine_signal"}};

/// Reads a file, and keeps track of the key it is at, for errors.
class Reader {
 public:
  Reader(const Json& root, const std::string& file) : root_(root), file_(file) {}

  Machine read() {
    only(root_, "",
         {"tasuki_machine", "name", "source", "threads", "cores", "ranks", "inside", "outside", "uses", "paths",
          "unusable", "gpu_reason", "constants", "collectives"});
    if (!root_.contains("tasuki_machine")) fail("", "is no machine file: \"tasuki_machine\" is missing");
    const auto format = whole(root_["tasuki_machine"], "tasuki_machine", 0, 1 << 30);
    if (format != kMachineFormat)
      fail("tasuki_machine",
           fmt::format("is version {}, but this Tasuki reads version {}; write the file anew", format, kMachineFormat));
    Machine machine;
    if (root_.contains("name")) machine.name = text(root_["name"], "name");
    if (root_.contains("source")) machine.source = text(root_["source"], "source");
    if (root_.contains("gpu_reason")) machine.gpu_reason = text(root_["gpu_reason"], "gpu_reason");
    if (root_.contains("threads")) machine.threads = truth(root_["threads"], "threads");
    if (root_.contains("cores")) machine.cores = static_cast<int>(whole(root_["cores"], "cores", 0, 1 << 20));
    if (!root_.contains("ranks")) fail("ranks", "is missing");
    read_ranks(machine);
    if (root_.contains("inside")) machine.inside = network(root_["inside"], "inside");
    if (root_.contains("outside")) machine.outside = network(root_["outside"], "outside");
    check_torus(machine);
    if (root_.contains("uses")) read_uses(machine);
    if (root_.contains("paths")) read_paths(machine);
    if (root_.contains("unusable")) {
      object(root_["unusable"], "unusable");
      for (const auto& [path, why] : root_["unusable"].items())
        machine.unusable[current_path_name(path)] = text(why, "unusable." + path);
    }
    if (root_.contains("constants")) read_constants(machine.constants);
    if (root_.contains("collectives"))
      machine.corrections = corrections_of(root_["collectives"], "collectives",
                                           [this](const auto& place, const auto& what) { fail(place, what); });
    return machine;
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& what) const {
    throw Error(fmt::format("machine file {}: {}{}{}", file_, place, place.empty() ? "" : ": ", what));
  }

  void object(const Json& json, const std::string& place) const {
    if (!json.is_object()) fail(place, fmt::format("is {}, not an object", json.dump()));
  }
  void only(const Json& json, const std::string& place, const std::set<std::string>& known) const {
    object(json, place);
    for (const auto& [key, value] : json.items()) {
      if (known.contains(key)) continue;
      std::string names;
      for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
      fail(place, fmt::format("has the unknown key \"{}\"; known are {}", key, names));
    }
  }
  std::int64_t whole(const Json& json, const std::string& place, std::int64_t least, std::int64_t most) const {
    if (!json.is_number_integer() || json.get<double>() < static_cast<double>(least) ||
        json.get<double>() > static_cast<double>(most))
      fail(place, fmt::format("is {}, not a whole number from {} to {}", json.dump(), least, most));
    return json.get<std::int64_t>();
  }
  double positive(const Json& json, const std::string& place) const {
    if (!json.is_number() || !std::isfinite(json.get<double>()) || json.get<double>() <= 0)
      fail(place, fmt::format("is {}, not a positive number", json.dump()));
    return json.get<double>();
  }
  double not_negative(const Json& json, const std::string& place) const {
    if (!json.is_number() || !std::isfinite(json.get<double>()) || json.get<double>() < 0)
      fail(place, fmt::format("is {}, not a number of 0 or more", json.dump()));
    return json.get<double>();
  }
  std::string text(const Json& json, const std::string& place) const {
    if (!json.is_string()) fail(place, fmt::format("is {}, not a text", json.dump()));
    return json.get<std::string>();
  }
  bool truth(const Json& json, const std::string& place) const {
    if (!json.is_boolean()) fail(place, fmt::format("is {}, not true or false", json.dump()));
    return json.get<bool>();
  }

  void read_ranks(Machine& machine) const {
    const Json& json = root_["ranks"];
    if (json.is_object()) {
      only(json, "ranks", {"count", "per_host", "per_island", "gpus"});
      if (!json.contains("count")) fail("ranks.count", "is missing");
      const auto count = static_cast<int>(whole(json["count"], "ranks.count", 1, kMostRanks));
      const int per_host = json.contains("per_host")
                               ? static_cast<int>(whole(json["per_host"], "ranks.per_host", 1, kMostRanks))
                               : count;
      const int per_island = json.contains("per_island")
                                 ? static_cast<int>(whole(json["per_island"], "ranks.per_island", 1, kMostRanks))
                                 : per_host;
      const bool gpus = json.contains("gpus") && truth(json["gpus"], "ranks.gpus");
      // An island of several hosts: such as GPUs of several hosts that store into each other's memory.
      if (per_island > per_host && per_island % per_host != 0)
        fail("ranks.per_island", fmt::format("is {}, which is no multiple of per_host, {}", per_island, per_host));
      machine.ranks = Machine::uniform(count, per_host, per_island, gpus).ranks;
      return;
    }
    if (!json.is_array() || json.empty()) fail("ranks", "is neither a pattern nor a list of [host, island, gpus]");
    const auto most = static_cast<std::int64_t>(json.size());
    for (std::size_t r = 0; r < json.size(); ++r) {
      const std::string place = fmt::format("ranks[{}]", r);
      if (!json[r].is_array() || json[r].size() != 3) fail(place, "is not [host, island, gpus]");
      Machine::Rank rank;
      rank.host = static_cast<std::int32_t>(whole(json[r][0], place + "[0]", 0, most - 1));
      rank.island = static_cast<std::int32_t>(whole(json[r][1], place + "[1]", 0, most - 1));
      rank.gpus = static_cast<std::int32_t>(whole(json[r][2], place + "[2]", -1, most - 1));
      machine.ranks.push_back(rank);
    }
    check_numbers(machine);
  }

  // Hosts and islands are numbered without gaps: a number that no rank has is a mistake in the file.
  void check_numbers(const Machine& machine) const {
    for (const auto& [what, member] :
         {std::pair{"host", &Machine::Rank::host}, std::pair{"island", &Machine::Rank::island}}) {
      std::set<std::int32_t> used;
      for (const auto& rank : machine.ranks) used.insert(rank.*member);
      if (*used.rbegin() + 1 == static_cast<std::int32_t>(used.size())) continue;
      std::int32_t gap = 0;
      while (used.contains(gap)) ++gap;
      fail("ranks", fmt::format("{} {} is named, but {} {} has no ranks; number them from 0 without gaps", what,
                                *used.rbegin(), what, gap));
    }
  }

  Network network(const Json& json, const std::string& place) const {
    only(json, place, {"kind", "extents", "rails", "bandwidth", "latency", "collision"});
    Network network;
    if (!json.contains("kind")) fail(place + ".kind", "is missing");
    const std::string kind = text(json["kind"], place + ".kind");
    if (kind != "switch" && kind != "torus")
      fail(place + ".kind", fmt::format("is \"{}\"; it is \"switch\" or \"torus\"", kind));
    network.kind = kind == "switch" ? Network::Kind::switched : Network::Kind::torus;
    if (json.contains("extents")) {
      if (network.kind != Network::Kind::torus) fail(place + ".extents", "belongs to a torus only");
      if (!json["extents"].is_array() || json["extents"].empty() || json["extents"].size() > 7)
        fail(place + ".extents", "is no list of 1 to 7 numbers");
      for (std::size_t d = 0; d < json["extents"].size(); ++d)
        network.extents.push_back(
            static_cast<int>(whole(json["extents"][d], fmt::format("{}.extents[{}]", place, d), 1, kMostRanks)));
    } else if (network.kind == Network::Kind::torus) {
      fail(place + ".extents", "is missing: a torus needs hosts in each dimension");
    }
    if (json.contains("rails")) network.rails = static_cast<int>(whole(json["rails"], place + ".rails", 1, 1024));
    if (json.contains("bandwidth")) network.bandwidth = positive(json["bandwidth"], place + ".bandwidth");
    if (json.contains("latency")) network.latency = positive(json["latency"], place + ".latency");
    if (json.contains("collision")) {
      network.collision = positive(json["collision"], place + ".collision");
      if (network.collision > 1)
        fail(place + ".collision", fmt::format("is {}, not a share of at most 1", json["collision"].dump()));
    }
    return network;
  }

  void read_uses(Machine& machine) const {
    object(root_["uses"], "uses");
    for (const auto& [path, value] : root_["uses"].items()) {
      const std::string place = "uses." + path;
      const std::string network = text(value, place);
      if (network != "inside" && network != "outside")
        fail(place, fmt::format("is \"{}\"; it is \"inside\" or \"outside\", a network of the machine", network));
      if (!root_.contains(network))
        fail(place,
             fmt::format("is \"{0}\", but the file has no network \"{0}\"; describe it, or leave this out", network));
      machine.uses[current_path_name(path)] = network;
    }
  }

  void check_torus(const Machine& machine) const {
    const auto points = [](const Network& network) {
      std::int64_t product = 1;
      for (const int extent : network.extents) product = std::min<std::int64_t>(product * extent, kMostRanks);
      return product;
    };
    std::set<std::int32_t> hosts;
    std::map<std::int32_t, std::set<std::int32_t>> hosts_of_island;
    for (const auto& rank : machine.ranks) {
      hosts.insert(rank.host);
      hosts_of_island[rank.island].insert(rank.host);
    }
    if (machine.outside.kind == Network::Kind::torus &&
        points(machine.outside) < static_cast<std::int64_t>(hosts.size()))
      fail("outside.extents",
           fmt::format("hold {} hosts, but the machine has {}", points(machine.outside), hosts.size()));
    if (machine.inside.kind != Network::Kind::torus) return;
    for (const auto& [island, members] : hosts_of_island) {
      if (points(machine.inside) >= static_cast<std::int64_t>(members.size())) continue;
      fail("inside.extents",
           fmt::format("hold {} hosts, but island {} has {}", points(machine.inside), island, members.size()));
    }
  }

  void read_paths(Machine& machine) const {
    object(root_["paths"], "paths");
    std::set<std::string> known;
    for (const char* key : {"latency", "bandwidth", "bulk_bandwidth", "per_run", "per_run_of_<runs>",
                            "bandwidth_of_<bytes>", "latency_above_<bytes>", "bandwidth_above_<bytes>"})
      for (const char* prefix : {"", "mutual_", "own_", "own_mutual_"}) known.insert(std::string(prefix) + key);
    known.insert(
        {"reuse_of_<bytes>", "own_reuse_of_<bytes>", "bulk_from", "descriptors", "more_descriptors", "measured"});
    for (const auto& [path, values] : root_["paths"].items()) {
      const std::string place = "paths." + path;
      std::set<std::string> allowed = known;
      if (values.is_object())
        for (const auto& [key, value] : values.items())
          if (is_sized(key)) allowed.insert(key);
      only(values, place, allowed);
      CostSection section;
      bool measured = true;
      for (const auto& [key, value] : values.items()) {
        const std::string where = fmt::format("{}.{}", place, key);
        if (key == "measured") {
          measured = truth(value, where);
        } else {
          section[key] = key.ends_with("per_run") ? not_negative(value, where) : positive(value, where);
        }
      }
      PathCost& cost = machine.costs[current_path_name(path)];
      cost = cost_of(section);
      cost.measured = measured;
    }
  }

  void read_constants(Constants& constants) const {
    Json json = root_["constants"];
    object(json, "constants");
    for (const auto& [earlier, name] : kEarlierConstants) {
      if (!json.contains(earlier)) continue;
      if (json.contains(name))
        fail("constants", fmt::format("has both \"{}\" and its earlier name \"{}\"", name, earlier));
      json[name] = json[earlier];
      json.erase(earlier);
    }
    std::set<std::string> known;
    each_constant([&](const char* name, auto) { known.insert(name); });
    only(json, "constants", known);
    each_constant([&](const std::string& name, auto member) {
      if (!json.contains(name)) return;
      const std::string place = "constants." + name;
      if constexpr (std::is_same_v<decltype(member), double Constants::*>) {
        constants.*member = positive(json[name], place);
      } else {
        constants.*member = whole(json[name], place, 1, std::numeric_limits<std::int64_t>::max() / 2);
      }
    });
  }

  const Json& root_;
  const std::string& file_;
};

Json json_of(const Network& network) {
  Json json{{"kind", network.kind == Network::Kind::torus ? "torus" : "switch"}, {"rails", network.rails}};
  if (network.kind == Network::Kind::torus) json["extents"] = network.extents;
  if (network.bandwidth > 0) json["bandwidth"] = network.bandwidth;
  if (network.latency > 0) json["latency"] = network.latency;
  if (network.collision < 1) json["collision"] = network.collision;
  return json;
}

}  // namespace

std::map<std::string, double> by_name(const Constants& constants) {
  std::map<std::string, double> values;
  each_constant([&](const char* name, auto member) { values[name] = static_cast<double>(constants.*member); });
  return values;
}

std::string Machine::to_json() const {
  Json json{{"tasuki_machine", kMachineFormat}, {"name", name}, {"source", source}};
  if (threads) json["threads"] = true;
  if (cores > 0) json["cores"] = cores;
  json["ranks"] = Json::array();
  for (const Rank& rank : ranks) json["ranks"].push_back({rank.host, rank.island, rank.gpus});
  if (inside.kind != Network::Kind::none) json["inside"] = json_of(inside);
  if (outside.kind != Network::Kind::none) json["outside"] = json_of(outside);
  if (!uses.empty()) json["uses"] = uses;
  for (const auto& [path, cost] : costs) {
    json["paths"][path] = section_of(cost);
    if (!cost.measured) json["paths"][path]["measured"] = false;
  }
  if (!unusable.empty()) json["unusable"] = unusable;
  if (!gpu_reason.empty()) json["gpu_reason"] = gpu_reason;
  const Constants usual;
  each_constant([&](const char* key, auto member) {
    if (constants.*member != usual.*member) json["constants"][key] = constants.*member;
  });
  if (!corrections.empty()) json["collectives"] = json_of(corrections);
  return json.dump() + "\n";
}

Machine Machine::from_json(std::string_view json, const std::string& file) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("machine file {}: not JSON at byte {}", file, error.byte));
  } catch (const Json::exception& error) {
    throw Error(fmt::format("machine file {}: {}", file, error.what()));
  }
  return Reader(parsed, file).read();
}

}  // namespace tasuki
