// Plausible: are a path's times possible, by what plain copies and flags in the same memory take, measured beside it?
#pragma once

#include <string>

#include "calibrate/times.hpp"
#include "paths/path.hpp"

namespace tasuki {

/// Why the times of a path in host memory cannot be true. Empty: they may be. `plain` is what plain copies take between
/// the same ranks; `mpi` is null, or what messages of MPI take between them. Times that are shorter are no fault of the
/// path: whatever disturbs a machine makes times longer, so it was the plain copies that were disturbed.
std::string implausible(const Path& path, const Times& times, const Times& plain, const Times* mpi);

/// What is believed of the path then. Whatever disturbs a machine makes times longer, so that is the least of what was
/// measured, of what plain copies say, and of 8 bytes by MPI.
Times derived(const Path& path, const Times& times, const Times& plain, const Times* mpi);

}  // namespace tasuki
