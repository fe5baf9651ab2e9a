// The paths that tests force on host memory: all that join the ranks of this context.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "session/runtime.hpp"
#include "tasuki/context.hpp"

inline std::vector<std::string> host_paths(const tasuki::Context& ctx) {
  std::vector<std::string> paths{"auto"};
  if (ctx.size() == 1) return paths;
  // Across islands only messages travel.
  if (std::getenv("TASUKI_ISLAND") == nullptr) {
    paths.insert(paths.end(), {"shared:put", "shared:pull", "shared:eager", "shared:read"});
  }
  if (!runtime_of(ctx).topology().threads) paths.emplace_back("mpi");
  return paths;
}
