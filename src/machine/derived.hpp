// What is learnt of a machine makes a new value of it: nothing changes a machine that others plan with. A context keeps
// one (`Runtime::replace_machine`); what holds for a single operation goes into that operation's own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tasuki/machine.hpp"

namespace tasuki {

/// The paths that cannot be used, and why, in the place of those that the machine named.
Machine with_unusable(Machine machine, std::map<std::string, std::string> unusable);
/// One more path that cannot be used. The machine's own reason, if it has one, gives way.
Machine without_path(Machine machine, const std::string& path, std::string why);
/// The number of every rank's GPU (`Machine::Rank::gpus`), in the order of ranks. `reason`: why GPUs of different
/// numbers do not reach each other; the machine's own reason comes first.
Machine with_gpus(Machine machine, const std::vector<int>& numbers, const std::string& reason);
/// Prices of these paths; the others stay. `source`: where the prices of all of them come from now.
Machine with_costs(Machine machine, const std::map<std::string, PathCost>& costs, std::string source);
Machine with_corrections(Machine machine, std::vector<Correction> corrections);

}  // namespace tasuki
