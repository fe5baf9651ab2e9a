// What a kernel's failure says to people.
#pragma once

#include <cstdint>
#include <string>

#include "tasuki/kernel.cuh"

namespace tasuki {

/// Throws if a program that asks for something to hand to its kernels was compiled with headers of another version.
void refuse_other_version(const std::string& who, std::uint32_t version);
/// The first word of a kernel's failure, if it says that the kernel is of another version (kOtherVersion).
std::string describe_other_version(const std::string& who, std::uint32_t set);

/// `team` is what the kernel had; `of` says whose it is: `Messages`.
std::string describe(const device::Failure& failure, const device::Team& team, const std::string& of);

}  // namespace tasuki
