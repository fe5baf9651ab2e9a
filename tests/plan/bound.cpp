// The bound of the hardware (collectives/bound.hpp): no algorithm is predicted to fall below it.
#include "collectives/bound.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "collectives/candidates.hpp"
#include "paths/path.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

namespace {

CollectiveShape shape_of(CollectiveKind kind, std::int64_t count, Memory memory) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.count = kind == CollectiveKind::barrier ? 0 : count;
  shape.type = DType::f32;
  shape.memory = memory;
  return shape;
}

}  // namespace

TEST_CASE("no algorithm of a collective is predicted to fall below the bound of the hardware") {
  for (const Memory memory : {Memory::host, Memory::device}) {
    for (const int ranks : {2, 3, 8}) {
      const bool on_gpu = memory == Memory::device;
      const Machine machine = Machine::uniform(ranks, ranks, 0, on_gpu);
      for (const CollectiveKind kind : all_collectives()) {
        if (on_gpu && kind == CollectiveKind::barrier) continue;
        for (const std::int64_t count : {0, 1, 1000, 300'000}) {
          const CollectiveShape shape = shape_of(kind, count, memory);
          const auto collective = std::make_shared<const Collective>(machine, shape);
          const Bound bound = bound_of(machine, *collective);
          CAPTURE(to_string(kind));
          CAPTURE(to_string(memory));
          CAPTURE(ranks);
          CAPTURE(count);
          CHECK((bound.seconds > 0) == (count > 0 || kind == CollectiveKind::barrier));
          for (const Candidate& candidate : candidates_of(machine, collective)) {
            CAPTURE(name_of(candidate));
            if (candidate.predicted >= 0) CHECK(candidate.predicted >= bound.seconds * 0.98);
          }
        }
      }
    }
  }
}

TEST_CASE("between GPUs the bytes of a large message share the link") {
  Machine machine = Machine::uniform(2, 2, 0, true);
  for (const Path& path : all_paths()) {
    PathCost& cost = machine.costs[path.name];
    cost.bulk_from = 1 << 20;
    cost.one_way = cost.mutual = {.latency = 1e-6, .bandwidth = 800e9, .bulk_bandwidth = 400e9};
  }
  const auto seconds = [&](std::int64_t bytes) {
    const CollectiveShape shape = shape_of(CollectiveKind::broadcast, bytes / 4, Memory::device);
    return bound_of(machine, Collective(machine, shape)).seconds;
  };
  CHECK(seconds(1 << 20) == doctest::Approx(1e-6 + (1 << 20) / 800e9));
  CHECK(seconds(1 << 28) == doctest::Approx(1e-6 + (1 << 20) / 800e9 + ((1 << 28) - (1 << 20)) / 400e9));
}
