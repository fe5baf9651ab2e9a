// The Himeno benchmark on a grid of ranks.
#include "himeno/solver.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "common/gather.hpp"
#include "himeno/serial.hpp"

namespace himeno {

Solver::Solver(const tasuki::Context& context, const apps::Options& options)
    : grid_(context, options.extents, options.grid()),
      extents_(options.extents),
      options_(options),
      a_{constant("a0", 1), constant("a1", 1), constant("a2", 1), constant("a3", 1.0F / 6)},
      b_{constant("b0", 0), constant("b1", 0), constant("b2", 0)},
      c_{constant("c0", 1), constant("c1", 1), constant("c2", 1)},
      bnd_(constant("bnd", 1)),
      wrk1_(constant("wrk1", 0)),
      p_(grid_, {.name = "p", .shadow = 1, .copies = 2}),
      halo_(p_, {{.path = options.path, .engine = options.engine}, true, false, true}),
      coefficients_{{a_[0].data(), a_[1].data(), a_[2].data(), a_[3].data()},
                    {b_[0].data(), b_[1].data(), b_[2].data()},
                    {c_[0].data(), c_[1].data(), c_[2].data()},
                    bnd_.data(),
                    wrk1_.data()} {}

// The coefficients are only read at the cell itself, but with the pressure's shadow they have its indices, too.
tasuki::Field<float> Solver::constant(const char* name, float value) const {
  tasuki::Field<float> field(grid_, {.name = name, .shadow = 1});
  field.for_each([value](const tasuki::Index&, float& cell) { cell = value; });
  return field;
}

// The cells of `box` (local indices) that are not fixed, which those on the faces of the whole grid are.
Region Solver::region(const tasuki::Box& box) const {
  Region region{.stride_i = p_.strides()[0], .stride_j = p_.strides()[1]};
  for (int d = 0; d < 3; ++d) {
    const std::int64_t to_local = p_.local_owned().lo[d] - p_.owned().lo[d];
    region.lo[d] = std::max(box.lo[d], 1 + to_local);
    region.hi[d] = std::min(box.hi[d], extents_[d] - 1 + to_local);
  }
  return region;
}

void Solver::initialise() {
  p_.swap();  // once between two exchanges, as promised by `alternating`
  float* const now = p_.data();
  float* const next = p_.next();  // its fixed cells are never computed
  p_.for_each(
      [&](const tasuki::Index& at, float& cell) { next[&cell - now] = cell = initial_pressure(at[0], extents_[0]); });
  halo_.start();
  halo_.wait();
}

apps::Timing Solver::run(int iterations) {
  apps::Timing timing;
  apps::Progress progress(grid_.context(), options_, iterations);
  grid_.context().barrier();
  const double begin = MPI_Wtime();
  for (int n = 0; n < iterations; ++n) {
    p_.swap();  // from here on `next()` is the old pressure and `data()` the one to compute
    local_gosa_ = 0;
    const auto compute = [&](const tasuki::Box& box) {
      const double since = MPI_Wtime();
      local_gosa_ += sweep(coefficients_, p_.next(), p_.data(), region(box));
      timing.compute += MPI_Wtime() - since;
    };
    if (options_.overlap) {
      tasuki::overlap(halo_, p_, 1, compute);
    } else {
      compute(p_.local_owned());
      halo_.start();
      halo_.wait();
    }
    progress.done(n + 1);
  }
  timing.total = MPI_Wtime() - begin;
  return timing;
}

double Solver::gosa() const {
  double gosa = local_gosa_;
  MPI_Allreduce(MPI_IN_PLACE, &gosa, 1, MPI_DOUBLE, MPI_SUM, grid_.context().comm());
  return gosa;
}

bool Solver::equals_serial(int iterations) const {
  const std::vector<float> parallel = apps::gather_on_root(p_);
  int equal = 0;
  if (grid_.context().is_root()) {
    const std::vector<float> serial = solve_serially(extents_, iterations);
    equal = serial.size() == parallel.size() &&
            std::memcmp(serial.data(), parallel.data(), serial.size() * sizeof(float)) == 0;
  }
  MPI_Bcast(&equal, 1, MPI_INT, 0, grid_.context().comm());
  return equal != 0;
}

}  // namespace himeno
