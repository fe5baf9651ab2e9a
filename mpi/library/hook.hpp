// How a call that is taken over is defined: HOOK int tasuki_MPI_Name(arguments) { ... }. The selector finds it by name.
#pragma once

#define HOOK extern "C" [[gnu::visibility("default")]]

namespace tasuki::mpi {
/// Where the program called from: the selector jumps, so that it is not on the stack.
#define CALLER __builtin_return_address(0)
}  // namespace tasuki::mpi
