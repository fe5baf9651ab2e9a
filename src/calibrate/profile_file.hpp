// The file that keeps a machine's profile between runs.
#pragma once

#include <string>

#include "machine/profile.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// The profile's file for this runtime: TASUKI_PROFILE, or profile-<host>-<mpi>.json in $XDG_CACHE_HOME/tasuki or
/// ~/.cache/tasuki. Empty if there is no such folder and none can be made.
std::string profile_file(const Runtime& runtime);
/// Reads on rank 0 and tells all ranks. Collective; every rank throws if the file is corrupt. Empty profile if no file.
Profile load_profile(Runtime& runtime);
/// Rank 0 writes the file (atomically, by renaming). Says so once on stderr if it cannot; that is no error.
void save_profile(Runtime& runtime, const Profile& profile);

}  // namespace tasuki
