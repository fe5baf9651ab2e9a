// Blocks of an all-to-all: see alltoall_blocks.hpp.
#include "collectives/alltoall_blocks.hpp"

#include <algorithm>

namespace tasuki {

Place staged_blocks(const Collective& c, Steps& steps) {
  if (!c.both()) return {c.in(), 0};
  std::int64_t most = 0;
  for (int r = 0; r < c.ranks(); ++r) most = std::max(most, c.sent(r, c.ranks()));
  const Place staged{steps.scratch("leaves", most), 0};
  for (int r = 0; r < c.ranks(); ++r) steps.copy(r, {c.in(), 0}, r, staged, c.sent(r, c.ranks()));
  return staged;
}

void send_blocks(const Collective& c, Steps& steps, Place from, int distance) {
  for (int r = 0; r < c.ranks(); ++r) {
    const int to = (r + distance) % c.ranks();
    steps.copy(r, {from.buffer, c.sent(r, to)}, to, {c.out(), c.received(r, to)}, c.block(r, to));
  }
}

void keep_blocks(const Collective& c, Steps& steps) {
  for (int r = 0; r < c.ranks() && !c.both(); ++r)
    steps.copy(r, {c.in(), c.sent(r, r)}, r, {c.out(), c.received(r, r)}, c.block(r, r));
}

double alltoall_seconds(const Collective& c, const Parameters&, const Price& price) {
  double most = 0;
  for (int r = 0; r < c.ranks(); ++r) most = std::max(most, static_cast<double>(c.sent(r, c.ranks()) - c.block(r, r)));
  return (c.ranks() - 1) * price.latency + most * price.second_per_byte + price.work(c.both() ? most : 0);
}

}  // namespace tasuki
