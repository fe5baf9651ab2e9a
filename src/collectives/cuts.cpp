// Cutting vectors: see cuts.hpp.
#include "collectives/cuts.hpp"

#include <algorithm>

namespace tasuki {

namespace {

constexpr std::int64_t kLine = 64;  // a multiple of every element
constexpr std::int64_t kMostParts = 16;
constexpr std::int64_t kLeastPart = std::int64_t{1} << 20;  // a part costs about a microsecond

std::int64_t count_of(std::int64_t bytes, std::int64_t chunk) {
  return chunk <= 0 ? 1 : std::clamp<std::int64_t>((bytes + chunk - 1) / chunk, 1, kMostParts);
}

}  // namespace

std::vector<Part> parts_of(std::int64_t bytes, std::int64_t chunk) {
  std::vector<Part> parts;
  const std::int64_t count = count_of(bytes, chunk);
  const std::int64_t step = std::max((bytes / count + kLine - 1) / kLine * kLine, kLine);
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t begin = std::min(p * step, bytes);
    const std::int64_t end = p + 1 == count ? bytes : std::min(begin + step, bytes);
    parts.push_back({static_cast<int>(p), begin, end - begin});
  }
  return parts;
}

std::int64_t part_bytes(std::int64_t bytes, std::int64_t chunk) {
  return bytes / count_of(bytes, chunk);
}

std::vector<Parameters> cut_settings(const Collective& c, const Parameters& wanted) {
  if (wanted.chunk > 0) return {{0, 0, wanted.chunk}};
  std::vector<Parameters> all{{}};
  if (!c.on_gpu()) return all;
  for (const std::int64_t parts : {2, 4, 8, 16})
    if (c.whole() / parts >= kLeastPart) all.push_back({0, 0, (c.whole() + parts - 1) / parts});
  return all;
}

}  // namespace tasuki
