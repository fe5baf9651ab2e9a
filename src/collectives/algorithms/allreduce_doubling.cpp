// Allreduce `doubling`: pairs at distance 1, 2, 4 ... exchange what each has added up so far. Ranks beyond a power of
// two give theirs to a neighbour beforehand and get the result from it. V bytes, p the power of two.
//
//   0 <-> 1   2 <-> 3     then     0 <-> 2   1 <-> 3            all: (0 1) (2 3)
//
// log2 p messages of V one after the other, and as many passes; 2 more where n is no power of two. On GPUs the vector
// may be cut: parts are added up while the next ones travel, so that only the last part's pass is not hidden.
#include "collectives/algorithm.hpp"
#include "collectives/cuts.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& parameters, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const bool even = (c.ranks() & (c.ranks() - 1)) == 0;
  const int rounds = even ? doublings(c.ranks()) : doublings(c.ranks()) - 1;
  const double tail = tail_seconds(price, c.whole(), parameters.chunk, c.cut_unit());
  return rounds * (price.message(v) + tail) + (even ? 0 : 2 * price.message(v) + tail);
}

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  const std::int64_t v = c.whole();
  const auto parts = parts_of(v, parameters.chunk, c.cut_unit());
  const Place out{c.out(), 0};
  int p = 1;
  while (2 * p <= c.ranks()) p *= 2;
  const int spare = c.ranks() - p;
  const auto rank = [spare](int i) { return i < spare ? 2 * i : i + spare; };  // of those that remain
  const int fold = steps.scratch("folded", v);
  const int came = steps.scratch("came", v * doublings(p));
  std::vector<Place> has(static_cast<std::size_t>(p), c.own(0));
  const auto at = [](const Place& place, const Part& part) { return Place{place.buffer, place.offset + part.begin}; };
  const auto copy = [&](int from, const Place& src, int to, const Place& dst, const Part& part) {
    steps.copy(from, at(src, part), to, at(dst, part), part.bytes, part.number);
  };
  if (c.on_gpu()) steps.begin_rounds(parts.size() > 1);
  steps.phase("fold");
  for (int i = 0; i < spare; ++i) {
    Place& sum = has[static_cast<std::size_t>(i)];
    for (const Part& part : parts) {
      copy(rank(i) + 1, c.own(0), rank(i), {fold, 0}, part);
      steps.combine(rank(i), at(sum, part), rank(i), {fold, part.begin}, part.bytes);
    }
    sum = {fold, 0};
  }
  for (int k = 0, distance = 1; distance < p; ++k, distance *= 2) {
    steps.phase("distance " + std::to_string(distance));
    std::vector<Place> to(has.size(), {came, k * v});
    for (int i = 0; i < p && 2 * distance == p; ++i) {
      // The last sum belongs into `out`, unless that is what the partner still has to get.
      if (has[static_cast<std::size_t>(i)].buffer != out.buffer) to[static_cast<std::size_t>(i)] = out;
    }
    for (const Part& part : parts) {
      for (int i = 0; i < p; ++i) {
        const int other = i ^ distance;
        copy(rank(i), has[static_cast<std::size_t>(i)], rank(other), to[static_cast<std::size_t>(other)], part);
      }
      for (int i = 0; i < p; ++i) {
        const Place sum = at(has[static_cast<std::size_t>(i)], part);
        const Place other = at(to[static_cast<std::size_t>(i)], part);
        const bool stays = 2 * distance == p && sum.buffer == out.buffer;
        stays ? steps.combine(rank(i), other, rank(i), sum, part.bytes)
              : steps.combine(rank(i), sum, rank(i), other, part.bytes);
      }
    }
    for (std::size_t i = 0; i < has.size(); ++i)
      if (2 * distance < p || has[i].buffer != out.buffer) has[i] = to[i];
  }
  steps.phase("unfold");
  for (int i = 0; i < spare; ++i)
    for (const Part& part : parts) copy(rank(i), out, rank(i) + 1, out, part);
  steps.end();
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "doubling",
                   .collective = CollectiveKind::allreduce,
                   .complexity = 1,
                   .worth_trying = [](const Collective& c) { return unless_gpus_idle(c) && unless_in_place(c); },
                   .settings = cut_settings,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
