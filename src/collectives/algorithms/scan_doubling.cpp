// Scan and exscan `doubling`: what a rank has added up, of itself and those below it, goes to the rank 1, 2, 4 ...
// above, which adds its own behind it. Exscan: everybody first gets the vector of the rank below, then does the same
// with that. V bytes.
//
//   0 -> 1 -> 2 -> 3     then     0 -> 2   1 -> 3          3 has: (0 1) (2 3)
//
// ceil(log2 n) messages of V one after the other, and as many passes; exscan a message more.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const bool moves = c.kind() == CollectiveKind::scan && c.both();
  return doublings(c.ranks()) * (price.message(v) + price.work(v)) + (moves ? price.work(v) : 0) +
         (c.kind() == CollectiveKind::exscan ? price.message(v) : 0);
}

// Where each rank has its sum; those from `first` on add up. The last that a rank makes goes to `out`. What comes from
// below is the left operand, so a sum is made where that arrives; a rank whose own vector lies in `out` (in place, the
// first that adds) makes it in scratch and moves it.
void add_up(const Collective& c, std::vector<Place>& has, int first, Steps& steps) {
  const int n = c.ranks();
  const std::int64_t v = c.whole();
  const Place out{c.out(), 0};
  const int came = steps.scratch("came", v * doublings(n));
  int round = 0;
  for (int distance = 1; first + distance < n; distance *= 2, ++round) {
    steps.phase("distance " + std::to_string(distance));
    std::vector<Place> next = has;
    for (int r = first + distance; r < n; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const bool last = r - first < 2 * distance;
      next[i] = last && has[i].buffer != out.buffer ? out : Place{came, round * v};
    }
    // From above, for what arrives in `out` must not be forwarded.
    for (int r = n - 1; r >= first + distance; --r)
      steps.copy(r - distance, has[static_cast<std::size_t>(r - distance)], r, next[static_cast<std::size_t>(r)], v);
    for (int r = first + distance; r < n; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const bool moves = r - first < 2 * distance && has[i].buffer == out.buffer;
      steps.combine(r, has[i], r, next[i], v);
      if (moves) steps.copy(r, next[i], r, out, v);
      has[i] = next[i];
    }
  }
}

void scan(const Collective& c, const Parameters&, Steps& steps) {
  std::vector<Place> has(static_cast<std::size_t>(c.ranks()), {c.in(), 0});
  if (c.on_gpu()) steps.begin_rounds();  // then what arrives is added up as it arrives
  add_up(c, has, 0, steps);
  steps.end();
  if (!c.both()) steps.copy(0, {c.in(), 0}, 0, {c.out(), 0}, c.whole());
}

void exscan(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const int below = steps.scratch("below", c.whole());
  std::vector<Place> has(static_cast<std::size_t>(n), {below, 0});
  if (n > 1) has[1] = {c.out(), 0};
  steps.phase("shift");
  if (c.on_gpu()) steps.begin_rounds();
  for (int r = n - 1; r > 0; --r) steps.copy(r - 1, {c.in(), 0}, r, has[static_cast<std::size_t>(r)], c.whole());
  add_up(c, has, 1, steps);
  steps.end();
}

template <CollectiveKind kind>
Algorithm make() {
  return Algorithm{.name = "doubling",
                   .collective = kind,
                   .in_order = true,
                   .seconds = seconds,
                   .list = kind == CollectiveKind::scan ? scan : exscan};
}

const AlgorithmRegistration of_scan{make<CollectiveKind::scan>};
const AlgorithmRegistration of_exscan{make<CollectiveKind::exscan>};

}  // namespace
}  // namespace tasuki
