// What the library did: for each place of the program, call and type, how often, how many bytes, by which layer and
// why, and what that is expected to have won. TASUKI_MPI_REPORT=1 prints it at MPI_Finalize (world rank 0), a path
// writes it as JSON, a file a rank.
#pragma once

#include <cstdint>

#include "known.hpp"

namespace tasuki::mpi {

void begin_report();
void end_report();

/// Whether anybody wants to know.
extern bool reporting;
/// One call that moves `counted` by `route`; `caller` is the address to which it returns.
void note_call(const char* call, const void* caller, const Counted& counted, Route route);
inline void note(const char* call, const void* caller, const Counted& counted, Route route) {
  if (reporting) [[unlikely]]
    note_call(call, caller, counted, route);
}
/// A call whose type is not understood.
void note_unknown(const char* call, const void* caller, const Type& type);

}  // namespace tasuki::mpi
