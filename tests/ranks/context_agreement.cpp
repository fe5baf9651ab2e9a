// What all ranks must agree on: differences and complaints are thrown by every rank, with ranks and values.
#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>

#include "error_of.hpp"
#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

TEST_CASE("equal arguments pass, and a difference names argument, ranks and values on every rank") {
  Context ctx(MPI_COMM_WORLD);
  const int last = ctx.size() - 1;
  const auto agree = [&](const std::string& corners) {
    return error_of([&] {
      Agreement(runtime_of(ctx), "Halo").same("fields", 3).same("corners", corners).same("name", "").check();
    });
  };
  CHECK(agree("true") == "no error");
  const std::string error = agree(ctx.rank() == last ? "false" : "true");
  if (ctx.size() == 1)
    CHECK(error == "no error");
  else
    CHECK(error == "Halo: argument 'corners' differs between ranks: rank 0 has true, rank " + std::to_string(last) +
                       " has false");
  CHECK(agree("true") == "no error");  // and the context can go on
}

TEST_CASE("ranks that do different things are told so") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() == 1) return;
  const bool odd = ctx.rank() == 1;
  CHECK(error_of([&] {
          Agreement(runtime_of(ctx), odd ? "Grid" : "Halo").check();
        }).find("the ranks do different things: rank 0 makes Halo, rank 1 makes Grid") == 0);
  CHECK(error_of([&] { Agreement(runtime_of(ctx), "Halo").same(odd ? "a" : "b", 1).check(); }) ==
        "Halo: the ranks pass different arguments: rank 0 'b', rank 1 'a'");
  CHECK(error_of([&] {
          Agreement agreement(runtime_of(ctx), "Halo");
          if (odd) agreement.same("a", 1);
          agreement.check();
        }) == "Halo: rank 0 passes 0 arguments, rank 1 passes 1");
}

TEST_CASE("a complaint of one rank is thrown by all, before any difference") {
  Context ctx(MPI_COMM_WORLD);
  const int last = ctx.size() - 1;
  CHECK(error_of([&] {
          Agreement agreement(runtime_of(ctx), "Field 'T'");
          agreement.same("rank", ctx.rank());
          if (ctx.rank() == last) agreement.complain("argument 'pad' is -1").complain("and more");
          agreement.check();
        }) == "Field 'T': rank " + std::to_string(last) + ": argument 'pad' is -1");
}

TEST_CASE("a failure that one rank finds has its kind on all") {
  Context ctx(MPI_COMM_WORLD);
  const bool odd = ctx.rank() == ctx.size() - 1;
  for (const ErrorKind kind : {ErrorKind::argument, ErrorKind::disagreement, ErrorKind::not_possible,
                               ErrorKind::rank_died, ErrorKind::deadline, ErrorKind::system}) {
    CHECK(kind_of([&] {
            Agreement agreement(runtime_of(ctx), "Halo");
            if (odd) agreement.complain(Error(kind, "it cannot be"));
            agreement.check();
          }) == to_string(kind));
  }
  if (ctx.size() > 1) {
    CHECK(kind_of([&] { Agreement(runtime_of(ctx), "Halo").same("corners", odd ? 1 : 0).check(); }) == "disagreement");
    CHECK(kind_of([&] { Agreement(runtime_of(ctx), odd ? "Grid" : "Halo").check(); }) == "disagreement");
    CHECK(kind_of([&] { Grid(ctx, {odd ? 8 : 9}); }) == "disagreement");
  }
  const Grid grid(ctx, {8 * ctx.size()});
  const Field<double> u(grid, {.name = "u"});
  const auto halo = [&](const char* path) {
    HaloOptions options;
    options.path = path;
    return kind_of([&] { Halo(HaloField(u), options); });
  };
  CHECK(halo("pigeon") == "argument");
  if (ctx.size() > 1) CHECK(halo("peer") == "not possible");
  CHECK(kind_of([&] { Grid(ctx, {0}); }) == "argument");
}

TEST_CASE("settings are read from the environment") {
  setenv("TASUKI_ISLAND", "2", 1);
  setenv("TASUKI_DEADLINE", "7.5", 1);
  setenv("TASUKI_PATH", "mpi", 1);
  setenv("TASUKI_ENGINE", "", 1);
  Context ctx(MPI_COMM_WORLD);
  unsetenv("TASUKI_ISLAND");
  unsetenv("TASUKI_DEADLINE");
  unsetenv("TASUKI_PATH");
  unsetenv("TASUKI_ENGINE");
  CHECK(ctx.deadline() == 7.5);
  CHECK(runtime_of(ctx).settings().path == "mpi");
  CHECK(runtime_of(ctx).settings().engine == "auto");
  const Topology& topology = runtime_of(ctx).topology();
  for (int rank = 0; rank < ctx.size(); ++rank)
    for (int other = 0; other < ctx.size(); ++other)
      CHECK(topology.same_island(rank, other) ==
            (topology.same_host(rank, other) &&
             topology.processes[rank].local / 2 == topology.processes[other].local / 2));
}

