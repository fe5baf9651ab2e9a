// Overlap: see overlap.hpp.
#include "overlap.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure.hpp"

namespace bench {
namespace {

double sink = 0;

// Works in registers, so that neither caches nor memory are shared with what is moved.
void compute(std::int64_t units) {
  double a = 1, b = 2, c = 3, d = 4;
  for (std::int64_t i = 0; i < units; ++i) {
    a = a * 0.999 + 1e-3;
    b = b * 0.998 + 2e-3;
    c = c * 0.997 + 3e-3;
    d = d * 0.996 + 4e-3;
  }
  sink = sink + a + b + c + d;
}

double max_over_ranks(const tasuki::Context& context, double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, context.comm());
  return value;
}

struct Seconds {
  double start = 0;
  double all = 0;
};

// Of one of so many iterations, with so much computation between start and wait; without a runner the computation
// alone.
Seconds timed(const tasuki::Context& context, Runner* runner, std::int64_t units, int iterations) {
  Seconds sum;
  for (int n = 0; n < iterations; ++n) {
    MPI_Barrier(context.comm());
    const double begin = MPI_Wtime();
    if (runner != nullptr) runner->start();
    const double started = MPI_Wtime();
    if (units > 0) compute(units);
    if (runner != nullptr) {
      runner->wait();
      runner->finish();
    }
    sum.start += started - begin;
    sum.all += MPI_Wtime() - begin;
  }
  return {max_over_ranks(context, sum.start / iterations), max_over_ranks(context, sum.all / iterations)};
}

// Units of computation that take this long.
std::int64_t units_for(const tasuki::Context& context, double seconds) {
  std::int64_t units = 1000;
  for (;;) {
    double taken = 1;
    for (int trial = 0; trial < 5; ++trial) taken = std::min(taken, timed(context, nullptr, units, 1).all);
    if (taken >= seconds / 2)
      return std::max<std::int64_t>(std::llround(static_cast<double>(units) * seconds / taken), 1);
    units *= 2;
  }
}

}  // namespace

double Overlap::percent() const {
  return pure > 0 ? std::max(0.0, 100 - (overall - compute) / pure * 100) : 0;
}

Overlap overlap_of(const tasuki::Context& context, Runner& runner, int iterations, int rounds) {
  std::vector<double> pure, computed, overall, start;
  std::int64_t units = 0;
  for (int round = 0; round <= rounds; ++round) {
    const Seconds alone = timed(context, &runner, 0, iterations);
    if (round == 0) {  // it warms up, and says how long the computation has to be
      units = units_for(context, alone.all);
      continue;
    }
    pure.push_back(alone.all * 1e6);
    start.push_back(alone.start * 1e6);
    computed.push_back(timed(context, nullptr, units, iterations).all * 1e6);
    overall.push_back(timed(context, &runner, units, iterations).all * 1e6);
  }
  return {percentile(pure, 0.5), percentile(computed, 0.5), percentile(overall, 0.5), percentile(start, 0.5)};
}

}  // namespace bench
