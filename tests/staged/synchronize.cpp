// Who hears of what failed on a GPU: `synchronize` of any context waits for the stream, and it and what starts next
// tell failures of every context of the process on that GPU.
#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "no_gpu.hpp"
#include "ranks/error_of.hpp"
#include "session/gpus.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// What the engine below has started fails while this is set.
bool fails = false;
int live = 0;

// What it has started waits while this is set, until the host ends all waits.
bool waits = false;

// The engine of a GPU whose kernels end at once, by giving up while `fails` is set, or wait while `waits` is.
class Failing final : public Engine {
 public:
  Failing(Executor&, Runtime& runtime) : runtime_(runtime) {
    ++live;
    watched_ = runtime.gpus->watch([this] { complain(); });
  }
  ~Failing() override { --live; }
  void start() override {
    failed_ = failed_ || fails;
    waits_ = waits;
  }
  bool test() override {
    complain();
    return true;
  }
  void enqueue(Stream, StreamWork) override { start(); }
  void finish() override {
    if (!runtime_.failed()) complain();
  }

 private:
  void complain() const {
    if (waits_ && *runtime_.gpus->abort_word() != 0) throw Error("a kernel waited for #2 send");
    if (!failed_) return;
    runtime_.fail("a kernel gave up");
    throw Error("a kernel gave up");
  }
  Runtime& runtime_;
  bool failed_ = false;
  bool waits_ = false;
  std::shared_ptr<void> watched_;
};

const EngineRegistration registration{"failing", false,
                                      [](Executor& executor, Runtime& runtime) -> std::unique_ptr<Engine> {
                                        return std::make_unique<Failing>(executor, runtime);
                                      },
                                      Memory::device};

Stream some_stream() {
  static int one = 0;
  return reinterpret_cast<Stream>(&one);
}

// A context that takes the prices of paths as they are: they cannot be measured here.
void leave_prices(const Context& ctx) {
  use_gpu(ctx);
  runtime_of(ctx).pricing = true;
}

// A halo in what passes for device memory, made by all ranks.
class Pair {
 public:
  Pair(const Context& ctx, const char* name)
      : field_(Grid(ctx, {4 * ctx.size()}, {.periodic = {true}}), {.name = name, .memory = Memory::device}),
        halo_(HaloField(field_), options()) {}
  Halo& operator*() { return halo_; }
  Halo* operator->() { return &halo_; }

 private:
  static HaloOptions options() {
    HaloOptions options;
    options.engine = "failing";
    return options;
  }
  Field<double> field_;
  Halo halo_;
};

std::vector<int> all_of(const Context& ctx) {
  std::vector<int> all;
  for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rank);
  return all;
}

}  // namespace

TEST_CASE("synchronize of a context that has used no GPU waits for the stream, and tells what failed there") {
  const Context ctx(MPI_COMM_WORLD);
  const Context part = ctx.subset(all_of(ctx));
  leave_prices(part);
  REQUIRE(!uses_gpu(ctx));
  int polls = 0;
  no_gpu().busy = [&](Stream stream) { return stream == some_stream() && ++polls < 1000; };
  synchronize(ctx, some_stream());
  CHECK(polls == 1000);
  no_gpu().busy = nullptr;
  {
    Pair one(part, "u");
    synchronize(ctx, some_stream());
    fails = true;
    one->run(some_stream());
    fails = false;
    CHECK(error_of([&] { synchronize(ctx, some_stream()); }) == "a kernel gave up");
    CHECK(error_of([&] { synchronize(part, some_stream()); }) == "a kernel gave up");
    CHECK(!runtime_of(ctx).failed());                     // it goes on
    CHECK(error_of([&] { one->free(); }) == "no error");  // it has been told
  }
  CHECK(error_of([&] { synchronize(ctx, some_stream()); }) == "no error");
}

TEST_CASE("what failed in another context is told by the next start, once, which then works") {
  const Context ctx(MPI_COMM_WORLD);
  const Context part = ctx.subset(all_of(ctx));
  leave_prices(ctx);
  leave_prices(part);
  Pair good(ctx, "u");
  Pair bad(part, "v");
  fails = true;
  bad->run(some_stream());
  fails = false;
  CHECK(error_of([&] { good->run(some_stream()); }) == "a kernel gave up");
  CHECK(error_of([&] { good->run(some_stream()); }) == "no error");
  good->start();
  CHECK(good->test());
}

