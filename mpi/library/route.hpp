// Which way a typed buffer goes: the cheapest by prices that are measured when a layout is first used.
#pragma once

#include "known.hpp"

namespace tasuki::mpi {

/// How the bytes of `counted` at `buffer`, which the program describes by `type`, are moved in a message. Local.
/// `buffer` is only read.
Route route_of(Counted& counted, const void* buffer, MPI_Datatype type);
/// Whether its messages go through the ring where that is possible: it lies in pieces, and the ring is expected to be
/// faster than the route.
bool ring_pays(Counted& counted, const void* buffer, MPI_Datatype type);
/// Whether the processor may read and write the buffer: it is no null pointer, and no memory of a GPU.
bool in_host_memory(const Counted& counted, const void* buffer);
bool in_host_memory(const void* first);
/// The same for MPI_Pack and MPI_Unpack: whether it is faster here.
bool packs_faster(Counted& counted, const void* buffer, MPI_Datatype type);
/// Why `route_of` is not `packed`, for the report.
const char* why_not_packed(const Counted& counted);

/// What a message of these prices is expected to take, in ns: both sides' typed work, and what packing adds.
double expected_by_mpi(const Prices& prices, std::int64_t bytes);
double expected_packed(const Prices& prices, std::int64_t bytes);
double expected_in_ring(const Prices& prices, std::int64_t bytes);

}  // namespace tasuki::mpi
