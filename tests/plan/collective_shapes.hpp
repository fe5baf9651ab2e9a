// What the tests of collectives' plans, on hosts and on GPUs, draw their cases from, and how they check plans.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

using Random = std::mt19937;

inline std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
}

/// Random counts: few, odd, uneven, none.
inline CollectiveShape random_shape(CollectiveKind kind, int ranks, Random& random) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.root = static_cast<int>(below(random, ranks));
  const std::vector<DType> types{DType::f64,     DType::i32,     DType::u8,  DType::f16,
                                 DType::f32_i32, DType::f64_i32, DType::c128};
  shape.type = types[static_cast<std::size_t>(below(random, std::ssize(types)))];
  shape.op = shape.type == DType::f32_i32   ? ReduceOp::minloc
             : shape.type == DType::f64_i32 ? ReduceOp::maxloc
                                            : ReduceOp::sum;
  const std::vector<std::int64_t> counts{0, 1, 3, ranks, 2 * ranks + 1, 97};
  shape.count = counts[static_cast<std::size_t>(below(random, std::ssize(counts)))];
  shape.in_place = below(random, 2) == 0;
  shape.shared = below(random, 2) == 0;
  if (has_blocks(kind) && below(random, 2) == 0) {
    const bool matrix = kind == CollectiveKind::alltoall;
    shape.counts.resize(static_cast<std::size_t>(matrix ? ranks * ranks : ranks));
    for (auto& count : shape.counts) count = below(random, 3) == 0 ? 0 : below(random, 9);
    for (int a = 0; a < ranks && matrix && shape.in_place; ++a)
      for (int b = 0; b < a; ++b)
        shape.counts[static_cast<std::size_t>(a * ranks + b)] = shape.counts[static_cast<std::size_t>(b * ranks + a)];
  }
  return shape;
}

/// Those that can be on machines without a torus.
inline std::vector<const Algorithm*> algorithms_for(CollectiveKind kind) {
  std::vector<const Algorithm*> all = algorithms_of(kind);
  std::erase_if(all, [](const Algorithm* algorithm) { return algorithm->name == "torus"; });
  return all;
}

inline std::string described(const CollectiveShape& shape, int ranks) {
  std::string counts;
  for (const std::int64_t count : shape.counts) counts += " " + std::to_string(count);
  return std::string(to_string(shape.kind)) + ":" + shape.algorithm + " on " + std::to_string(ranks) + " root " +
         std::to_string(shape.root) + " count " + std::to_string(shape.count) + " counts" + counts + " of " +
         std::string(to_string(shape.type)) + (shape.in_place ? " in place" : "") + (shape.shared ? " shared" : "") +
         " path " + shape.path + " trees " + std::to_string(shape.trees) + " arity " + std::to_string(shape.arity) +
         " chunk " + std::to_string(shape.chunk);
}

/// Plans for all ranks and verifies.
inline VerifyReport check(const Machine& machine, const CollectiveShape& shape) {
  INFO(described(shape, machine.size()));
  VerifyReport report;
  try {
    report = verify(plan(machine, shape).plans());
  } catch (const Error& error) {
    report.problems.emplace_back(error.what());
  }
  INFO(report.text());
  CHECK(report.ok());
  return report;
}

}  // namespace tasuki
