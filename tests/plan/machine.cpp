// Machines as data: made up, resized, written and read; what is wrong with a file is said with its place.
#include "tasuki/machine.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "machine/profile.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;

namespace {

Machine full() {
  Machine machine = Machine::uniform(12, 4, 2, true);
  machine.name = "a \"quoted\" name, with ünicode";
  machine.source = "from the paper's figures";
  machine.threads = true;
  machine.cores = 48;
  machine.inside = {Network::Kind::switched, {}, 4, 4.5e11, 2e-7};
  machine.outside = {Network::Kind::torus, {3, 1}, 2, 2.5e10, 0};
  machine.inside.collision = 0.5;
  machine.uses = {{"mpi", "outside"}, {"nccl", "inside"}};
  PathCost cost;
  cost.measured = true;
  machine.costs["shared:put"] = cost;
  cost.one_way = {1.25e-6, 1.0 / 3 * 1e10, 7e9, 1e-300};
  cost.mutual = {std::numeric_limits<double>::min(), std::numeric_limits<double>::max(), 1, 2.5e-9};
  cost.bulk_from = std::int64_t{1} << 40;
  machine.costs["mpi"] = cost;
  cost.one_way.per_run = 0;
  cost.measured = false;
  machine.costs["shared:read"] = cost;
  cost.one_way.switches = {{8192, 2.8e-5, 2.9e9}, {262144, 3.5e-5, 3.4e9}};
  cost.mutual.switches = {{1 << 20, 1e-5, 1e9}};
  cost.descriptors = 1024;
  cost.more_descriptors = 3e-7;
  machine.costs["mpi:staged"] = cost;
  machine.unusable["nccl"] = "not built";
  machine.unusable["peer:put"] = "no GPU reaches another";
  machine.gpu_reason = "another process has them";
  machine.constants.of_sum = 0.07;
  machine.constants.eager_small = 12345;
  machine.constants.message_most = 1 << 20;
  machine.constants.second_pass = 1.0 / 3;
  return machine;
}

/// What `from_json` says against a text.
std::string refusal(const std::string& json) {
  try {
    Machine::from_json(json, "cluster.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A file of two ranks with `more` in it.
std::string file_with(const std::string& more) {
  return R"({"tasuki_machine": 1, "ranks": {"count": 2}, )" + more + "}";
}

/// One with these ranks.
std::string file_of(const std::string& ranks, const std::string& more = "") {
  return R"({"tasuki_machine": 1, "ranks": )" + ranks + more + "}";
}

void refuses(const std::string& json, const std::string& expected) {
  INFO(json.substr(0, 200));
  CHECK(refusal(json).substr(0, 27 + expected.size()) == "machine file cluster.json: " + expected);
}

using Rank = Machine::Rank;

}  // namespace

TEST_CASE("a machine reads back equal, with all that it can hold and with next to nothing") {
  const Machine machine = full();
  CHECK(Machine::from_json(machine.to_json()) == machine);
  for (const auto& [ranks, per_host, per_island] : {std::array{1, 1, 0}, {7, 3, 2}, {64, 8, 0}}) {
    for (const bool gpus : {false, true}) {
      const Machine made = Machine::uniform(ranks, per_host, per_island, gpus);
      CHECK(Machine::from_json(made.to_json()) == made);
      CHECK(Machine::from_json(Machine::from_json(made.to_json()).to_json()) == made);
    }
  }
}

TEST_CASE("every constant can be changed by a file, and is written if it was") {
  const Machine plain = Machine::uniform(2, 1, 0);
  std::string names = refusal(file_with(R"("constants": {"": 1})"));
  names = names.substr(names.find("known are ") + 10);
  int count = 0;
  for (std::size_t at = 0; at < names.size(); ++count) {
    const std::size_t end = std::min(names.find(", ", at), names.size());
    const std::string name = names.substr(at, end - at);
    at = end + 2;
    const Machine changed = Machine::from_json(file_with(R"("constants": {")" + name + R"(": 77})"));
    CHECK_MESSAGE(changed.constants != plain.constants, name);
    CHECK(changed.to_json().find("\"constants\":{\"" + name + "\":77") != std::string::npos);
    CHECK(Machine::from_json(changed.to_json()) == changed);
  }
  CHECK(count == static_cast<int>(sizeof(Constants) / 8));
}

TEST_CASE("a file may give its ranks as a pattern, islands within hosts or of several") {
  CHECK(Machine::from_json(file_of(R"({"count": 3})")).ranks == Machine::uniform(3, 3, 0).ranks);
  CHECK(Machine::from_json(file_of(R"({"count": 9, "per_host": 4})")).ranks == Machine::uniform(9, 4, 4).ranks);
  CHECK(Machine::from_json(file_of(R"({"count": 9, "per_host": 4, "per_island": 2, "gpus": true})")).ranks ==
        Machine::uniform(9, 4, 2, true).ranks);
  const Machine wide = Machine::from_json(file_of(R"({"count": 7, "per_host": 2, "per_island": 4, "gpus": true})"));
  CHECK(wide.ranks == std::vector<Rank>{{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {1, 0, 0}, {2, 1, 1}, {2, 1, 1}, {3, 1, 1}});
  CHECK(wide.same_island(1, 2));
  CHECK_FALSE(wide.same_host(1, 2));
  CHECK(wide.reach(0, 3));
  CHECK_FALSE(wide.reach(3, 4));
  const Machine listed = Machine::from_json(file_of("[[0, 1, -1], [1, 0, 2], [0, 1, 2]]"));
  CHECK(listed.ranks == std::vector<Rank>{{0, 1, -1}, {1, 0, 2}, {0, 1, 2}});
  CHECK_FALSE(listed.reach(0, 2));
  CHECK(listed.reach(1, 2));
}

TEST_CASE("prices in a file are as a profile has them: what is left out follows from the rest") {
  const Machine machine = Machine::from_json(file_with(
      R"("paths": {"mpi": {"latency": 3e-6, "bandwidth": 2e9, "mutual_bandwidth": 1e9, "bulk_from": 4096}})"));
  CHECK(machine.cost("mpi") ==
        cost_of({{"latency", 3e-6}, {"bandwidth", 2e9}, {"mutual_bandwidth", 1e9}, {"bulk_from", 4096}}));
  CHECK(machine.cost("mpi").mutual.latency == 3e-6);
  CHECK(machine.cost("mpi").measured);
  CHECK(machine.cost("nccl") == PathCost{});
}

TEST_CASE("protocols that change with the size are read from keys with sizes, both ways as one way if not said") {
  const Machine machine = Machine::from_json(file_with(
      R"("paths": {"mpi": {"latency": 6e-6, "bandwidth": 3e8, "latency_above_8192": 2e-5, "bandwidth_above_8192": 2e9,
                           "bandwidth_above_65536": 3e9, "mutual_latency_above_100": 1e-5}})"));
  const PathCost& cost = machine.cost("mpi");
  CHECK(cost.one_way.switches == std::vector<ProtocolSwitch>{{8192, 2e-5, 2e9}, {65536, 6e-6, 3e9}});
  CHECK(cost.mutual.switches == std::vector<ProtocolSwitch>{{100, 1e-5, 3e8}});
  CHECK(cost_of(section_of(cost)) == cost);
  refuses(file_with(R"("paths": {"mpi": {"latency_above_0": 1e-6}})"), "paths.mpi: has the unknown key");
  refuses(file_with(R"("paths": {"mpi": {"latency_above_x": 1e-6}})"), "paths.mpi: has the unknown key");
}

TEST_CASE("what is no machine file at all is refused") {
  refuses("", "not JSON at byte 1");
  refuses("{\"tasuki_machine\": 1,", "not JSON at byte 22");
  refuses(std::string(100000, '['), "not JSON at byte 100001");
  CHECK(refusal("{\"tasuki_machine\": 1e999}").find("machine file cluster.json: ") == 0);
  CHECK(refusal("{\"tasuki_machine\": 1e999}").find("1e999") != std::string::npos);
  refuses("[1]", "is [1], not an object");
  refuses("{}", "is no machine file: \"tasuki_machine\" is missing");
  refuses(R"({"tasuki_machine": 2})",
          "tasuki_machine: is version 2, but this Tasuki reads version 1; write the file anew");
  refuses(R"({"tasuki_machine": "1"})", "tasuki_machine: is \"1\", not a whole number from 0 to 1073741824");
  refuses(R"({"tasuki_machine": 1, "rnks": 3})",
          "has the unknown key \"rnks\"; known are collectives, constants, cores, gpu_reason,");
  refuses(R"({"tasuki_machine": 1})", "ranks: is missing");
}

TEST_CASE("a wrong value is refused with its place") {
  refuses(file_with(R"("name": 3)"), "name: is 3, not a text");
  refuses(file_with(R"("source": null)"), "source: is null, not a text");
  refuses(file_with(R"("gpu_reason": ["x"])"), "gpu_reason: is [\"x\"], not a text");
  refuses(file_with(R"("threads": 1)"), "threads: is 1, not true or false");
  refuses(file_with(R"("cores": -1)"), "cores: is -1, not a whole number from 0 to 1048576");
  refuses(file_with(R"("cores": 1.5)"), "cores: is 1.5, not a whole number");
  refuses(file_with(R"("cores": 18446744073709551615)"), "cores: is 18446744073709551615, not a whole number");
  refuses(file_with(R"("unusable": "nccl")"), "unusable: is \"nccl\", not an object");
  refuses(file_with(R"("unusable": {"nccl": true})"), "unusable.nccl: is true, not a text");
}

TEST_CASE("ranks that cannot be are refused") {
  refuses(file_of("4"), "ranks: is neither a pattern nor a list of [host, island, gpus]");
  refuses(file_of("[]"), "ranks: is neither a pattern nor a list of [host, island, gpus]");
  refuses(file_of("{}"), "ranks.count: is missing");
  refuses(file_of(R"({"count": 0})"), "ranks.count: is 0, not a whole number from 1 to 16777216");
  refuses(file_of(R"({"count": 16777217})"), "ranks.count: is 16777217, not a whole number from 1 to 16777216");
  refuses(file_of(R"({"count": 2, "hosts": 2})"),
          "ranks: has the unknown key \"hosts\"; known are count, gpus, per_host, per_island");
  refuses(file_of(R"({"count": 2, "per_host": 0})"), "ranks.per_host: is 0, not a whole number from 1");
  refuses(file_of(R"({"count": 2, "per_island": -1})"), "ranks.per_island: is -1, not a whole number from 1");
  refuses(file_of(R"({"count": 2, "gpus": 2})"), "ranks.gpus: is 2, not true or false");
  refuses(file_of(R"({"count": 8, "per_host": 2, "per_island": 3})"),
          "ranks.per_island: is 3, which is no multiple of per_host, 2");
  refuses(file_of("[[0, 0, 0], [0, 0]]"), "ranks[1]: is not [host, island, gpus]");
  refuses(file_of("[[0, 0, 0], 0]"), "ranks[1]: is not [host, island, gpus]");
  refuses(file_of("[[0, 0, 0], [2, 0, 0]]"), "ranks[1][0]: is 2, not a whole number from 0 to 1");
  refuses(file_of("[[0, -1, 0], [0, 0, 0]]"), "ranks[0][1]: is -1, not a whole number from 0 to 1");
  refuses(file_of("[[0, 0, -2], [0, 0, 0]]"), "ranks[0][2]: is -2, not a whole number from -1 to 1");
  refuses(file_of("[[0, 0, 0], [0, 0, \"1\"]]"), "ranks[1][2]: is \"1\", not a whole number");
  refuses(file_of("[[0, 2, 0], [0, 0, 0], [0, 2, 0]]"),
          "ranks: island 2 is named, but island 1 has no ranks; number them from 0 without gaps");
  refuses(file_of("[[1, 0, 0], [1, 0, 0]]"),
          "ranks: host 1 is named, but host 0 has no ranks; number them from 0 without gaps");
}

TEST_CASE("networks that cannot be are refused") {
  refuses(file_with(R"("inside": 4)"), "inside: is 4, not an object");
  refuses(file_with(R"("inside": {})"), "inside.kind: is missing");
  refuses(file_with(R"("outside": {"kind": 1})"), "outside.kind: is 1, not a text");
  refuses(file_with(R"("outside": {"kind": "mesh"})"), "outside.kind: is \"mesh\"; it is \"switch\" or \"torus\"");
  refuses(file_with(R"("outside": {"kind": "switch", "speed": 1})"),
          "outside: has the unknown key \"speed\"; known are bandwidth, collision, extents, kind, latency, "
          "rails");
  refuses(file_with(R"("outside": {"kind": "switch", "extents": [2]})"), "outside.extents: belongs to a torus only");
  refuses(file_with(R"("outside": {"kind": "torus"})"),
          "outside.extents: is missing: a torus needs hosts in each dimension");
  for (const char* extents : {"4", "[]", "[1, 1, 1, 1, 1, 1, 1, 1]"}) {
    refuses(file_with(R"("inside": {"kind": "torus", "extents": )" + std::string(extents) + "}"),
            "inside.extents: is no list of 1 to 7 numbers");
  }
  refuses(file_with(R"("inside": {"kind": "torus", "extents": [2, 0]})"),
          "inside.extents[1]: is 0, not a whole number from 1");
  refuses(file_with(R"("inside": {"kind": "switch", "rails": 0})"),
          "inside.rails: is 0, not a whole number from 1 to 1024");
  refuses(file_with(R"("inside": {"kind": "switch", "bandwidth": -5e9})"),
          "inside.bandwidth: is -5000000000.0, not a positive number");
  refuses(file_with(R"("inside": {"kind": "switch", "latency": 0})"), "inside.latency: is 0, not a positive number");
  const std::string eight = R"({"count": 8, "per_host": 1})";
  refuses(file_of(eight, R"(, "outside": {"kind": "torus", "extents": [3, 2]})"),
          "outside.extents: hold 6 hosts, but the machine has 8");
  refuses(
      file_of(R"({"count": 8, "per_host": 1, "per_island": 4})", R"(, "inside": {"kind": "torus", "extents": [3]})"),
      "inside.extents: hold 3 hosts, but island 0 has 4");
  CHECK(refusal(file_of(eight, R"(, "outside": {"kind": "torus", "extents": [2, 2, 2]})")) == "no error");
  // Products of extents do not overflow, and many islands are looked at once each.
  CHECK(refusal(file_of(R"({"count": 300000, "per_host": 1})",
                        R"(, "inside": {"kind": "torus", "extents": [16777216, 16777216, 16777216, 16777216]})")) ==
        "no error");
}

TEST_CASE("networks that paths use and the machine does not have are refused") {
  refuses(file_with(R"("uses": ["mpi"])"), "uses: is [\"mpi\"], not an object");
  refuses(file_with(R"("uses": {"mpi": 1})"), "uses.mpi: is 1, not a text");
  refuses(file_with(R"("uses": {"mpi": "ib0"})"),
          "uses.mpi: is \"ib0\"; it is \"inside\" or \"outside\", a network of the machine");
  refuses(file_with(R"("uses": {"mpi": "outside"})"),
          "uses.mpi: is \"outside\", but the file has no network \"outside\"; describe it, or leave this out");
  refuses(file_with(R"("inside": {"kind": "switch", "collision": 1.5})"),
          "inside.collision: is 1.5, not a share of at most 1");
  refuses(file_with(R"("inside": {"kind": "switch", "collision": 0})"),
          "inside.collision: is 0, not a positive number");
}

TEST_CASE("constants may have the names that they had in an earlier version") {
  const Machine earlier = Machine::from_json(file_with(R"("constants": {"gpu_tell": 7, "copy_engine_tell": 8})"));
  CHECK(earlier.constants.gpu_signal == 7);
  CHECK(earlier.constants.copy_engine_signal == 8);
  CHECK(earlier.to_json().find("_tell") == std::string::npos);
  refuses(file_with(R"("constants": {"gpu_tell": 7, "gpu_signal": 7})"),
          "constants: has both \"gpu_signal\" and its earlier name \"gpu_tell\"");
}

TEST_CASE("prices and constants that cannot be are refused") {
  refuses(file_with(R"("paths": [])"), "paths: is [], not an object");
  refuses(file_with(R"("paths": {"mpi": 3})"), "paths.mpi: is 3, not an object");
  refuses(file_with(R"("paths": {"mpi": {"latncy": 1e-6}})"),
          "paths.mpi: has the unknown key \"latncy\"; known are bandwidth, bandwidth_above_<bytes>, "
          "bandwidth_of_<bytes>, bulk_bandwidth, bulk_from,");
  refuses(file_with(R"("paths": {"mpi": {"bandwidth": -1e9}})"),
          "paths.mpi.bandwidth: is -1000000000.0, not a positive number");
  refuses(file_with(R"("paths": {"mpi": {"mutual_latency": 0}})"),
          "paths.mpi.mutual_latency: is 0, not a positive number");
  refuses(file_with(R"("paths": {"mpi": {"per_run": "1e-9"}})"),
          "paths.mpi.per_run: is \"1e-9\", not a number of 0 or more");
  refuses(file_with(R"("paths": {"mpi": {"mutual_per_run": -1e-9}})"),
          "paths.mpi.mutual_per_run: is -1e-09, not a number of 0 or more");
  refuses(file_with(R"("paths": {"mpi": {"measured": 1}})"), "paths.mpi.measured: is 1, not true or false");
  refuses(file_with(R"("constants": 1)"), "constants: is 1, not an object");
  refuses(file_with(R"("constants": {"eager": 1})"), "constants: has the unknown key \"eager\"; known are ");
  refuses(file_with(R"("constants": {"of_sum": 0})"), "constants.of_sum: is 0, not a positive number");
  refuses(file_with(R"("constants": {"cache_line": 64.5})"),
          "constants.cache_line: is 64.5, not a whole number from 1");
  refuses(file_with(R"("constants": {"cache_line": 0})"), "constants.cache_line: is 0, not a whole number from 1");
}

TEST_CASE("uniform machines: hosts, islands of them that need not divide them, GPUs of an island reach each other") {
  const Machine plain = Machine::uniform(5, 2, 0);
  CHECK(plain.ranks == std::vector<Rank>{{0, 0, -1}, {0, 0, -1}, {1, 1, -1}, {1, 1, -1}, {2, 2, -1}});
  CHECK(plain.size() == 5);
  CHECK_FALSE(plain.gpus_complete());
  CHECK_FALSE(plain.reach(0, 1));
  const Machine cut = Machine::uniform(7, 5, 2, true);
  CHECK(cut.ranks == std::vector<Rank>{{0, 0, 0}, {0, 0, 0}, {0, 1, 1}, {0, 1, 1}, {0, 2, 2}, {1, 3, 3}, {1, 3, 3}});
  CHECK(cut.same_host(1, 2));
  CHECK_FALSE(cut.same_island(1, 2));
  CHECK_FALSE(cut.gpus_complete());
  CHECK(Machine::uniform(4, 4, 0, true).gpus_complete());
  CHECK_THROWS_WITH_AS(Machine::uniform(0, 1, 0), doctest::Contains("'ranks' is 0"), Error);
  CHECK_THROWS_WITH_AS(Machine::uniform(1, 0, 0), doctest::Contains("'per_host' is 0"), Error);
  CHECK_THROWS_WITH_AS(Machine::uniform(4, 2, 3), doctest::Contains("'per_island' is 3; give 0 (a whole host), 1 to 2"),
                       Error);
  CHECK(Machine::uniform(5, 2, 4, true).ranks ==
        std::vector<Rank>{{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {1, 0, 0}, {2, 1, 1}});
  CHECK_THROWS_WITH_AS(Machine::uniform(4, 2, -1), doctest::Contains("'per_island' is -1"), Error);
}

TEST_CASE("a machine is resized to its first ranks, or by more hosts like those that it has") {
  const Machine machine = full();
  for (const int ranks : {1, 5, 12}) {
    const Machine less = machine.resized(ranks);
    CHECK(less.ranks == std::vector<Rank>(machine.ranks.begin(), machine.ranks.begin() + ranks));
    CHECK(less.costs == machine.costs);
    CHECK(less.constants == machine.constants);
  }
  for (const auto& [per_host, per_island] : {std::pair{4, 0}, {4, 2}, {5, 2}, {1, 1}, {2, 6}}) {
    for (const bool gpus : {false, true}) {
      Machine pattern = Machine::uniform(3 * per_host, per_host, per_island, gpus);
      pattern.name = "pattern";
      CHECK(pattern.resized(1000).ranks == Machine::uniform(1000, per_host, per_island, gpus).ranks);
      CHECK(pattern.resized(1000).name == "pattern");
    }
  }
  CHECK_THROWS_WITH_AS((void)machine.resized(0), doctest::Contains("0 ranks were asked for; give 1 or more"), Error);
  // On a torus of 3 x 1 hosts.
  CHECK_THROWS_WITH_AS((void)machine.resized(13),
                       doctest::Contains("has 12 ranks, and 13 were asked for; its hosts form a torus of 3 x 1, which "
                                         "grows in its first dimension: give a multiple of 4"),
                       Error);
  CHECK(machine.resized(20).outside.extents == std::vector<int>{5, 1});
  CHECK(machine.resized(20).ranks == Machine::uniform(20, 4, 2, true).ranks);
  CHECK(Machine::from_json(machine.resized(20).to_json()) == machine.resized(20));
  Machine loose = machine;
  loose.outside.extents = {4, 1};
  CHECK_THROWS_WITH_AS((void)loose.resized(16), doctest::Contains("which they do not fill: give at most 12"), Error);
  Machine tori = Machine::uniform(16, 1, 8);
  tori.inside = {Network::Kind::torus, {2, 4}, 1, 4e9, 2e-6};
  CHECK(tori.resized(40).ranks == Machine::uniform(40, 1, 8).ranks);
  CHECK_THROWS_WITH_AS((void)tori.resized(20), doctest::Contains("each island is a torus, so give a multiple of 8"),
                       Error);
  Machine uneven = Machine::uniform(5, 2, 0);
  CHECK_THROWS_WITH_AS((void)uneven.resized(6), doctest::Contains("give at most 5"), Error);
  Machine mixed = Machine::uniform(4, 2, 0);
  std::swap(mixed.ranks[1], mixed.ranks[2]);
  CHECK_THROWS_WITH_AS((void)mixed.resized(8), doctest::Contains("give at most 4"), Error);
}
