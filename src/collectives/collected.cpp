// Adding up what others have sent: see collected.hpp.
#include "collectives/collected.hpp"

namespace tasuki {

void collect(const Collective& c, Steps& steps, int to, const std::function<Place(int)>& from, Place dst,
             std::int64_t bytes, int slots, std::int64_t slot, std::int64_t chunk) {
  const int ranks = c.ranks();
  const Place own = from(to);
  const bool here = own.buffer == dst.buffer && own.offset == dst.offset;
  const auto came = [&](int d) { return d == 1 && !here ? dst : Place{slots, (d - 1) * slot}; };
  for (const Part& part : parts_of(bytes, chunk, c.cut_unit())) {
    const auto at = [&](const Place& place) { return Place{place.buffer, place.offset + part.begin}; };
    for (int d = 1; d < ranks; ++d) {
      const int r = (to + d) % ranks;
      steps.copy(r, at(from(r)), to, at(came(d)), part.bytes, part.number);
    }
    for (int d = here ? 1 : 2; d < ranks; ++d) steps.combine(to, at(came(d)), to, at(dst), part.bytes);
    if (!here) steps.combine(to, at(own), to, at(dst), part.bytes);
  }
}

double collect_seconds(const Collective& c, const Parameters& parameters, const Price& price, double bytes) {
  const int n = c.ranks();
  const double tail = tail_seconds(price, static_cast<std::int64_t>(bytes), parameters.chunk, c.cut_unit());
  return price.latency + (n - 1) * bytes * price.second_per_byte + (n - 1) * tail;
}

}  // namespace tasuki
