// A look at what has not been freed when the program ends.
#pragma once

namespace tasuki::api {

/// Called when `tasuki_init` has started MPI. At the end of this process, handles that are left and so keep MPI running
/// are named on stderr.
void watch_end();

}  // namespace tasuki::api
