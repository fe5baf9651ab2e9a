// Times: see times.hpp.
#include "calibrate/times.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace tasuki {

namespace {

// Least and second least.
std::array<TimeList, 2> shortest(const std::vector<Times>& turns) {
  std::array<TimeList, 2> found;
  for (TimeList& list : found) list.fill(std::numeric_limits<double>::infinity());
  for (const Times& turn : turns) {
    const auto values = std::bit_cast<TimeList>(turn);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= found[1][i]) continue;
      found[1][i] = values[i];
      if (found[1][i] < found[0][i]) std::swap(found[0][i], found[1][i]);
    }
  }
  return found;
}

}  // namespace

Times least_of(const std::vector<Times>& turns) {
  return std::bit_cast<Times>(shortest(turns)[0]);
}

double spread_of(const std::vector<Times>& turns) {
  if (turns.size() < 2) return 0;
  const auto [least, second] = shortest(turns);
  double most = 0;
  for (std::size_t i = 0; i < least.size(); ++i)
    if (least[i] > 0) most = std::max(most, second[i] / least[i] - 1);  // what was not measured is 0
  return most;
}

}  // namespace tasuki
