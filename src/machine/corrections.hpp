// Corrections as JSON, in the profile's file and in machine files.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tasuki/machine.hpp"

namespace tasuki {

/// A list of objects; fields at their default are left out.
nlohmann::json json_of(const std::vector<Correction>& corrections);

/// Calls `fail(place, what)`, which throws, for what is no such list: unknown or missing keys, numbers out of range,
/// and two of the same candidate.
std::vector<Correction> corrections_of(
    const nlohmann::json& json, const std::string& place,
    const std::function<void(const std::string& place, const std::string& what)>& fail);

}  // namespace tasuki
