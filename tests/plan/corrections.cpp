// Corrections of collectives: how they are written, which of them count, and that the choice follows them.
#include "collectives/corrections.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "collectives/measuring.hpp"
#include "machine/profile.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

CollectiveShape allreduce_of(std::int64_t count) {
  CollectiveShape shape;
  shape.type = DType::f64;
  shape.count = count;
  shape.shared = true;
  return shape;
}

Correction correction_of(const std::string& algorithm, std::int64_t bytes, double factor, int ranks = 4) {
  Correction one;
  one.collective = "allreduce";
  one.ranks = ranks;
  one.algorithm = algorithm;
  one.bytes = bytes;
  one.factor = factor;
  return one;
}

const Algorithm& algorithm_named(const std::string& name) {
  for (const Algorithm* algorithm : algorithms_of(CollectiveKind::allreduce))
    if (algorithm->name == name) return *algorithm;
  throw Error("there is no " + name);
}

std::string refused(const std::string& entries) {
  try {
    Machine::from_json(R"({"tasuki_machine": 1, "ranks": {"count": 2}, "collectives": )" + entries + "}", "m.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("corrections are kept in machine files and in profiles, all of them") {
  Machine machine = Machine::uniform(4, 4, 2);
  machine.corrections = {correction_of("ring", 4096, 1.25), correction_of("ring", 8, 0.75)};
  machine.corrections[1].memory = Memory::device;
  machine.corrections[1].path = "shared:put,shared:eager";
  machine.corrections[1].islands = 2;
  machine.corrections[1].shared = false;
  machine.corrections[1].trees = 3;
  machine.corrections[1].arity = 2;
  machine.corrections[1].chunk = 77;
  CHECK(Machine::from_json(machine.to_json()) == machine);
  Profile profile;
  profile.set("mpi", {{"latency", 1.5e-6}, {"bandwidth", 3e9}});
  profile.set_corrections(machine.corrections);
  const std::string text = profile.to_json("a machine");
  CHECK(Profile::from_json(text, "p.json").corrections() == machine.corrections);
  CHECK(Profile::from_json(text, "p.json").sections() == profile.sections());
  // Those of another version of the model say nothing; the prices beside them hold.
  std::string other = text;
  other.replace(other.find("\"version\": 2"), 12, "\"version\": 9");
  CHECK(Profile::from_json(other, "p.json").corrections().empty());
  CHECK(Profile::from_json(other, "p.json").has("mpi"));
}

TEST_CASE("damaged corrections are refused with their place") {
  CHECK(refused("3") == "machine file m.json: collectives: is no list");
  CHECK(refused("[3]") == "machine file m.json: collectives[0]: is 3, not an object");
  CHECK(refused(R"([{"algorithm": "ring", "factor": 1}])") ==
        "machine file m.json: collectives[0].collective: is missing");
  CHECK(refused(R"([{"collective": "allreduce", "algorithm": "ring"}])") ==
        "machine file m.json: collectives[0].factor: is no number, or missing");
  const std::string good = R"({"collective": "allreduce", "algorithm": "ring", "factor": 2)";
  CHECK(refused("[" + good + "}]") == "no error");
  CHECK(refused("[" + good + "}, " + good + "}]") ==
        "machine file m.json: collectives[1]: is of the same candidate as one before");
  CHECK(refused("[" + good + R"(, "speed": 2}])") ==
        "machine file m.json: collectives[0]: has the unknown key \"speed\"");
  CHECK(refused("[" + good + R"(, "bytes": -1}])").find("collectives[0].bytes: is -1, not a whole number") !=
        std::string::npos);
  CHECK(refused("[" + good + R"(, "bytes": 1e300}])").find("not a whole number") != std::string::npos);
  CHECK(refused("[" + good + R"(, "ranks": 1}])").find("not a whole number from 2") != std::string::npos);
  CHECK(refused("[" + good + R"(, "path": 1}])").find("is 1, not a text") != std::string::npos);
  CHECK(refused("[" + good + R"(, "memory": "tape"}])").find("it is \"host\" or \"device\"") != std::string::npos);
  CHECK(refused(R"([{"collective": "allreduce", "algorithm": "ring", "factor": -2}])").find("not a positive number") !=
        std::string::npos);
}

TEST_CASE("those of the nearest size on as many ranks and islands count") {
  Machine machine = Machine::uniform(4, 4, 0);
  machine.corrections = {correction_of("ring", 64, 2), correction_of("ring", 4096, 3),
                         correction_of("ring", 1 << 20, 5), correction_of("exchange", 4096, 7),
                         correction_of("ring", 4096, 11, 2)};
  const auto factor = [&](std::int64_t count, const char* algorithm) {
    const Collective collective(machine, allreduce_of(count));
    return Corrections(machine, collective).of(algorithm_named(algorithm), {}, "auto").factor;
  };
  CHECK(factor(8, "ring") == 2);    // 64 B
  CHECK(factor(600, "ring") == 3);  // 4,800 B
  CHECK(factor(512, "exchange") == 7);
  CHECK(factor(512, "halving") == 7);  // was not measured: the median, of two the larger
  CHECK(factor(1 << 20, "ring") == 5);
  CHECK(factor(1 << 20, "exchange") == 5);
  machine.corrections[1].islands = machine.corrections[3].islands = 2;
  CHECK(factor(600, "ring") == 2);
  machine.corrections.resize(1);
  machine.corrections[0] = correction_of("ring", 4096, 3);
  CHECK(factor(600, "ring") == 3);
  machine.corrections[0].shared = false;  // measured in memory that ranks do not share
  CHECK(factor(600, "ring") == 1);
  machine.corrections.resize(0);
  CHECK(factor(600, "ring") == 1);
}

TEST_CASE("the choice follows the corrections, says so, and is the same for every rank") {
  Machine machine = Machine::uniform(4, 4, 0);
  const CollectiveShape shape = allreduce_of(512);
  const std::string before = CollectivePlan(machine, shape).algorithm().name;
  const std::string other = before == "ring" ? "halving" : "ring";
  for (const char* name : {"exchange", "direct", "doubling", "ring", "halving"})
    machine.corrections.push_back(correction_of(name, 4096, name == other ? 0.01 : 10));
  const CollectivePlan after(machine, shape);
  CHECK(after.algorithm().name == other);
  const Planned planned = plan(machine, shape);
  const std::string text = planned.explain(2);
  INFO(text);
  CHECK(text.find("algorithm: " + other) != std::string::npos);
  CHECK(text.find("us predicted   corrected") != std::string::npos);
  CHECK(text.find('*') != std::string::npos);
  CHECK(text.find("bound of the hardware, by the prices: ") != std::string::npos);
  const VerifyReport report = verify(planned.plans());
  CHECK(report.ok());
  machine.corrections.clear();
  CHECK(plan(machine, shape).explain(2).find("corrected") == std::string::npos);
}

TEST_CASE("a measured path is a candidate of its own, and is taken") {
  Machine machine = Machine::uniform(2, 2, 0);
  const CollectiveShape shape = allreduce_of(512);
  machine.corrections = {correction_of("doubling", 4096, 10, 2), correction_of("doubling", 4096, 0.01, 2)};
  machine.corrections[1].path = "mpi";
  const CollectivePlan layout(machine, shape);
  CHECK(layout.algorithm().name == "doubling");
  CHECK(layout.path() == "mpi");
  const Planned planned = plan(machine, shape);
  CHECK(planned.explain(0).find("doubling over mpi") != std::string::npos);
  for (const Message& message : planned.messages()) CHECK(message.path == "mpi");
  CHECK(verify(planned.plans()).ok());
  // Who asks for a path gets that.
  CollectiveShape forced = shape;
  forced.path = "shared:eager";
  CHECK(CollectivePlan(machine, forced).path() == "auto");
  for (const Message& message : plan(machine, forced).messages()) CHECK(message.path == "shared:eager");
}

TEST_CASE("what is worth measuring: several algorithms, other paths, nothing twice, and all of it can be made") {
  const Machine machine = Machine::uniform(3, 3, 0);
  for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::broadcast, CollectiveKind::barrier}) {
    CollectiveShape shape = allreduce_of(1000);
    shape.kind = kind;
    if (kind == CollectiveKind::broadcast) shape.type = DType::u8;
    const auto collective = std::make_shared<const Collective>(machine, shape);
    const std::vector<Candidate> all = worth_measuring(machine, collective);
    CHECK(all.size() >= (kind == CollectiveKind::barrier ? 2U : 4U));
    std::vector<std::string> names;
    for (const Candidate& candidate : all) {
      for (const std::string& name : names) CHECK(name != name_of(candidate));
      names.push_back(name_of(candidate));
      const VerifyReport report = verify(plans_of(machine, collective, candidate));
      INFO(name_of(candidate));
      INFO(report.text());
      CHECK(report.ok());
    }
  }
}
