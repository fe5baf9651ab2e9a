// Corrected: see corrected.hpp.
#include "paths/corrected.hpp"

#include <algorithm>
#include <string>

#include "machine/profile.hpp"

namespace tasuki {

namespace {

constexpr double kMost = 1e4;  // a constant changes by at most this factor
constexpr int kHalvings = 50;

}  // namespace

double price_of(const Machine& machine, const Path& path, const PathCost& cost, const PricedMove& m) {
  Move move;
  move.src_rank = m.src_rank;
  move.dst_rank = m.dst_rank;
  move.mutual = m.mutual;
  move.whole = m.whole;
  StridedCopy copy;
  copy.block = m.bytes / std::max<std::int64_t>(m.runs, 1);
  if (m.runs > 1) {
    copy.ndims = 1;
    copy.dims[0] = {m.runs, 2 * copy.block, 2 * copy.block};
  }
  move.copies = {copy};
  BufferFact src;
  src.memory = path.memory;
  src.shared = m.src_shared;
  src.bytes = 2 * m.bytes;
  BufferFact dst = src;
  dst.shared = m.dst_shared;
  const Offer offer = path.offer({machine, cost, false, move, src, dst, !m.src_shared || !m.dst_shared, m.moved});
  return offer.usable ? offer.latency + offer.seconds : 0;
}

// The file's form of the prices is gone through, so that nothing here knows what constants there are.
PathCost corrected(const Machine& machine, const Path& path, const PathCost& cost, const PricedMove& move,
                   double seconds) {
  const double before = price_of(machine, path, cost, move);
  if (before <= 0 || before >= seconds) return cost;
  const CostSection section = section_of(cost);
  const auto with = [&](const std::string& name, double factor) {
    CostSection changed = section;
    changed[name] *= factor;
    return cost_of(changed);
  };
  std::string dearest;
  bool up = true;  // a larger latency costs more, a larger bandwidth less
  double most = before;
  for (const auto& [name, value] : section) {
    for (const bool larger : {true, false}) {
      const double price = price_of(machine, path, with(name, larger ? 2 : 0.5), move);
      if (price <= most) continue;
      most = price;
      dearest = name;
      up = larger;
    }
  }
  if (dearest.empty()) return cost;
  double low = 1, high = kMost;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    const double price = price_of(machine, path, with(dearest, up ? middle : 1 / middle), move);
    (price < seconds ? low : high) = middle;
  }
  return with(dearest, up ? high : 1 / high);
}

}  // namespace tasuki
