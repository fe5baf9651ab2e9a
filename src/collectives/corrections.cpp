// Corrections: see corrections.hpp.
#include "collectives/corrections.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <tuple>

namespace tasuki {

namespace {

// Which power of two the number is about. Without floating point, so that all ranks agree.
int size_class(std::int64_t bytes) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0))));
}

// How far a measured candidate's parameters are from those that are asked for.
std::tuple<int, int, int> distance(const Correction& one, const Parameters& p) {
  return {std::abs(one.trees - p.trees), std::abs(one.arity - p.arity),
          std::abs(size_class(one.chunk) - size_class(p.chunk))};
}

constexpr std::tuple<int, int, int> kSame{0, 0, 0};

}  // namespace

Corrections::Corrections(const Machine& machine, const Collective& c) {
  if (machine.corrections.empty()) return;
  const std::set<int> islands(c.island().begin(), c.island().end());
  // Barriers have no memory. GPU memory is measured where peers can reach it.
  const bool any_memory = c.on_gpu() || c.kind() == CollectiveKind::barrier;
  for (const Correction& one : machine.corrections)
    if (one.collective == to_string(c.kind()) && one.memory == c.shape().memory &&
        (any_memory || one.shared == c.shape().shared) && one.ranks == c.ranks() && one.islands == std::ssize(islands))
      found_.push_back(one);
  const auto far = [&](const Correction& one) {
    return std::tuple(std::abs(size_class(one.bytes) - size_class(c.whole())), std::abs(one.bytes - c.whole()),
                      one.bytes);
  };
  if (found_.empty()) return;
  const std::int64_t nearest = std::min_element(found_.begin(), found_.end(), [&](const auto& a, const auto& b) {
                                 return far(a) < far(b);
                               })->bytes;
  std::erase_if(found_, [&](const Correction& one) { return one.bytes != nearest; });
}

Corrections::Factor Corrections::of(const Algorithm& algorithm, const Parameters& parameters,
                                    const std::string& path) const {
  if (found_.empty()) return {};
  const Correction* best = nullptr;
  for (const Correction& one : found_) {
    if (one.algorithm != algorithm.name || one.path != path) continue;
    if (best == nullptr || distance(one, parameters) < distance(*best, parameters)) best = &one;
  }
  if (best != nullptr) return {best->factor, distance(*best, parameters) == kSame};
  std::vector<double> factors;
  for (const Correction& one : found_) factors.push_back(one.factor);
  std::sort(factors.begin(), factors.end());
  return {factors[factors.size() / 2], false};
}

std::vector<std::string> Corrections::paths(const Algorithm& algorithm, const Parameters& parameters) const {
  std::vector<std::string> names;
  for (const Correction& one : found_)
    if (one.algorithm == algorithm.name && one.path != "auto" && distance(one, parameters) == kSame)
      names.push_back(one.path);
  return names;
}

}  // namespace tasuki
