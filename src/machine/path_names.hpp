// Names of paths of earlier versions, as options, machine files, profiles and saved plans may still have them.
#pragma once

#include <string>

namespace tasuki {

/// Today's name of a path: `peer:ll` for `peer:stamped`, which is understood for one minor version.
inline std::string current_path_name(const std::string& name) {
  return name == "peer:stamped" ? "peer:ll" : name;
}

}  // namespace tasuki
