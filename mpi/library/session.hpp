// One for the process, from MPI_Init to MPI_Finalize: settings, and what MPI calls of one's own need.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

namespace tasuki::mpi {

struct Session {
  MPI_Comm own = MPI_COMM_NULL;  ///< of this process alone; calls on it return errors
  int world_rank = 0;
  bool spelling = true;  ///< TASUKI_MPI_LAYERS
  bool packing = true;
  bool ring = true;
  bool always = false;   ///< TASUKI_MPI_ALWAYS: no prices are asked
  double copy_ns = 0.1;  ///< what a byte costs that is copied in the cache
};

/// Most counts of one type of which something is kept.
inline constexpr std::size_t kMostCounts = 64;
/// Larger messages are left to MPI: packing them takes as much memory again.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

const Session& session();
/// Whether MPI runs. Begins the session if the program has initialised MPI in a way that was not seen.
bool session_runs();
void begin_session();
void end_session();

}  // namespace tasuki::mpi
