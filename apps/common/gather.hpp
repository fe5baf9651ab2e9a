// Bringing a distributed field together on rank 0, to compare it with a serial run.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/field.hpp"

namespace apps {

/// Collective. Throws `tasuki::Error` on all ranks if some host has not got the sum of its ranks' `bytes` free.
void require_memory(const tasuki::Context& context, std::int64_t bytes, const std::string& what);

/// The current copy of `field` as one row-major array on rank 0; empty on the others. Collective.
template <class T>
std::vector<T> gather_on_root(const tasuki::Field<T>& field) {
  const tasuki::Grid& grid = field.grid();
  const tasuki::Context& context = grid.context();
  std::vector<T> packed;
  packed.reserve(field.owned().cells());
  field.for_each([&](const tasuki::Index&, T& cell) { packed.push_back(cell); });

  std::vector<int> counts(context.size());
  std::vector<int> displacements(context.size());
  std::int64_t cells = 0;
  for (int rank = 0; rank < context.size(); ++rank) {
    counts[rank] = static_cast<int>(grid.owned(rank).cells());
    displacements[rank] = static_cast<int>(cells);
    cells += grid.owned(rank).cells();
    if (cells > std::numeric_limits<int>::max()) {
      throw tasuki::Error("gather_on_root: the grid has more than 2^31 cells, which MPI_Gatherv cannot count");
    }
  }
  MPI_Datatype element = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(sizeof(T), MPI_BYTE, &element);
  MPI_Type_commit(&element);
  std::vector<T> received(context.is_root() ? cells : 0);
  MPI_Gatherv(packed.data(), static_cast<int>(packed.size()), element, received.data(), counts.data(),
              displacements.data(), element, 0, context.comm());
  MPI_Type_free(&element);
  if (!context.is_root()) return {};

  std::vector<T> global(cells);
  const T* from = received.data();
  for (int rank = 0; rank < context.size(); ++rank) {
    const tasuki::Box box = grid.owned(rank);
    if (box.empty()) continue;
    const int last = grid.ndims() - 1;
    tasuki::Index at = box.lo;
    for (;;) {  // a row of the box at a time
      std::int64_t offset = 0;
      for (int d = 0; d <= last; ++d) offset = offset * grid.extent(d) + at[d];
      std::copy(from, from + box.extent(last), global.begin() + offset);
      from += box.extent(last);
      int d = last - 1;
      for (; d >= 0 && ++at[d] == box.hi[d]; --d) at[d] = box.lo[d];
      if (d < 0) break;
    }
  }
  return global;
}

}  // namespace apps
