// The neighbours of a rank in a halo exchange, in plain index arithmetic.
#include "peers/neighbours.hpp"

#include "tasuki/error.hpp"

namespace bench {
namespace {

int tag_of(const int direction[3]) {
  return (direction[0] + 1) * 9 + (direction[1] + 1) * 3 + direction[2] + 1;
}

// False if nobody is there or nothing is to be exchanged in this direction.
bool find_neighbour(const HaloCase& problem, const int direction[3], Neighbour& found) {
  const tasuki::Grid& grid = problem.grid;
  const tasuki::Box own = problem.fields[0].local_owned();
  auto coords = grid.coords(problem.context.rank());
  for (int d = 0; d < 3; ++d) {
    const auto lo = static_cast<int>(own.lo[d]);
    const auto n = static_cast<int>(own.extent(d));
    const auto below = static_cast<int>(problem.width.lo[d]);
    const auto above = static_cast<int>(problem.width.hi[d]);
    if (below > n || above > n) throw tasuki::Error("neighbours_of: a width exceeds the box; choose larger boxes");
    // Upwards my last `below` cells fill the halo below the neighbour; its first `above` cells fill mine above.
    if (direction[d] > 0) {
      found.send.lo[d] = lo + n - below;
      found.send.extent[d] = below;
      found.recv.lo[d] = lo + n;
      found.recv.extent[d] = above;
    } else if (direction[d] < 0) {
      found.send.lo[d] = lo;
      found.send.extent[d] = above;
      found.recv.lo[d] = lo - below;
      found.recv.extent[d] = below;
    } else {
      found.send.lo[d] = found.recv.lo[d] = lo;
      found.send.extent[d] = found.recv.extent[d] = n;
    }
    if (direction[d] == 0) continue;
    if (below != above) throw tasuki::Error("neighbours_of: the peers only know halos as wide above as below");
    if (below == 0) return false;
    const int at = coords[d] + direction[d];
    if ((at < 0 || at >= grid.split(d)) && !grid.periodic(d)) return false;
    coords[d] = (at + grid.split(d)) % grid.split(d);
  }
  const int back[3] = {-direction[0], -direction[1], -direction[2]};
  found.rank = grid.rank_at(coords);
  found.send_tag = tag_of(direction);
  found.recv_tag = tag_of(back);
  return true;
}

}  // namespace

std::vector<Neighbour> neighbours_of(const HaloCase& problem) {
  std::vector<Neighbour> all;
  int direction[3];
  for (direction[0] = -1; direction[0] <= 1; ++direction[0]) {
    for (direction[1] = -1; direction[1] <= 1; ++direction[1]) {
      for (direction[2] = -1; direction[2] <= 1; ++direction[2]) {
        if (direction[0] == 0 && direction[1] == 0 && direction[2] == 0) continue;
        Neighbour found;
        if (find_neighbour(problem, direction, found)) all.push_back(found);
      }
    }
  }
  return all;
}

MPI_Datatype subarray_of(const tasuki::Field<double>& field, const LocalBox& box) {
  // The rows in memory may be longer than the field's extent, by its padding.
  const int sizes[3] = {static_cast<int>(field.extents()[0]), static_cast<int>(field.strides()[0] / field.strides()[1]),
                        static_cast<int>(field.strides()[1])};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(3, sizes, box.extent, box.lo, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

}  // namespace bench
