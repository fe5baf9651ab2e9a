// Vectors cut into parts that travel one after the other, each over a link of its own: what has arrived is added up
// while the next part travels. GPUs do it so, whose chunk loops no copy engine runs.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {

struct Part {
  int number = 0;
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

/// Parts, or one if `chunk` is 0: at most 16, which begin at multiples of `unit` (`Collective::cut_unit`). The last one
/// has about `chunk` bytes, because nothing hides what is done with it; each of the others has half as many again as
/// the next. Of 64 MiB and more each has 2.5 times as many, which is as many as can be added up while the next one
/// travels: so there are few.
std::vector<Part> parts_of(std::int64_t bytes, std::int64_t chunk, std::int64_t unit);
/// What the travelling parts do not hide: the pass over the last one, and what parts cost by themselves.
double tail_seconds(const Price& price, std::int64_t bytes, std::int64_t chunk, std::int64_t unit);

/// `Algorithm::settings` of algorithms that cut: in host memory, and of small vectors, one part.
std::vector<Parameters> cut_settings(const Collective& collective, const Parameters& wanted);

}  // namespace tasuki
