// The file that keeps a machine's profile between runs.
#pragma once

#include <string>

#include "machine/profile.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// Whether the ranks on rank 0's host outnumber the hardware threads on which they may run.
bool crowded(const Runtime& runtime);

/// The profile's file for this runtime: TASUKI_PROFILE, or profile-<version>-<host>-<mpi>.json in
/// $XDG_CACHE_HOME/tasuki or ~/.cache/tasuki, so that versions of Tasuki with other files do not share one. Empty if
/// there is no such folder and none can be made.
std::string profile_file(const Runtime& runtime);
/// Reads on rank 0 and tells all ranks. Collective. Empty profile if no file. If the file is corrupt, every rank throws
/// where the user named it; one of Tasuki's own counts as none, and rank 0 says so in a line on stderr.
Profile load_profile(Runtime& runtime);
/// The prices, corrections and provenance that the runtime has.
Profile profile_of(const Runtime& runtime);
/// Rank 0 writes the prices and corrections of the runtime's machine (atomically, by renaming). Says so once on stderr
/// if it cannot; that is no error. Returns false, and writes nothing, where they are not worth keeping: with more ranks
/// on a host than hardware threads they tell more about the scheduler than about the machine, and a part of the ranks
/// may have no partner as far as others have (process_prices.hpp keeps those).
bool keep_profile(Runtime& runtime);

}  // namespace tasuki
