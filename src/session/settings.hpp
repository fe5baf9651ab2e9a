// Settings: the environment variables of a context, read in one place.
#pragma once

#include <string>

namespace tasuki {

/// Read once for each context, which checks that they are the same on all ranks.
struct Settings {
  int island = 0;               ///< TASUKI_ISLAND: 0 = whole hosts
  std::string path = "auto";    ///< TASUKI_PATH
  std::string engine = "auto";  ///< TASUKI_ENGINE
  std::string algorithm;        ///< TASUKI_ALGORITHM: `collective:algorithm`, several with commas between them
  double deadline = 30.0;       ///< TASUKI_DEADLINE, seconds
  std::string profile;          ///< TASUKI_PROFILE: the profile's file; empty = the user's cache folder
  std::string trace;            ///< TASUKI_TRACE: the folder that ranks write what they did into; empty = nothing
  bool passes = false;          ///< TASUKI_PASSES=1: plans are printed on stderr after each pass
  bool agree = true;            ///< TASUKI_AGREE: arguments are compared over the ranks
  bool check = false;           ///< TASUKI_CHECK: operations look for mistakes of their callers
  bool pmpi = true;             ///< TASUKI_PMPI: MPI is called by its PMPI_ names
  bool correct = true;          ///< TASUKI_CORRECT: first epochs correct prices (operations/epoch_watch.hpp)
};
Settings settings_from_environment();  ///< Throws `Error` naming variable and value.

/// Seconds for which the making of a context may wait for other ranks: TASUKI_DEADLINE. If its value is bad, the
/// default; the bad value is reported later, on all ranks.
double creation_deadline();
/// TASUKI_PMPI alone; the default if its value is bad, as above.
bool calls_pmpi();

}  // namespace tasuki
