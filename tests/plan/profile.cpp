// The machine profile: reads back what it wrote, and says where a corrupt file is wrong.
#include "machine/profile.hpp"

#include <doctest/doctest.h>

#include <string>

#include "paths/path.hpp"
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
  CHECK(complaint("[]").find("no profile of version 9") != std::string::npos);
  CHECK(complaint("{\"version\": 10, \"paths\": {}}").find("no profile of version 9") != std::string::npos);
  CHECK(complaint("{\"version\": \"9\", \"paths\": {}}").find("no profile of version 9") != std::string::npos);
  CHECK(complaint("{\"version\": 9}").find("\"paths\" is missing") != std::string::npos);
  CHECK(complaint("{\"version\": 9, \"paths\": {\"mpi\": 3}}").find("\"mpi\" is no object") != std::string::npos);
  CHECK(complaint("{\"version\": 9, \"paths\": {\"mpi\": {\"latency\": -1}}}").find("\"mpi\".\"latency\" is -1") !=
        std::string::npos);
  CHECK(complaint("{\"version\": 9, \"paths\": {\"mpi\": {\"latency\": \"fast\"}}}").find("not a positive number") !=
        std::string::npos);
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
      complaint("{\"version\": 9, \"paths\": {\"mpi\": {\"bandwidth_of_4\": -1}}}").find("\"bandwidth_of_4\" is -1") !=
      std::string::npos);
}
