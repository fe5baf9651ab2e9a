// What is predicted for four GPUs, beside what was measured on four H200s (bench/results/algorithms-gpu-4.txt, the last
// section). Both directions of a GPU's links, the rounds of chunk loops, and what is handed on line by line are priced.
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
  // Messages to the root share the links into its GPU. Each round of a loop costs the blocks some microseconds. LL
  // lines are handed on before the last one has come.
  for (const Measured& one : std::vector<Measured>{{CollectiveKind::broadcast, 256, "trees", 3, 2048, 817},
                                                   {CollectiveKind::broadcast, 256, "trees", 3, 4096, 824},
                                                   {CollectiveKind::broadcast, 256, "trees", 1, 4096, 829},
                                                   {CollectiveKind::broadcast, 256, "binomial", 0, 0, 1419},
                                                   {CollectiveKind::broadcast, 64, "trees", 3, 2048, 238},
                                                   {CollectiveKind::broadcast, 64, "trees", 1, 65540, 197},
                                                   {CollectiveKind::broadcast, 16, "trees", 3, 2048, 86},
                                                   {CollectiveKind::broadcast, 16, "trees", 1, 16388, 52},
                                                   {CollectiveKind::reduce, 256, "trees", 1, 262148, 812},
                                                   {CollectiveKind::reduce, 256, "trees", 3, 4096, 1126},
                                                   {CollectiveKind::reduce, 256, "collect", 0, 0, 2053},
                                                   {CollectiveKind::reduce, 256, "direct", 0, 0, 2175},
                                                   {CollectiveKind::reduce, 256, "binomial", 0, 0, 1980},
                                                   {CollectiveKind::reduce, 64, "trees", 3, 1024, 301},
                                                   {CollectiveKind::reduce, 64, "trees", 1, 65540, 213},
                                                   {CollectiveKind::reduce, 16, "direct", 0, 0, 147},
                                                   {CollectiveKind::allreduce, 16, "relay", 0, 0, 88},
                                                   {CollectiveKind::allreduce, 64, "relay", 0, 0, 329},
                                                   {CollectiveKind::allreduce, 64, "direct", 0, 0, 343},
                                                   {CollectiveKind::allreduce, 256, "direct", 0, 0, 1243},
                                                   {CollectiveKind::allgather, 256, "direct", 0, 0, 551},
                                                   {CollectiveKind::allgather, 256, "ring", 0, 0, 630},
                                                   {CollectiveKind::reduce_scatter, 256, "direct", 0, 0, 660}}) {
    const bool block = one.kind == CollectiveKind::allgather || one.kind == CollectiveKind::reduce_scatter;
    CollectiveShape shape;
    shape.kind = one.kind;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.type = DType::f32;
    shape.count = (std::int64_t{one.mib} << 20) / 4 / (block ? 4 : 1);
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
