// Liveness: dead processes are told from /proc, and ranks that gave up say why.
#include "session/liveness.hpp"

#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

std::vector<int> all_ranks(const Context& ctx) {
  std::vector<int> ranks(static_cast<std::size_t>(ctx.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

TEST_CASE("nobody is reported while all are at work") {
  Context ctx(MPI_COMM_WORLD);
  CHECK(runtime_of(ctx).liveness().failure(all_ranks(ctx)).empty());
  CHECK(runtime_of(ctx).liveness().failure({}).empty());
  ctx.barrier();
}

TEST_CASE("a rank whose process has ended is named with pid and host") {
  Context ctx(MPI_COMM_WORLD);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(child > 0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);

  // The last rank is made to look like that child; everybody else sees a zombie in its place.
  const int last = ctx.size() - 1;
  Topology topology = runtime_of(ctx).topology();
  topology.processes[last].pid = child;
  topology.processes[last].born = 0;
  Liveness liveness(topology, runtime_of(ctx).memory(), runtime_of(ctx).communicator());
  const std::string expected = "rank " + std::to_string(last) + " (pid " + std::to_string(child) + " on host " +
                               topology.processes[last].name + ") has died";
  const bool watching = ctx.rank() != last;  // a rank does not watch itself
  CHECK(liveness.failure(all_ranks(ctx)) == (watching ? expected : ""));
  waitpid(child, nullptr, 0);
  CHECK(liveness.failure(std::vector{last}) == (watching ? expected : ""));
  CHECK(liveness.failure(std::vector{0}) == (watching && last == 0 ? expected : ""));

  topology.processes[last] = runtime_of(ctx).topology().processes[last];
  CHECK(liveness.failure(all_ranks(ctx)).empty());
  topology.processes[last].born += 1;  // as if another process had got the id
  CHECK(liveness.failure(all_ranks(ctx)).empty() == !watching);
  topology.visible = false;  // then /proc says nothing
  CHECK(liveness.failure(all_ranks(ctx)).empty());
}

TEST_CASE("a rank that gives up is reported with its reason, the root of a chain, and the first one only") {
  Context ctx(MPI_COMM_WORLD);
  Liveness& liveness = runtime_of(ctx).liveness();
  MPI_Barrier(ctx.comm());  // a rank that is still making the context would hear of it there
  if (ctx.rank() == 0) {
    runtime_of(ctx).fail("rank 7 gave up because rank 3 (pid 4711 on host a) has died");
    liveness.give_up("a later reason");
  }
  MPI_Barrier(ctx.comm());
  CHECK(liveness.failure(all_ranks(ctx)) ==
        (ctx.rank() == 0 ? "" : "rank 0 gave up because rank 3 (pid 4711 on host a) has died"));
  MPI_Barrier(ctx.comm());
}

TEST_CASE("a long reason is cut, not spilt") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());
  if (ctx.rank() == 0) runtime_of(ctx).fail(std::string(5000, 'x'));
  MPI_Barrier(ctx.comm());
  if (ctx.rank() != 0)
    CHECK(runtime_of(ctx).liveness().failure(std::vector{0}) == "rank 0 gave up because " + std::string(504, 'x'));
  MPI_Barrier(ctx.comm());
}

TEST_CASE("a failed rank leaves its context alone, and so do those that hear of it") {
  {
    Context ctx(MPI_COMM_WORLD);
    const Field<double> field(Grid(ctx, {64}), {.name = "u"});
    MPI_Barrier(ctx.comm());
    if (ctx.rank() == 0) runtime_of(ctx).fail("a reason");
  }
  Context again(MPI_COMM_WORLD);  // all ranks got here
  again.barrier();
}
