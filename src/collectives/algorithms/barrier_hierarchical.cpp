// Barrier `hierarchical`: the ranks of an island tell its first one; the first ones tell each other as in
// `dissemination`; then each tells its island. k islands of m ranks.
//
//   islands 0 1 | 2 3:   1 -> 0   3 -> 2    then    0 <-> 2    then    0 -> 1   2 -> 3
//
// Two messages inside and ceil(log2 k) across one after the other; k - 1 bytes leave an island, one for each other one.
#include <algorithm>

#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const Islands islands(c);
  const double m = static_cast<double>(c.ranks()) / islands.count();
  return 2 * std::max(m - 1, 1.0) * price.latency_inside + doublings(islands.count()) * price.latency;
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const Islands islands(c);
  const int k = islands.count();
  const std::int64_t each = c.on_gpu() ? 4 : 1;  // bytes: GPUs send words fastest
  int largest = 0;
  for (int i = 0; i < k; ++i) largest = std::max(largest, islands.size(i));
  const int heard = steps.scratch("heard", largest * each);  // of the rank itself, then of the others of its island
  const int far = steps.scratch("far", k * each);            // of its island, then of those below it
  const int all = steps.scratch("all", each);
  // One word after the other goes to the same place: what is sent from there was written when all of them had come.
  const auto collect = [&](int rank, int from, int words, Place to) {
    for (int i = 0; i < words; ++i) steps.copy(rank, {from, i * each}, rank, to, each);
  };
  steps.phase("to the first");
  for (int i = 0; i < k; ++i)
    for (int p = 1; p < islands.size(i); ++p)
      steps.copy(islands.rank(i, p), {heard, 0}, islands.rank(i, 0), {heard, p * each}, each);
  for (int i = 0; i < k; ++i) collect(islands.rank(i, 0), heard, islands.size(i), {far, 0});
  steps.phase("across");
  for (int distance = 1; distance < k; distance *= 2)
    for (int i = 0; i < k; ++i)
      steps.copy(islands.rank(i, 0), {far, 0}, islands.rank((i + distance) % k, 0), {far, distance * each},
                 std::min(distance, k - distance) * each, distance);
  for (int i = 0; i < k; ++i) collect(islands.rank(i, 0), far, k, {all, 0});
  steps.phase("from the first");
  for (int i = 0; i < k; ++i)
    for (int p = 1; p < islands.size(i); ++p)
      steps.copy(islands.rank(i, 0), {all, 0}, islands.rank(i, p), {all, 0}, each);
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm = hierarchical(CollectiveKind::barrier, seconds, list);
  algorithm.settings = nullptr;  // it has no chunks
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
