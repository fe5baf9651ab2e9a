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
  CHECK(complaint("[]").find("no profile of version 8") != std::string::npos);
  CHECK(complaint("{\"version\": 9, \"paths\": {}}").find("no profile of version 8") != std::string::npos);
  CHECK(complaint("{\"version\": \"8\", \"paths\": {}}").find("no profile of version 8") != std::string::npos);
  CHECK(complaint("{\"version\": 8}").find("\"paths\" is missing") != std::string::npos);
  CHECK(complaint("{\"version\": 8, \"paths\": {\"mpi\": 3}}").find("\"mpi\" is no object") != std::string::npos);
  CHECK(complaint("{\"version\": 8, \"paths\": {\"mpi\": {\"latency\": -1}}}").find("\"mpi\".\"latency\" is -1") !=
        std::string::npos);
  CHECK(complaint("{\"version\": 8, \"paths\": {\"mpi\": {\"latency\": \"fast\"}}}").find("not a positive number") !=
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