TEST_CASE("TASUKI_ALGORITHM forces the algorithms of the collectives that it names, where no option does") {
  setenv("TASUKI_ALGORITHM", "allreduce:ring,reduce:trees", 1);
  Context ctx(MPI_COMM_WORLD);
  unsetenv("TASUKI_ALGORITHM");
  double in = 1, out = 0;
  CollectiveOptions options;
  const auto chosen = [&] { return Allreduce(ctx, &in, &out, 1, DType::f64, ReduceOp::sum, options).explain(); };
  CHECK(chosen().find("algorithm: ring, which was asked for") != std::string::npos);
  options.algorithm = "exchange";
  CHECK(chosen().find("algorithm: exchange, which was asked for") != std::string::npos);
  const std::string reduce = Reduce(ctx, 0, &in, &out, 1, DType::f64).explain();
  CHECK(reduce.find("algorithm: trees") != std::string::npos);
  CHECK(Barrier(ctx).explain().find("asked for") == std::string::npos);
}

TEST_CASE("bad or different settings are an error on every rank") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto with = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    const std::string error = error_of([] { Context ctx(MPI_COMM_WORLD); });
    unsetenv(name);
    return error;
  };
  for (const char* value : {"two", "-1", "1.5", "3 ", "nan", "99999999999"})
    CHECK(with("TASUKI_ISLAND", value) == "Context: rank 0: TASUKI_ISLAND is '" + std::string(value) +
                                              "'; it must be a number of ranks, 0 for whole hosts");
  CHECK(with("TASUKI_DEADLINE", "0") ==
        "Context: rank 0: TASUKI_DEADLINE is '0'; it must be a number of seconds above 0");
  CHECK(with("TASUKI_ALGORITHM", "ring") ==
        "Context: rank 0: TASUKI_ALGORITHM has 'ring'; give a collective and one of its algorithms, as in "
        "'allreduce:ring', or several of these with commas between them");
  CHECK(
      with("TASUKI_ALGORITHM", "reduce:trees,allreduce:rings") ==
      "Context: rank 0: TASUKI_ALGORITHM has 'allreduce:rings': there is no algorithm 'rings' for allreduce; give one "
      "of auto, exchange, direct, doubling, relay, ring, halving, hierarchical");
  const std::string error = with("TASUKI_ISLAND", rank == size - 1 && size > 1 ? "3" : "4");
  if (size > 1)
    CHECK(error == "Context: argument 'TASUKI_ISLAND' differs between ranks: rank 0 has 4, rank " +
                       std::to_string(size - 1) + " has 3");
  else
    CHECK(error == "no error");
  CHECK(error_of([] { Context ctx(MPI_COMM_WORLD); }) == "no error");
}

TEST_CASE("with TASUKI_AGREE=0 nothing is compared or sent, and what ranks find out by themselves still is") {
  setenv("TASUKI_AGREE", "0", 1);
  Context ctx(MPI_COMM_WORLD);
  unsetenv("TASUKI_AGREE");
  const int last = ctx.size() - 1;
  if (ctx.rank() == last) {  // alone
    CHECK(error_of([&] { Agreement(runtime_of(ctx), "Halo").same("rank", ctx.rank()).check(); }) == "no error");
    CHECK(error_of([&] { Agreement(runtime_of(ctx), "Halo").complain("bad").check(); }) ==
          "Halo: rank " + std::to_string(last) + ": bad");
  }
  CHECK(error_of([&] {
          all_do(runtime_of(ctx), "Halo", [&] {
            if (ctx.rank() == last) throw Error("no room");
          });
        }) == "Halo: rank " + std::to_string(last) + ": no room");
  // What another collective tells is not taken for counts or neighbours.
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(ctx.size()), 1);
  std::vector<double> in(counts.size()), out(counts.size());
  const std::string error = error_of([&] {
    if (ctx.rank() != last) Alltoall(ctx, in.data(), out.data(), counts, counts, DType::f64);
    if (ctx.rank() == last) NeighbourAllgather(ctx, Neighbours({}, {}), in.data(), out.data(), 1, DType::f64);
  });
  INFO(error);
  if (ctx.size() > 1) {
    const char* const tells = ctx.rank() == last ? " tells no neighbours; all ranks must make the same collective"
                                                 : " tells no counts; all ranks must make the same collective";
    CHECK(error.find(tells) != std::string::npos);
  }
  const Field<double> field(Grid(ctx, {64, 5}), {.name = "u"});
  Halo halo{HaloField(field)};
  const VerifyReport report = verify(halo);
  CHECK(report.ok());
  for (int i = 0; i < 3; ++i) {
    halo.start();
    halo.wait();
  }
}

TEST_CASE("neighbours exchange blobs of any size, also with themselves") {
  Context ctx(MPI_COMM_WORLD);
  const int right = (ctx.rank() + 1) % ctx.size();
  const int left = (ctx.rank() + ctx.size() - 1) % ctx.size();
  const auto blob = [](int from, int to) {
    return std::string(static_cast<std::size_t>(from) * 100000, char('a' + to));
  };
  for (int round = 0; round < 3; ++round) {
    // On two ranks left and right are the same rank, and on one they are this one: messages arrive in order.
    const std::vector<int> peers{left, right};
    const auto got = exchange(runtime_of(ctx), peers, std::vector{blob(ctx.rank(), left), blob(ctx.rank(), right)});
    REQUIRE(got.size() == 2);
    CHECK(got[0] == blob(left, ctx.rank()));
    CHECK(got[1] == blob(right, ctx.rank()));
  }
  CHECK(exchange(runtime_of(ctx), {}, {}).empty());
}
