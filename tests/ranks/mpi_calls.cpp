// The facade of MPI: what Tasuki says to MPI is not seen under MPI's plain names, unless that is asked for.
#include "session/mpi.hpp"

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {
int seen = 0;
int sent = 0;
int gathered = 0;
}  // namespace

// As a profiler would: these take the place of MPI's in the whole process.
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  ++seen;
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}
extern "C" int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  ++sent;
  return PMPI_Isend(from, count, type, to, tag, comm, request);
}
extern "C" int MPI_Iallgather(const void* from, int count, MPI_Datatype type, void* to, int each, MPI_Datatype into,
                              MPI_Comm comm, MPI_Request* request) {
  ++gathered;
  return PMPI_Iallgather(from, count, type, to, each, into, comm, request);
}
extern "C" int MPI_Iallgatherv(const void* from, int count, MPI_Datatype type, void* to, const int each[],
                               const int begin[], MPI_Datatype into, MPI_Comm comm, MPI_Request* request) {
  ++gathered;
  return PMPI_Iallgatherv(from, count, type, to, each, begin, into, comm, request);
}
extern "C" int MPI_Send_init(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                             MPI_Request* request) {
  ++seen;
  return PMPI_Send_init(from, count, type, to, tag, comm, request);
}

TEST_CASE("a profiler does not see Tasuki's own calls") {
  const char* set = std::getenv("TASUKI_PMPI");
  const bool shown = set != nullptr && std::string(set) == "0";
  seen = 0;
  Context ctx(MPI_COMM_WORLD);
  ctx.barrier();
  std::vector<int> from(33, ctx.rank());
  std::vector<int> to(33, -1);
  const Layout layout = Layout::contiguous(33, Layout::of<int>());
  if (ctx.size() > 1) {
    Transfer transfer(ctx, {0, from.data(), layout}, {1, to.data(), layout}, {.path = "mpi"});
    for (int i = 0; i < 3; ++i) {
      std::fill(from.begin(), from.end(), 100 * i + ctx.rank());
      transfer.start();
      transfer.wait();
      if (ctx.rank() == 1) CHECK(to == std::vector<int>(33, 100 * i));
    }
  }
  CHECK((seen > 0) == shown);
}

TEST_CASE("what a rank tells a peer is one message, and two if it is large") {
  const char* set = std::getenv("TASUKI_PMPI");
  const bool shown = set != nullptr && std::string(set) == "0";
  Context ctx(MPI_COMM_WORLD);
  const std::vector<int> peers{(ctx.rank() + ctx.size() - 1) % ctx.size(), (ctx.rank() + 1) % ctx.size()};
  const auto text = [](int rank, std::size_t size) { return std::string(size, static_cast<char>('a' + rank)); };
  for (const std::size_t size : {0, 1, 2039, 2040, 2041, 2048, 2049, 70000}) {
    sent = 0;
    const auto got = exchange(runtime_of(ctx), peers, std::vector(2, text(ctx.rank(), size)));
    CHECK(got == std::vector{text(peers[0], size), text(peers[1], size)});
    CHECK(sent == (shown ? 2 : 0) * (size <= 2040 ? 1 : 2));
  }
}

TEST_CASE("what all ranks tell each other is one call of MPI, and more if it is large") {
  const char* set = std::getenv("TASUKI_PMPI");
  const bool shown = set != nullptr && std::string(set) == "0";
  Context ctx(MPI_COMM_WORLD);
  const auto text = [](int rank, std::size_t size) { return std::string(size, static_cast<char>('a' + rank)); };
  for (const std::size_t size : {0, 1, 55, 56, 57, 64, 65, 70000}) {
    // All texts are so large, or that of the last rank alone.
    for (const bool all : {true, false}) {
      const auto size_on = [&](int rank) { return all || rank == ctx.size() - 1 ? size : 3; };
      gathered = 0;
      const auto got = gather_texts(runtime_of(ctx), text(ctx.rank(), size_on(ctx.rank())), "telling");
      REQUIRE(got.size() == static_cast<std::size_t>(ctx.size()));
      for (int rank = 0; rank < ctx.size(); ++rank)
        CHECK(got[static_cast<std::size_t>(rank)] == text(rank, size_on(rank)));
      CHECK(gathered == (shown ? 1 : 0) * (size <= 56 ? 1 : 2));
    }
  }
}

TEST_CASE("with TASUKI_PMPI=0 it does") {
  seen = 0;
  int one = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::calls_by(false).Iallreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(seen == 1);
  mpi::calls_by(true).Iallreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(seen == 1);
}

TEST_CASE("a failed call names itself and the rank") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  const std::string error = error_of([&] { mpi::Send(&rank, 1, MPI_INT, 1000000, 0, copy); });
  CHECK(error.find("rank " + std::to_string(rank) + ": MPI_Send failed: ") == 0);
  MPI_Comm_free(&copy);
}

TEST_CASE("two ranks number alike what they share, whatever they share with others") {
  Context ctx(MPI_COMM_WORLD);
  const auto take = [&](int peer) {
    const std::int64_t number = runtime_of(ctx).channels().lowest(peer);
    runtime_of(ctx).channels().take(peer, number);
    return number;
  };
  const int me = ctx.rank();
  std::vector<std::int64_t> last(static_cast<std::size_t>(ctx.size()), -1);
  for (int a = 0; a < ctx.size(); ++a) {
    for (int b = a + 1; b < ctx.size(); ++b) {
      for (int i = 0; i < a + 2 * b; ++i) {
        if (me == a) last[static_cast<std::size_t>(b)] = take(b);
        if (me == b) last[static_cast<std::size_t>(a)] = take(a);
      }
    }
  }
  for (int other = 0; other < ctx.size(); ++other)
    if (other != me) CHECK(last[static_cast<std::size_t>(other)] == std::min(me, other) + 2 * std::max(me, other) - 1);
  CHECK(runtime_of(ctx).channels().places() >= 511);
  CHECK(runtime_of(ctx).channels().tag(runtime_of(ctx).channels().places() - 1, Channels::kLinks - 1) > 0);
}

TEST_CASE("the settings that are yes or no take 0 and 1 only") {
  for (const char* name : {"TASUKI_PMPI", "TASUKI_AGREE"}) {
    const char* set = std::getenv(name);
    const std::string before = set == nullptr ? "" : set;
    setenv(name, "no", 1);
    CHECK(error_of([] { settings_from_environment(); }) == std::string(name) + " is 'no'; it must be 0 or 1");
    setenv(name, "0", 1);
    const Settings off = settings_from_environment();
    CHECK((off.pmpi ? 1 : 0) + (off.agree ? 1 : 0) <= 1);
    setenv(name, "1", 1);
    const Settings on = settings_from_environment();
    CHECK((std::string(name) == "TASUKI_PMPI" ? on.pmpi : on.agree));
    setenv(name, before.c_str(), 1);
  }
}
