// The machine files that come with Tasuki: each loads, and plans for it are sound.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "shipped_machine.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

void check_sound(const Planned& planned) {
  const auto plans = planned.plans();
  const VerifyReport report = verify(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(!planned.explain(planned.ranks() - 1).empty());
}

}  // namespace

TEST_CASE("every machine file loads, is written as it was read, and has sound plans") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TASUKI_MACHINES)) {
    CAPTURE(entry.path().string());
    REQUIRE(entry.path().extension() == ".json");
    ++files;
    const Machine machine = shipped_machine(entry.path().stem().string());
    CHECK(machine.name == entry.path().stem().string());
    CHECK((machine.source.starts_with("measured") || machine.source.starts_with("from the paper's figures") ||
           machine.source.starts_with("typical")));
    CHECK(Machine::from_json(machine.to_json()) == machine);
    REQUIRE(machine.size() >= 2);
    for (const auto& [path, cost] : machine.costs) CHECK(cost.measured);
    if (machine.size() > 64) continue;  // too many to verify; tests/cli predicts for 16 of them

    HaloShape halo;
    halo.extents = {13, 11, 3 * machine.size() + 1};
    halo.grid.periodic = {true, false, true};
    halo.fields.push_back({.name = "p", .shadow = 2, .width = 1});
    halo.alternating = true;
    halo.fields.push_back({.name = "q", .element_bytes = 4, .dtype = DType::f32, .copies = 2});
    check_sound(plan(machine, halo));
    if (machine.ranks[0].gpus >= 0) {
      for (FieldShape& field : halo.fields) field.memory = Memory::device;
      check_sound(plan(machine, halo));
    }
    check_sound(plan(machine, CollectiveShape::broadcast(machine.size() / 2, 70001)));
  }
  CHECK(files >= 6);
}

TEST_CASE("on two H200s reductions of 16 MiB are added up as they arrive, and larger ones copied in shrinking parts") {
  const Machine machine = shipped_machine("h200-2");
  CollectiveShape shape;
  shape.kind = CollectiveKind::allreduce;
  shape.memory = Memory::device;
  shape.shared = true;
  shape.type = DType::f32;
  shape.count = 4 << 20;
  for (const Plan& plan : plan(machine, shape).plans()) {
    std::int64_t taken = 0;  // bytes that this rank takes out of LL lines
    for (const Command& c : plan.commands)
      if ((c.verb == Verb::copy || c.verb == Verb::reduce) &&
          plan.buffers[static_cast<std::size_t>(c.src)].home == Home::ll)
        taken += c.bytes;
    CHECK(taken == 16 << 20);
  }
  shape.count = 64 << 20;
  for (const Plan& plan : plan(machine, shape).plans()) {
    std::vector<std::int64_t> parts;
    for (const Command& c : plan.commands)
      if (c.verb == Verb::put) parts.push_back(c.bytes);
    REQUIRE(parts.size() > 4);
    // The first has what is left, each later one fewer bytes than the one before it.
    for (std::size_t p = 2; p < parts.size(); ++p) CHECK(parts[p] < parts[p - 1]);
    CHECK(parts.back() <= 8 << 20);
    CHECK(std::find(plan.paths.begin(), plan.paths.end(), "peer:copy") != plan.paths.end());
  }
}