TEST_CASE("test and wait tell that a kernel gave up") {
  const Context ctx(MPI_COMM_WORLD);
  for (const bool waits_for_it : {false, true}) {
    const Context part = ctx.subset(all_of(ctx));
    leave_prices(part);
    Pair bad(part, "u");
    fails = true;
    bad->start();
    fails = false;
    CHECK(error_of([&] { waits_for_it ? bad->wait() : static_cast<void>(bad->test()); }) == "a kernel gave up");
    CHECK(error_of([&] { bad->free(); }) == "no error");  // an error is reported once
  }
}

TEST_CASE("synchronize that gives up says what kernels have waited for, or that none has") {
  const Context ctx(MPI_COMM_WORLD);
  const std::string late = "rank " + std::to_string(ctx.rank()) + ": synchronize: the work in the stream did not end: ";
  for (const bool kernel_waits : {true, false}) {
    Context part = ctx.subset(all_of(ctx));
    leave_prices(part);
    Pair one(part, "u");
    part.set_deadline(0.2);
    part.barrier();
    waits = kernel_waits;
    one->run(some_stream());
    waits = false;
    no_gpu().busy = [&](Stream) { return *runtime_of(part).gpus->abort_word() == 0; };
    const std::string text = error_of([&] { synchronize(part, some_stream()); });
    no_gpu().busy = nullptr;
    INFO(text);
    CHECK(text.starts_with(late));
    CHECK(text.ends_with("; a kernel waited for #2 send") == kernel_waits);
    // A rank that hears that another one has given up first names that one.
    if (text.starts_with(late + "the deadline of 0.2 s has passed"))
      CHECK(text.ends_with("; no kernel of Tasuki says that it has waited") == !kernel_waits);
    ctx.barrier();
  }
}

TEST_CASE("free tells a failure that nobody has been told, and frees") {
  const Context ctx(MPI_COMM_WORLD);
  leave_prices(ctx);
  Pair bad(ctx, "u");
  fails = true;
  bad->run(some_stream());
  fails = false;
  CHECK(live == 1);
  CHECK(error_of([&] { bad->free(); }) == "a kernel gave up");
  CHECK(live == 0);
  CHECK(error_of([&] { bad->free(); }) == "no error");
}

TEST_CASE("TASUKI_CHECK names two operations that ranks start in unlike orders in a stream") {
  setenv("TASUKI_CHECK", "1", 1);
  const Context ctx(MPI_COMM_WORLD);
  unsetenv("TASUKI_CHECK");
  const Context part = ctx.subset(all_of(ctx));  // one of the two is of another context
  leave_prices(ctx);
  leave_prices(part);
  if (ctx.size() == 1) return;
  Pair up(ctx, "u");
  Pair down(part, "v");
  const auto runs = [&](Operation& one, Operation& other, Stream first, Stream second) {
    const std::string text = error_of([&] { one.run(first); });
    return text + ", " + error_of([&] { other.run(second); });
  };
  static int other_stream = 0;
  const auto other = reinterpret_cast<Stream>(&other_stream);
  if (ctx.rank() == 0) CHECK(runs(*up, *down, some_stream(), some_stream()) == "no error, no error");
  ctx.barrier();
  if (ctx.rank() == 1) CHECK(runs(*up, *down, some_stream(), some_stream()) == "no error, no error");  // alike
  ctx.barrier();
  if (ctx.rank() == 0) CHECK(runs(*up, *down, some_stream(), some_stream()) == "no error, no error");
  ctx.barrier();
  if (ctx.rank() == 1) CHECK(runs(*down, *up, some_stream(), other) == "no error, no error");  // apart
  ctx.barrier();
  if (ctx.rank() == 0) CHECK(runs(*up, *down, some_stream(), some_stream()) == "no error, no error");
  ctx.barrier();
  const std::string wanted0 = "halo u was started before halo v in a stream here, but rank 1 started";
  const std::string wanted1 = "halo v was started before halo u in a stream here, but rank 0 started";
  if (ctx.rank() == 1) {
    const std::string text = runs(*down, *up, some_stream(), some_stream());
    CHECK_MESSAGE(text.find(wanted1) != std::string::npos, text);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (ctx.rank() == 0) {
    no_gpu().busy = [](Stream) { return true; };
    const std::string text = error_of([&] { synchronize(part, some_stream()); });
    no_gpu().busy = nullptr;
    CHECK_MESSAGE(text.find(wanted0) != std::string::npos, text);
  }
}
