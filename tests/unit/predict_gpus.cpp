// What is predicted for four GPUs, beside what was measured on four H200s (bench/results/algorithms-gpu-4.txt;
// the allgather by `direct`: collectives-gpu-4.json). Both
// directions of a GPU's links and the rounds of chunk loops are priced.
#include <doctest/doctest.h>

#include <vector>

#include "shipped_machine.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

TEST_CASE("collectives of four GPUs are predicted near to what they take") {
  const Machine machine = shipped_machine("h200-4");
  struct Measured {
    CollectiveKind kind;
    int mib;  // of the whole buffer
    const char* algorithm;
    int trees;
    int chunk_kib;
    double us;
  };
  // Messages to the root share the links into its GPU. Each round of a loop costs the blocks some microseconds. Stamped
  // lines are handed on before the last one has come.
  for (const Measured& one : std::vector<Measured>{{CollectiveKind::broadcast, 256, "trees", 3, 2048, 810},
                                                   {CollectiveKind::broadcast, 256, "trees", 3, 4096, 821},
                                                   {CollectiveKind::broadcast, 256, "binomial", 0, 0, 1420},
                                                   {CollectiveKind::broadcast, 64, "trees", 3, 2048, 239},
                                                   {CollectiveKind::broadcast, 16, "trees", 3, 512, 86},
                                                   {CollectiveKind::broadcast, 16, "trees", 1, 16384, 61},
                                                   {CollectiveKind::reduce, 256, "collect", 0, 0, 2051},
                                                   {CollectiveKind::reduce, 256, "direct", 0, 0, 2180},
                                                   {CollectiveKind::reduce, 256, "binomial", 0, 0, 1992},
                                                   {CollectiveKind::reduce, 64, "trees", 3, 1024, 305},
                                                   {CollectiveKind::reduce, 16, "trees", 3, 512, 92},
                                                   {CollectiveKind::reduce, 16, "direct", 0, 0, 148},
                                                   {CollectiveKind::allgather, 256, "direct", 0, 0, 553},
                                                   {CollectiveKind::allgather, 256, "ring", 0, 0, 667},
                                                   {CollectiveKind::reduce_scatter, 256, "direct", 0, 0, 661}}) {
    const bool vector = one.kind == CollectiveKind::broadcast || one.kind == CollectiveKind::reduce;
    CollectiveShape shape;
    shape.kind = one.kind;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.type = DType::f32;
    shape.count = (std::int64_t{one.mib} << 20) / 4 / (vector ? 1 : 4);
    shape.algorithm = one.algorithm;
    shape.trees = one.trees;
    shape.arity = one.trees > 0 ? 1 : 0;
    shape.chunk = std::int64_t{one.chunk_kib} << 10;
    CAPTURE(to_string(one.kind));
    CAPTURE(one.algorithm);
    CAPTURE(one.mib);
    CAPTURE(one.chunk_kib);
    const Planned planned = plan(machine, shape);
    CHECK(verify(planned.plans()).ok());
    const double us = predict(planned.plans(), machine).back_to_back * 1e6;
    CAPTURE(us);
    CHECK(us > 0.75 * one.us);
    CHECK(us < 1.25 * one.us);
  }
}
