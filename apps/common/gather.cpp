// What a verified run needs in memory, against what the host has.
#include "common/gather.hpp"

#include <fmt/format.h>

#include <fstream>
#include <limits>

namespace apps {
namespace {

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::numeric_limits<std::int64_t>::max();  // unknown: let the allocation decide
}

}  // namespace

void require_memory(const tasuki::Context& context, std::int64_t bytes, const std::string& what) {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(context.comm(), MPI_COMM_TYPE_SHARED, context.rank(), MPI_INFO_NULL, &host);
  std::int64_t needed = 0;
  MPI_Allreduce(&bytes, &needed, 1, MPI_INT64_T, MPI_SUM, host);
  std::int64_t available = available_memory();
  MPI_Bcast(&available, 1, MPI_INT64_T, 0, host);  // it changes while the ranks ask
  MPI_Comm_free(&host);
  // The host that lacks most speaks for all.
  struct {
    double lack;
    int rank;
  } worst{static_cast<double>(needed) - static_cast<double>(available), context.rank()};
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, context.comm());
  if (worst.lack <= 0) return;
  std::int64_t numbers[2] = {needed, available};
  MPI_Bcast(numbers, 2, MPI_INT64_T, worst.rank, context.comm());
  throw tasuki::Error(fmt::format(
      "{} needs {:.1f} GiB on the host of rank {}, which has {:.1f} GiB available; "
      "choose a smaller size, or spread the ranks over more hosts",
      what, static_cast<double>(numbers[0]) / (1 << 30), worst.rank, static_cast<double>(numbers[1]) / (1 << 30)));
}

}  // namespace apps
