// What from_mpi finds out about a datatype beside its layout.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "tasuki/layout.hpp"

namespace tasuki {

struct Decoded {
  Layout layout;
  std::int64_t unit = 0;  ///< the largest number of bytes of which every named type in it is a multiple; 0 if none is
};
/// As `from_mpi`.
Decoded decode(MPI_Datatype type);

}  // namespace tasuki
