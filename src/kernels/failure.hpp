// What a kernel's failure says to people.
#pragma once

#include <string>

#include "tasuki/kernel.cuh"

namespace tasuki {

/// `team` is what the kernel had; `of` says whose it is: `Messages`.
std::string describe(const device::Failure& failure, const device::Team& team, const std::string& of);

}  // namespace tasuki
