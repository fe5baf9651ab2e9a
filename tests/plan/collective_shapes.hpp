// What the tests of collectives' plans, on hosts and on GPUs, draw their cases from.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tasuki/planning.hpp"

namespace tasuki {

using Random = std::mt19937;

inline const std::vector<CollectiveKind> kKinds{
    CollectiveKind::broadcast,      CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::reduce,
    CollectiveKind::reduce_scatter, CollectiveKind::alltoall,  CollectiveKind::gather,    CollectiveKind::scatter,
    CollectiveKind::barrier,        CollectiveKind::scan,      CollectiveKind::exscan};

inline std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
}

inline bool has_blocks(CollectiveKind kind) {
  return kind == CollectiveKind::allgather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::alltoall || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

}  // namespace tasuki
