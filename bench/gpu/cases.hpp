// The groups of cases on GPUs: gpu-halo, gpu-face, gpu-copy, gpu-collectives.
#pragma once

#include <string>
#include <vector>

#include "case.hpp"

namespace bench {

std::vector<Case> gpu_cases(int ranks);

/// Adds the peer `tasuki PATH`, which is forced to that path.
void add_forced_path(const std::string& path);

}  // namespace bench
