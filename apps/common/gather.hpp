// Bringing a distributed field together on rank 0, to compare it with a serial run.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/field.hpp"
#include "tasuki/transfer.hpp"

namespace apps {

/// Collective. Throws `tasuki::Error` on all ranks if some host has not got the sum of its ranks' `bytes` free.
void require_memory(const tasuki::Context& context, std::int64_t bytes, const std::string& what);

/// While it exists, ranks wait for each other as long as they live: one of them has much to do.
class UnlimitedWaits {
 public:
  explicit UnlimitedWaits(const tasuki::Context& context);
  ~UnlimitedWaits();
  UnlimitedWaits(const UnlimitedWaits&) = delete;
  UnlimitedWaits& operator=(const UnlimitedWaits&) = delete;

 private:
  tasuki::Context context_;
  double deadline_;
};

/// The cells of `box` in a row-major array that has these elements in each dimension.
template <class T>
tasuki::Layout layout_of(const tasuki::Box& box, const std::vector<std::int64_t>& sizes) {
  const auto n = static_cast<std::size_t>(box.ndims);
  std::vector<std::int64_t> cells(n);
  for (std::size_t d = 0; d < n; ++d) cells[d] = box.empty() ? 0 : box.extent(static_cast<int>(d));
  const std::vector<std::int64_t> starts(box.lo.begin(), box.lo.begin() + box.ndims);
  return tasuki::Layout::subarray(sizes, cells, starts, tasuki::Layout::bytes(sizeof(T)));
}

/// Elements in each dimension of a field's array, padding included.
template <class T>
std::vector<std::int64_t> sizes_of(const tasuki::Field<T>& field) {
  const tasuki::Index strides = field.strides();
  std::vector<std::int64_t> sizes{field.extents()[0]};
  for (int d = 1; d < field.grid().ndims(); ++d) sizes.push_back(strides[d - 1] / strides[d]);
  return sizes;
}

/// The current copy of `field` as one row-major array on rank 0; empty on the others. Collective.
template <class T>
std::vector<T> gather_on_root(const tasuki::Field<T>& field) {
  const tasuki::Grid& grid = field.grid();
  const tasuki::Context& context = grid.context();
  std::vector<T> downloaded(field.memory() == tasuki::Memory::device ? field.bytes() / sizeof(T) : 0);
  if (!downloaded.empty()) field.download(downloaded.data());
  T* const here = downloaded.empty() ? field.data() : downloaded.data();

  std::vector<std::int64_t> global_sizes;
  std::int64_t cells = 1;
  for (int d = 0; d < grid.ndims(); ++d) {
    global_sizes.push_back(grid.extent(d));
    cells *= grid.extent(d);
  }
  std::vector<T> global(context.is_root() ? cells : 0);
  tasuki::OperationOptions between_hosts;
  between_hosts.path = "shared,mpi";  // whatever the halo's path is
  for (int rank = 0; rank < context.size(); ++rank) {
    if (grid.owned(rank).empty()) continue;
    tasuki::TransferSide from{rank, here, {}};
    tasuki::TransferSide to{0, global.data(), {}};
    if (rank == context.rank()) from.layout = layout_of<T>(field.local_owned(), sizes_of(field));
    if (context.is_root()) to.layout = layout_of<T>(grid.owned(rank), global_sizes);
    tasuki::Transfer transfer(context, from, to, between_hosts);
    transfer.start();
    transfer.wait();
  }
  return global;
}

/// Whether rank 0's `serial()` is the gathered field, bit for bit; the same on all ranks. Collective.
template <class T, class Serial>
bool equals_serial(const tasuki::Field<T>& field, Serial&& serial) {
  const tasuki::Context& context = field.grid().context();
  const UnlimitedWaits unlimited(context);
  const std::vector<T> parallel = gather_on_root(field);
  bool equal = false;
  if (context.is_root()) {
    const std::vector<T> expected = serial();
    equal = expected.size() == parallel.size() &&
            std::memcmp(expected.data(), parallel.data(), expected.size() * sizeof(T)) == 0;
  }
  return context.allgather(equal)[0];
}

}  // namespace apps
