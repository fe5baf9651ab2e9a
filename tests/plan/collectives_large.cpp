// Collectives of more bytes than 32 bits can count: plans of every algorithm hold together, and no count is cut.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "collective_shapes.hpp"
#include "collectives/algorithm.hpp"
#include "collectives/collective.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

// Of all blocks, or of the vector: 3 and 4 ranks can cut it into parts of whole MiB, which the verifier follows.
constexpr std::int64_t kBytes = (std::int64_t{6} << 30) + (12 << 20);

std::int64_t largest_buffer(const Plan& plan) {
  std::int64_t most = 0;
  for (const Buffer& buffer : plan.buffers) most = std::max(most, buffer.bytes);
  return most;
}

}  // namespace

TEST_CASE("collectives of more than four gigabytes are sound, by every algorithm") {
  for (const CollectiveKind kind : all_collectives()) {
    if (kind == CollectiveKind::barrier) continue;
    for (const Algorithm* algorithm : algorithms_of(kind)) {
      if (algorithm->name == "torus") continue;
      for (const int ranks : {2, 3, 4}) {
        CollectiveShape shape;
        shape.kind = kind;
        shape.root = ranks - 1;
        shape.type = kind == CollectiveKind::broadcast ? DType::u8 : DType::f64;
        shape.count = kBytes / size_of(shape.type) / (has_blocks(kind) ? ranks : 1);
        shape.algorithm = algorithm->name;
        if (algorithm->settings != nullptr) shape.chunk = std::int64_t{1} << 28;
        const bool islands = ranks == 4;
        CAPTURE(to_string(kind));
        CAPTURE(shape.algorithm);
        CAPTURE(ranks);
        const Planned planned = plan(Machine::uniform(ranks, ranks, islands ? 2 : 0), shape);
        // The verifier follows what is combined element by element, which would be too many.
        if (!reduces(kind)) {
          const VerifyReport report = verify(planned.plans());
          INFO(report.text());
          CHECK(report.ok());
        }
        std::int64_t most = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const Plan one = planned.plan(rank);
          CHECK(one.complaints().empty());
          most = std::max(most, largest_buffer(one));
        }
        CHECK(most >= kBytes);
        const Prediction prediction = planned.predict();
        CHECK(prediction.seconds > 1e-3);
      }
    }
  }
}
