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
/// Rank 0 writes the prices and corrections of the runtime's machine (atomically, by renaming). Says so once on stderr
/// if it cannot; that is no error. Returns false, and writes nothing, where they are not worth keeping: with more ranks
/// on a host than hardware threads they tell more about the scheduler than about the machine, and a part of the ranks
/// may have no partner as far as others have.
bool keep_profile(Runtime& runtime);

}  // namespace tasuki
