// The names of Tasuki's environment variables, and what is said of one that has no such name.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tasuki {

/// A sentence for each of `names` that begins with `TASUKI_` and is none of Tasuki's, with the nearest that is, if one
/// is near.
std::vector<std::string> complaints_about_variables(std::span<const std::string> names);

/// Says so on stderr of the variables of this process, the first time that it is called.
void complain_about_variables_once();

}  // namespace tasuki
