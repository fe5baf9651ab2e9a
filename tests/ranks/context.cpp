// Contexts: what they know of the ranks, their life, their waits.
#include "tasuki/context.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <link.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "memory/gpu_driver.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

struct Counted : Progressing {
  explicit Counted(Runtime& r) : runtime(r) {}
  void progress() override {
    ++calls;
    Progress::drive();  // must not recurse
    if (calls == ends_after) runtime.remove_active(this);
  }
  Runtime& runtime;
  int calls = 0;
  int ends_after = 0;
};

struct Mapping {
  long all = 0;     // KiB
  long mapped = 0;  // KiB that cause no page fault
};

/// The library's code in this process.
Mapping library_code() {
  std::ifstream in("/proc/self/smaps");
  Mapping code;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.find(" r-xp ") != std::string::npos) inside = line.find("/libtasuki.so") != std::string::npos;
    if (inside && line.starts_with("Size:")) code.all = std::stol(line.substr(5));
    if (!inside || !line.starts_with("Rss:")) continue;
    code.mapped = std::stol(line.substr(4));
    return code;
  }
  return code;
}

}  // namespace

TEST_CASE("the library's code is mapped once there is a context, so that operations need no page faults for it") {
  if (madvise(nullptr, 0, 22) != 0) return;  // MADV_POPULATE_READ, which an old system does not know
  const Context ctx(MPI_COMM_WORLD);
  const Mapping code = library_code();
  CHECK(code.all > 0);
  CHECK(code.mapped == code.all);
}

TEST_CASE("a context looks for the CUDA driver, so that operations find no new libraries to look through") {
  { const Context ctx(MPI_COMM_WORLD); }
  if (libraries_seen() == 0) return;  // there is the driver, or this build has no CUDA
  // A small one that nobody else wants.
  void* const library = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto loaded = [](dl_phdr_info* object, std::size_t, void* to) {
    *static_cast<unsigned long long*>(to) = object->dlpi_adds;
    return 1;
  };
  unsigned long long now = 0;
  dl_iterate_phdr(loaded, &now);
  const Context ctx(MPI_COMM_WORLD);
  CHECK(libraries_seen() >= now);
  dlclose(library);
}

TEST_CASE("a context knows its ranks and describes them") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Context ctx(MPI_COMM_WORLD);
  CHECK(ctx.rank() == rank);
  CHECK(ctx.size() == size);
  CHECK(ctx.is_root() == (rank == 0));
  int same = MPI_IDENT;
  MPI_Comm_compare(ctx.comm(), MPI_COMM_WORLD, &same);
  CHECK(same == MPI_CONGRUENT);
  const Topology& topology = runtime_of(ctx).topology();
  CHECK(topology.visible);
  CHECK(topology.islands == topology.hosts);
  const std::string text = ctx.describe();
  CHECK(std::count(text.begin(), text.end(), '\n') == size + 1);
  CHECK(text.find("rank " + std::to_string(size - 1) + ": host ") != std::string::npos);
}

TEST_CASE("contexts work on parts of the ranks, side by side, and outlive the communicator they were made from") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  Context all(MPI_COMM_WORLD);
  Context part(half);
  MPI_Comm_free(&half);
  const Context copy = part;
  CHECK(copy.size() == (all.size() + (rank % 2 == 0 ? 1 : 0)) / 2);
  part.barrier();
  all.barrier();
  CHECK(&runtime_of(copy) == &runtime_of(part));
}

TEST_CASE("ranks that may not use all of the machine count the cores that they may use") {
  cpu_set_t whole;
  REQUIRE(sched_getaffinity(0, sizeof whole, &whole) == 0);
  const auto check_cores = [](const Context& ctx, int cores, int own) {
    const Topology& topology = runtime_of(ctx).topology();
    for (int rank = 0; rank < ctx.size(); ++rank) {
      CHECK(topology.processes[static_cast<std::size_t>(rank)].cores == cores);
      CHECK(topology.processes[static_cast<std::size_t>(rank)].own_cores == own);
      CHECK(topology.crowded(rank) == (ctx.size() > cores));
    }
  };
  const Context all(MPI_COMM_WORLD);
  const int cores = CPU_COUNT(&whole);
  check_cores(all, cores, cores);
  // All ranks on one core, or each on the next one.
  for (const bool together : {true, false}) {
    std::vector<int> numbers;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &whole)) numbers.push_back(core);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(numbers[static_cast<std::size_t>(together ? 0 : all.rank() % cores)], &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    const Context bound(MPI_COMM_WORLD);
    check_cores(bound, together ? 1 : std::min(cores, bound.size()), 1);
    REQUIRE(sched_setaffinity(0, sizeof whole, &whole) == 0);
    if (together && all.size() > 1 && all.size() <= cores) CHECK(runtime_of(bound).spins() < runtime_of(all).spins());
  }
}

TEST_CASE("making and ending contexts over and over leaves nothing behind") {
  int times = 40;
  for (int i = 0; i < times; ++i) {
    Context ctx(MPI_COMM_WORLD);
    ctx.barrier();
    if (ctx.size() > 6) times = 10;
  }
}

TEST_CASE("a message that its receiver never asked for does not come to the next context") {
  std::array<std::int64_t, 3> out{1, 2, 3}, in{};
  for (const bool lost : {true, false, true, false}) {
    const Context ctx(MPI_COMM_WORLD);
    if (ctx.size() == 1) return;
    // What is lost is longer than what is sent next, over a communicator that may get the number of this one.
    const Layout layout = Layout::bytes(lost ? 24 : 8);
    Transfer transfer(ctx, {0, out.data(), layout}, {1, in.data(), layout}, {.path = "mpi"});
    if (!lost || ctx.rank() == 0) {
      transfer.start();
      transfer.wait();
    }
    if (!lost && ctx.rank() == 1) CHECK(in == std::array<std::int64_t, 3>{out[0], 0, 0});
    ctx.barrier();
    out[0] += 10;
  }
}

