// What the MPI peers need to know of a halo: for every direction, who is there and which boxes go out and come in.
#pragma once

#include <mpi.h>

#include <vector>

#include "peer.hpp"

namespace bench {

/// A box of cells in local indices.
struct LocalBox {
  int lo[3];
  int extent[3];
};

/// One of up to 26 neighbours. What I send in direction d is what my neighbour there receives from direction -d.
struct Neighbour {
  int rank = 0;
  int send_tag = 0;  ///< the number of the direction in which the message travels: 0 to 26
  int recv_tag = 0;
  LocalBox send{};
  LocalBox recv{};
};

/// In ascending order of `send_tag`. For boxes of one size, and widths of at most that.
std::vector<Neighbour> neighbours_of(const HaloCase& problem);

/// The box in the field's memory, committed; the caller frees it.
MPI_Datatype subarray_of(const tasuki::Field<double>& field, const LocalBox& box);

}  // namespace bench
