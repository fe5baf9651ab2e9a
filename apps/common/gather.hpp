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

/// Calls `f(offset of its first cell, cells)` for every row of `box` in an array of these strides.
template <class F>
void for_rows(const tasuki::Box& box, const tasuki::Index& strides, F&& f) {
  if (box.empty()) return;
  const int last = box.ndims - 1;
  tasuki::Index at = box.lo;
  for (;;) {
    std::int64_t offset = 0;
    for (int d = 0; d <= last; ++d) offset += at[d] * strides[d];
    f(offset, box.extent(last));
    int d = last - 1;
    for (; d >= 0 && ++at[d] == box.hi[d]; --d) at[d] = box.lo[d];
    if (d < 0) return;
  }
}

/// The current copy of `field` as one row-major array on rank 0; empty on the others. Collective.
template <class T>
std::vector<T> gather_on_root(const tasuki::Field<T>& field) {
  const tasuki::Grid& grid = field.grid();
  const tasuki::Context& context = grid.context();
  std::vector<T> packed;
  packed.reserve(field.owned().cells());
  std::vector<T> downloaded(field.memory() == tasuki::Memory::device ? field.bytes() / sizeof(T) : 0);
  if (!downloaded.empty()) field.download(downloaded.data());
  const T* const cells_here = downloaded.empty() ? field.data() : downloaded.data();
  for_rows(field.local_owned(), field.strides(), [&](std::int64_t at, std::int64_t length) {
    packed.insert(packed.end(), cells_here + at, cells_here + at + length);
  });

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
  tasuki::Index strides{};
  std::int64_t stride = 1;
  for (int d = grid.ndims() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= grid.extent(d);
  }
  const T* from = received.data();
  for (int rank = 0; rank < context.size(); ++rank) {
    for_rows(grid.owned(rank), strides, [&](std::int64_t at, std::int64_t length) {
      std::copy(from, from + length, global.begin() + at);
      from += length;
    });
  }
  return global;
}

}  // namespace apps