TEST_CASE("contexts of nothing are refused") {
  CHECK(error_of([] { Context ctx(MPI_COMM_NULL); }) ==
        "Context: argument 'comm' is MPI_COMM_NULL; pass a communicator");
}

TEST_CASE("an exception that passes a context does not make it wait for other ranks") {
  const std::string error = error_of([] {
    Context ctx(MPI_COMM_WORLD);
    MPI_Barrier(ctx.comm());
    if (ctx.rank() == 0) throw Error("thrown on rank 0");
  });
  CHECK(error == (Context(MPI_COMM_WORLD).is_root() ? "thrown on rank 0" : "no error"));
}

TEST_CASE("the deadline is set in seconds") {
  Context ctx(MPI_COMM_WORLD);
  CHECK(ctx.deadline() == 30);
  ctx.set_deadline(2.5);
  CHECK(ctx.deadline() == 2.5);
  ctx.set_deadline(std::numeric_limits<double>::infinity());
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(error_of([&] { ctx.set_deadline(bad); }).find("argument 'seconds' is") != std::string::npos);
}

TEST_CASE("a wait that nobody ends fails at its deadline, and the ranks that need this one are told") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());
  ctx.set_deadline(ctx.is_root() ? 0.05 : 20);
  const std::vector<int> needs{0};
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = error_of([&] {
    wait_until(
        runtime_of(ctx), needs, [] { return false; },
        [&] { return "rank " + std::to_string(ctx.rank()) + ": test: waiting for rank 0"; });
  });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
  if (ctx.is_root())
    CHECK(error ==
          "rank 0: test: waiting for rank 0: the deadline of 0.05 s has passed; TASUKI_DEADLINE or "
          "Context::set_deadline allow more");
  else
    CHECK(error == "rank " + std::to_string(ctx.rank()) +
                       ": test: waiting for rank 0: rank 0 gave up because on rank 0 the deadline of 0.05 s has "
                       "passed: rank 0: test: waiting for rank 0");
  CHECK(runtime_of(ctx).failed());
  CHECK(kind_of([&] { ctx.barrier(); }) == (ctx.is_root() ? "deadline" : "rank died"));  // that of the first failure
  const auto again = std::chrono::steady_clock::now();
  CHECK(error_of([&] { ctx.barrier(); }).find("barrier: the context has failed before and cannot be used again") !=
        std::string::npos);
  CHECK(error_of([&] { Grid(ctx, {8}); }).find("cannot be used again") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - again < std::chrono::seconds(5));
}

TEST_CASE("a barrier fails on every rank if one does not come, instead of hanging") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());
  const bool missing = ctx.rank() == ctx.size() - 1;
  ctx.set_deadline(missing ? 20 : 0.1);
  if (ctx.size() == 1) return;
  if (missing) {
    // Sees the others give up.
    const std::vector<int> needs{0};
    CHECK(error_of([&] {
            wait_until(
                runtime_of(ctx), needs, [] { return false; }, [] { return "late"; });
          }).find("late: rank 0 gave up because on rank ") == 0);
  } else {
    const std::string error = error_of([&] { ctx.barrier(); });
    CHECK(error.find("rank " + std::to_string(ctx.rank()) + ": barrier: ") == 0);
  }
}

TEST_CASE("what a rank did before it gave up still counts") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());  // a rank that is still making the context would hear of it there
  // The poll becomes true only a while later: as if the data were still on its way when the failure is noticed.
  if (ctx.is_root()) runtime_of(ctx).fail("nothing in particular");
  const std::vector<int> needs{0};
  const auto begin = std::chrono::steady_clock::now();
  const auto arrived = [&] { return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(50); };
  CHECK(error_of([&] { wait_until(runtime_of(ctx), needs, arrived, [] { return "wait"; }); }) == "no error");
}

TEST_CASE("what a poll throws ends the wait as it is, and this rank counts as having given up") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());
  const auto poll = []() -> bool { throw Error("broken link"); };
  CHECK(error_of([&] { wait_until(runtime_of(ctx), {}, poll, [] { return "unused"; }); }) == "broken link");
  CHECK(runtime_of(ctx).failed());
  CHECK(error_of([&] {
          const std::vector<int> needs{0};
          wait_until(
              runtime_of(ctx), needs, [&] { return ctx.is_root(); }, [] { return "wait"; });
        }) == (ctx.is_root() ? "no error" : "wait: rank 0 gave up because broken link"));
}

TEST_CASE("a wait drives all active operations, and they may end while it does") {
  Context ctx(MPI_COMM_WORLD);
  Runtime& runtime = runtime_of(ctx);
  Counted a(runtime);
  Counted b(runtime);
  Counted c(runtime);
  b.ends_after = 2;
  for (Counted* op : {&a, &b, &c}) {
    runtime.reserve_active();
    runtime.add_active(op);
  }
  Progress::drive();
  Progress::drive();
  Progress::drive();
  CHECK(a.calls == 3);
  CHECK(b.calls == 2);
  CHECK(c.calls == 3);
  wait_until(
      runtime, {}, [&] { return a.calls >= 10 && c.calls >= 10; }, [] { return "wait"; });
  CHECK(b.calls == 2);
  runtime.remove_active(&a);
  runtime.remove_active(&c);
  runtime.remove_active(&c);  // not there any more: nothing happens
  for (int i = 0; i < 3; ++i) runtime.unreserve_active();
}
