// The machine profile: reads back what it wrote, and says where a corrupt file is wrong.
#include "machine/profile.hpp"

#include <doctest/doctest.h>

#include <string>

#include "paths/corrected.hpp"
#include "planner/planner.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;

namespace {
std::string complaint(const std::string& text) {
  try {
    Profile::from_json(text, "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("a profile reads back and answers with measured values before fallbacks") {
  Profile profile;
  profile.set("mpi", {{"latency", 1.5e-6}, {"bandwidth", 3e9}});
  const Profile back = Profile::from_json(profile.to_json("a machine"), "p.json");
  CHECK(back.sections() == profile.sections());
  CHECK(back.has("mpi"));
  CHECK_FALSE(back.has("shared:put"));
  const PathCost cost = cost_of(back.sections().at("mpi"));
  CHECK(cost.measured);
  CHECK(cost.one_way == LinkCost{1.5e-6, 3e9, 3e9, LinkCost{}.per_run});
  CHECK(cost.mutual == cost.one_way);
  CHECK(cost.bulk_from == 0);
  Machine machine;
  machine.costs["mpi"] = cost;
  CHECK(machine.cost("mpi") == cost);
  CHECK(machine.cost("shared:put") == PathCost{});
  CHECK_FALSE(machine.cost("shared:put").measured);
}

TEST_CASE("a corrupt profile is named with the place and what to do") {
  const std::string advice = "delete the file to have it measured again, or set TASUKI_PROFILE to another";
  CHECK(complaint("{\"version\": 1,").find("p.json: not JSON at byte") != std::string::npos);
  CHECK(complaint("{\"version\": 1e999}").find("1e999") != std::string::npos);
  CHECK(complaint(" ").find(advice) != std::string::npos);
  CHECK(complaint("[]").find("no profile of version 13") != std::string::npos);
  CHECK(complaint("{\"version\": 14, \"paths\": {}}").find("no profile of version 13") != std::string::npos);
  CHECK(complaint("{\"version\": \"13\", \"paths\": {}}").find("no profile of version 13") != std::string::npos);
  CHECK(complaint("{\"version\": 13}").find("\"paths\" is missing") != std::string::npos);
  CHECK(complaint("{\"version\": 13, \"paths\": {\"mpi\": 3}}").find("\"mpi\" is no object") != std::string::npos);
  CHECK(complaint("{\"version\": 13, \"paths\": {\"mpi\": {\"latency\": -1}}}").find("\"mpi\".\"latency\" is -1") !=
        std::string::npos);
  CHECK(complaint("{\"version\": 13, \"paths\": {\"mpi\": {\"latency\": \"fast\"}}}").find("not a positive number") !=
        std::string::npos);
}

TEST_CASE("a profile tells how its prices came about, and newer measurements replace older ones") {
  Provenance first;
  first.date = "2026-11-24T17:24:05Z";
  first.host = "node\n7";
  first.ranks = 2;
  first.cores = 2;
  first.load = 0.3;
  first.others = 0.02;
  first.spread = {{"mpi", 0.031}, {"shared:put", 0.02}};
  CHECK_FALSE(first.busy());
  CHECK_FALSE(first.uncertain());
  Profile profile;
  profile.set("mpi", {{"latency", 1.5e-6}, {"bandwidth", 3e9}});
  profile.set_provenance({first});
  CHECK(Profile::from_json(profile.to_json("a machine"), "p.json").provenance() == std::vector{first});
  CHECK(described({first}) == "measured 2026-11-24 17:24 UTC on node\n7, within 4 %");
  Provenance second = first;
  second.date = "2026-11-25T08:00:00Z";
  second.others = 0.98;
  second.spread = {{"mpi", 0.6}};
  second.derived = {{"mpi", "8 bytes took 9 us"}};
  CHECK(second.busy());
  CHECK(second.uncertain());
  // Measured again only where the machine does less besides than it did then; the surer price stays.
  CHECK_FALSE(first.may_improve(0));
  CHECK(second.may_improve(0.1));
  CHECK_FALSE(second.may_improve(0.8));
  CHECK(first.surer(second, "mpi"));
  CHECK_FALSE(second.surer(first, "mpi"));
  Provenance wide = first;
  wide.spread["mpi"] = 0.4;
  CHECK(wide.may_improve(0.2));
  CHECK_FALSE(wide.may_improve(0.5));
  CHECK(first.surer(wide, "mpi"));
  CHECK(wide.surer(second, "mpi"));  // which had no machine to itself
  std::vector<Provenance> known{wide};
  Provenance again = first;
  again.spread = {{"mpi", 0.1}, {"shared:put", 0.9}, {"self", 0.9}};
  CHECK(keep_surer(known, again) == std::vector<std::string>{"shared:put"});
  CHECK(again.spread == std::map<std::string, double>{{"mpi", 0.1}, {"self", 0.9}});
  CHECK(again.attempts == 2);
  CHECK(known[0].attempts == 2);
  wide.attempts = 3;
  CHECK_FALSE(wide.may_improve(0));
  // Attempts beside others are many, and do not count once the machine is quiet.
  Provenance busy = second;
  busy.attempts = 3;
  CHECK(busy.may_improve(0));
  std::vector<Provenance> beside{busy};
  Provenance still = second;
  keep_surer(beside, still);
  CHECK(still.attempts == 4);
  Provenance quiet = wide;
  quiet.attempts = 1;
  keep_surer(beside, quiet);
  CHECK(quiet.attempts == 1);
  CHECK(quiet.may_improve(0));
  busy.attempts = 12;
  CHECK_FALSE(busy.may_improve(0));
  std::vector<Provenance> all{first};
  add_provenance(all, second);
  REQUIRE(all.size() == 2);
  CHECK(all[0].spread == std::map<std::string, double>{{"shared:put", 0.02}});
  const std::string text = described(all);
  CHECK(text.find("uncertain (mpi 60 %)") != std::string::npos);
  CHECK(text.find("other processes used 1.0 of 2 cores") != std::string::npos);
  CHECK(text.find("8 bytes took 9 us") != std::string::npos);
  for (const char* bad : {"3", "[3]", "[{\"date\": 3}]", "[{\"spread\": {\"mpi\": -1}}]", "[{\"ranks\": -1}]"})
    CHECK(complaint(std::string("{\"version\": 13, \"paths\": {}, \"measured\": ") + bad + "}").find("measured") !=
          std::string::npos);
}

TEST_CASE("a corrected price is what was found, and the constant that decides it changes alone") {
  Machine machine = Machine::uniform(2, 2, 0);
  const Path& path = path_named("shared:eager");
  const PathCost cost =
      cost_of({{"latency", 1e-6}, {"bandwidth", 1e10}, {"bulk_bandwidth", 3e10}, {"bulk_from", 32768}});
  const PricedMove large{0, 1, 1 << 20, 1, 1 << 20, true};
  const PricedMove word{0, 1, 8, 1, 8, true};
  const double before = price_of(machine, path, cost, large);
  const PathCost slower = corrected(machine, path, cost, large, 6 * before);
  CHECK(price_of(machine, path, slower, large) == doctest::Approx(6 * before));
  CHECK(price_of(machine, path, slower, word) == doctest::Approx(price_of(machine, path, cost, word)));
  const PathCost late = corrected(machine, path, cost, word, 1e-5);
  CHECK(price_of(machine, path, late, word) == doctest::Approx(1e-5));
  CHECK(corrected(machine, path, cost, large, before / 2) == cost);  // never cheaper
  CHECK(price_of(machine, path, cost, {0, 0, 8, 1, 8, false}) == 0);
}

TEST_CASE("a profile of an earlier version is none, and measured again") {
  const std::string old = "{\"version\": 1, \"paths\": {\"mpi\": {\"latency\": 1e-6}}}";
  CHECK(Profile::from_json(old, "p.json").sections().empty());
}

TEST_CASE("a piece costs what its link does: both ways where the peer sends too, in bulk what is above a face") {
  Machine machine;
  machine.costs["mpi"] = cost_of({{"latency", 3e-6},
                                  {"mutual_latency", 4e-6},
                                  {"bandwidth", 1e9},
                                  {"bulk_bandwidth", 2e9},
                                  {"bulk_from", 8000},
                                  {"per_run", 1e-9},
                                  {"mutual_per_run", 5e-6}});
  machine.costs["nccl"] = cost_of({{"latency", 3e-6}, {"bandwidth", 1e9}, {"per_run", 1e-9}});
  const auto priced_on = [&](const std::string& path, const Move& move) {
    const BufferFact fact;
    return priced({machine, machine.cost(path), false, move, fact, fact});
  };
  Move move;
  StridedCopy copy;
  copy.block = 10000;
  move.copies = {copy};
  const double face = 8e-6 + 1e-9;
  CHECK(priced_on("mpi", move).latency == 3e-6);
  CHECK(priced_on("mpi", move).seconds == doctest::Approx(face + 1e-6));
  CHECK(priced_on("nccl", move).seconds == doctest::Approx(face + 2e-6));
  Move half = move;  // of a transfer
  half.copies[0].block = 5000;
  half.whole = 10000;
  CHECK(priced_on("mpi", half).seconds == doctest::Approx((8e-6 + 1e-6) / 2 + 1e-9));
  half.copies[0].block = 0;
  half.whole = 0;
  CHECK(priced_on("mpi", half).seconds == doctest::Approx(1e-9));
  std::vector<Move> moves{move, move, move};
  moves[0].dst_rank = 1;  // 0 to 1, 1 to 0, 2 to 0
  moves[1].src_rank = 1;
  moves[2].src_rank = 2;
  mark_mutual(moves);
  CHECK(priced_on("mpi", moves[0]).latency == 4e-6);
  CHECK(priced_on("mpi", moves[1]).latency == 4e-6);
  CHECK(priced_on("mpi", moves[1]).seconds == doctest::Approx(face + 1e-6 + 5e-6 - 1e-9));
  CHECK(priced_on("nccl", moves[1]).latency == 3e-6);
  CHECK(priced_on("mpi", moves[2]).latency == 3e-6);
}

TEST_CASE("runs cost what they do within a rank where the side in another rank's memory is contiguous") {
  Machine machine = Machine::uniform(2, 2, 2);
  machine.costs["self"] = cost_of({{"latency", 0}, {"bandwidth", 1e9}, {"per_run", 1e-9}});
  for (const char* path : {"shared:put", "shared:pull", "shared:eager"})
    machine.costs[path] = cost_of({{"latency", 1e-6}, {"bandwidth", 1e9}, {"per_run", 10e-9}});
  StridedCopy gathered{0, 0, 8, 1, {}};
  gathered.dims[0] = {1000, 64, 8};
  StridedCopy spread = gathered;
  spread.dims[0] = {1000, 8, 64};
  StridedCopy both = gathered;
  both.dims[0] = {1000, 64, 64};
  const auto seconds = [&](const std::string& path, const StridedCopy& copy) {
    BufferFact fact;
    fact.shared = true;
    Move move;
    move.dst_rank = 1;
    move.copies = {copy};
    return path_named(path).offer({machine, machine.cost(path), true, move, fact, fact}).seconds;
  };
  constexpr double kBytes = 8e-6;
  // A put stores into the other rank's memory, a pull loads from it; there each line goes to and fro.
  CHECK(seconds("shared:put", gathered) == doctest::Approx(kBytes + 1e-6));
  CHECK(seconds("shared:put", spread) == doctest::Approx(kBytes + 20e-6));
  CHECK(seconds("shared:pull", gathered) == doctest::Approx(kBytes + 20e-6));
  CHECK(seconds("shared:pull", spread) == doctest::Approx(kBytes + 1e-6));
  CHECK(seconds("shared:put", both) == doctest::Approx(kBytes + 20e-6));
  // A ring is packed at one end and unpacked at the other.
  CHECK(seconds("shared:eager", both) == doctest::Approx(kBytes + 10e-6));
  CHECK(seconds("shared:eager", gathered) == doctest::Approx(kBytes + 5e-6));
}

TEST_CASE("what is not known of a user's own memory is as in memory that ranks share") {
  const PathCost cost = cost_of({{"latency", 2e-7},
                                 {"mutual_latency", 3e-7},
                                 {"per_run", 1e-9},
                                 {"mutual_per_run", 2e-9},
                                 {"own_bandwidth_of_1000", 1e9},
                                 {"own_mutual_bandwidth_of_1000", 2e9}});
  REQUIRE(cost.own);
  CHECK(cost.own_one_way.latency == 2e-7);
  CHECK(cost.own_mutual.latency == 3e-7);
  CHECK(cost.own_one_way.per_run == 1e-9);
  CHECK(cost.own_mutual.per_run == 2e-9);
  CHECK(cost_of({{"mutual_latency", 3e-7}, {"own_latency", 5e-7}}).own_mutual.latency == 5e-7);
}

TEST_CASE("a run costs more where an epoch moves more of them than caches hold") {
  Profile profile;
  profile.set("mpi", {{"latency", 1e-6}, {"bandwidth", 1e9}, {"per_run", 1e-9}, {"per_run_of_32768", 5e-9}});
  const Profile back = Profile::from_json(profile.to_json("a machine"), "p.json");
  CHECK(back.sections() == profile.sections());
  const PathCost cost = cost_of(back.sections().at("mpi"));
  CHECK(cost_of(section_of(cost)) == cost);
  CHECK(cost.mutual == cost.one_way);
  Machine machine;
  machine.costs["mpi"] = cost;
  const auto a_run = [&](std::int64_t runs, std::int64_t moved = 0) {
    StridedCopy copy{0, 0, 8, 1, {}};
    copy.dims[0] = {runs, 64, 64};
    Move move;
    move.copies = {copy};
    const BufferFact fact;
    const double seconds = priced({machine, cost, false, move, fact, fact, false, moved}).seconds;
    return (seconds - 8 * static_cast<double>(runs) / 1e9) / static_cast<double>(runs);
  };
  CHECK(a_run(100) == doctest::Approx(1e-9));
  CHECK(a_run(2048) == doctest::Approx(1e-9));
  CHECK(a_run(8192) == doctest::Approx(3e-9));  // half-way, by the logarithm
  CHECK(a_run(32768) == doctest::Approx(5e-9));
  CHECK(a_run(1 << 20) == doctest::Approx(5e-9));
  // What else the epoch moves has the caches, too.
  CHECK(a_run(4096, 4 * 8 * 4096) == doctest::Approx(4e-9));
}

TEST_CASE("bandwidths by size take the place of the others, and a part of a piece has that of the whole") {
  Profile profile;
  profile.set("mpi", {{"latency", 1e-6},
                      {"bandwidth", 9e9},
                      {"bandwidth_of_1000", 1e9},
                      {"bandwidth_of_100000", 4e9},
                      {"mutual_bandwidth_of_1000", 5e8},
                      {"own_latency", 2e-6},
                      {"own_bandwidth_of_1000", 2e9}});
  const Profile back = Profile::from_json(profile.to_json("a machine"), "p.json");
  CHECK(back.sections() == profile.sections());
  const PathCost cost = cost_of(back.sections().at("mpi"));
  REQUIRE(cost.own);
  CHECK(cost_of(section_of(cost)) == cost);
  const auto seconds = [&](std::int64_t bytes, std::int64_t whole, bool mutual = false, bool own = false) {
    Move move;
    StridedCopy copy;
    copy.block = bytes;
    move.copies = {copy};
    move.whole = whole;
    move.mutual = mutual;
    const BufferFact fact;
    const Offer offer = priced({Machine{}, cost, false, move, fact, fact, own});
    CHECK(offer.latency == (own ? 2e-6 : 1e-6));
    return offer.seconds - 2e-9;  // less the one run
  };
  CHECK(seconds(1000, 0) == doctest::Approx(1e-6));
  CHECK(seconds(10, 0) == doctest::Approx(1e-8));      // below all sizes: as the least
  CHECK(seconds(200000, 0) == doctest::Approx(5e-5));  // above them: as the greatest
  CHECK(seconds(10000, 0) == doctest::Approx(5e-6));   // in the middle, by logarithms: 2 GB/s
  CHECK(seconds(1000, 100000) == doctest::Approx(2.5e-7));
  CHECK(seconds(100000, 0, true) == doctest::Approx(2e-4));
  CHECK(seconds(1000, 0, false, true) == doctest::Approx(5e-7));
  CHECK(seconds(1000, 0, true, true) == doctest::Approx(5e-7));
  CHECK(
      complaint("{\"version\": 13, \"paths\": {\"mpi\": {\"bandwidth_of_4\": -1}}}").find("\"bandwidth_of_4\" is -1") !=
      std::string::npos);
}
