// Traces: clocks of ranks that do not share one are brought together.
#include "session/trace.hpp"

#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>

#include "tasuki/context.hpp"

using namespace tasuki;

TEST_CASE("a rank whose clock differs learns by how much") {
  Context ctx(MPI_COMM_WORLD);
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const std::int64_t ahead = ctx.rank() * kHour;
  const auto none = [](int) { return false; };
  const std::int64_t offset = clock_offset(ctx.comm(), none, [ahead] { return Recorder::now() + ahead; });
  // Half of the fastest answer's time is what it may be wrong by; a crowded machine is slow to answer.
  CHECK(std::llabs(offset + ahead) < 100'000'000);
  CHECK(clock_offset(
            ctx.comm(), [](int) { return true; }, [ahead] { return Recorder::now() + ahead; }) == 0);
}
