// Cutting vectors: see cuts.hpp.
#include "collectives/cuts.hpp"

#include <algorithm>

namespace tasuki {

namespace {

constexpr std::size_t kMostParts = 16;
constexpr std::int64_t kLeastPart = std::int64_t{1} << 20;
// From this size on copy engines carry the parts. Each part costs an engine some microseconds, so that fewer pay.
constexpr std::int64_t kByEngines = std::int64_t{64} << 20;
constexpr double kPartSeconds = 2e-6;          // about what a part costs by itself
constexpr double kEnginePartSeconds = 4.5e-6;  // the same for an engine: Constants::copy_engine_signal

}  // namespace

// From the last one to the first. Adding up takes about a third of the time in which the same bytes arrive.
std::vector<Part> parts_of(std::int64_t bytes, std::int64_t chunk, std::int64_t unit) {
  if (chunk <= 0) return {{0, 0, bytes}};
  std::vector<Part> parts;
  std::int64_t end = bytes;
  for (std::int64_t size = chunk; end > 0 || parts.empty(); size = (bytes < kByEngines ? size : 2 * size) + size / 2) {
    const bool last = parts.size() + 1 == kMostParts || end <= size;
    const std::int64_t begin = last ? 0 : (end - size) / unit * unit;
    parts.push_back({0, begin, end - begin});
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
  for (std::size_t p = 0; p < parts.size(); ++p) parts[p].number = static_cast<int>(p);
  return parts;
}

double tail_seconds(const Price& price, std::int64_t bytes, std::int64_t chunk, std::int64_t unit) {
  const auto parts = parts_of(bytes, chunk, unit);
  const double one = bytes < kByEngines ? kPartSeconds : kEnginePartSeconds;
  return price.work(static_cast<double>(parts.back().bytes)) + one * static_cast<double>(parts.size() - 1);
}

std::vector<Parameters> cut_settings(const Collective& c, const Parameters& wanted) {
  if (wanted.chunk > 0) return {{0, 0, wanted.chunk}};
  std::vector<Parameters> all{{}};
  if (!c.on_gpu()) return all;
  for (std::int64_t chunk = kLeastPart; chunk <= c.whole() / 4; chunk *= 2) all.push_back({0, 0, chunk});
  return all;
}

}  // namespace tasuki
