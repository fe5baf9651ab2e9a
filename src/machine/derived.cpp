// Machines made from machines: see derived.hpp.
#include "machine/derived.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tasuki {

Machine with_unusable(Machine machine, std::map<std::string, std::string> unusable) {
  machine.unusable = std::move(unusable);
  return machine;
}

Machine without_path(Machine machine, const std::string& path, std::string why) {
  machine.unusable[path] = std::move(why);
  return machine;
}

Machine with_gpus(Machine machine, const std::vector<int>& numbers, const std::string& reason) {
  for (std::size_t rank = 0; rank < numbers.size(); ++rank)
    machine.ranks[rank].gpus = static_cast<std::int32_t>(numbers[rank]);
  if (machine.gpu_reason.empty()) machine.gpu_reason = reason;
  return machine;
}

Machine with_costs(Machine machine, const std::map<std::string, PathCost>& costs, std::string source) {
  for (const auto& [path, cost] : costs) machine.costs[path] = cost;
  machine.source = std::move(source);
  return machine;
}

Machine with_corrections(Machine machine, std::vector<Correction> corrections) {
  machine.corrections = std::move(corrections);
  return machine;
}

}  // namespace tasuki
