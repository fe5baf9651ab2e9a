// MPI that was started without MPI_THREAD_MULTIPLE: engine `thread` runs all the same, on paths that need no MPI, also
// where messages would be the cheapest; and says what it lacks where only messages are left.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include "ranks/error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

int wrong = 0;

void check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++wrong;
}

bool by_messages(const Plan& plan) {
  for (const std::string& path : plan.paths)
    if (path == "mpi") return true;
  return false;
}

void exchange(const Context& ctx, const std::string& engine) {
  const Grid grid(ctx, {6 * ctx.size(), 5}, {.periodic = {true, false}});
  Field<double> u(grid, {.name = "u", .shadow = 1});
  HaloOptions options;
  options.engine = engine;
  Halo halo(HaloField(u), options);
  std::vector<double> in(1000), out(1000);
  CollectiveOptions all;
  all.engine = engine;
  Allreduce sum(ctx, in.data(), out.data(), 1000, DType::f64, ReduceOp::sum, all);
  check(verify(halo).ok() && verify(sum).ok(), "the plans are sound");
  check(by_messages(halo.plan()) == (engine == "inline"), "the halo's path follows from its engine " + engine);
  check(by_messages(sum.plan()) == (engine == "inline"), "the allreduce's path follows from its engine " + engine);
  for (int epoch = 1; epoch < 4; ++epoch) {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = epoch * static_cast<double>(i) + ctx.rank();
    halo.start();
    sum.start();
    sum.wait();
    halo.wait();
    const double ranks = ctx.size();
    for (std::size_t i = 0; i < in.size(); ++i)
      check(out[i] == ranks * epoch * static_cast<double>(i) + ranks * (ranks - 1) / 2, "a sum is right");
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  {
    Context ctx(MPI_COMM_WORLD);
    if (level >= MPI_THREAD_MULTIPLE) {
      std::puts("this MPI gives MPI_THREAD_MULTIPLE whatever is asked for");
    } else {
      (void)machine_of(ctx);
      Machine machine = runtime_of(ctx).machine();
      PathCost& messages = machine.costs["mpi"];
      messages.own = false;  // a user's own memory costs what shared memory does
      for (LinkCost* cost : {&messages.one_way, &messages.mutual}) *cost = {1e-12, 1e15, 1e15, 1e-15};
      machine.corrections = {};
      runtime_of(ctx).replace_machine(machine);
      exchange(ctx, "inline");
      exchange(ctx, "thread");
      check(runtime_of(ctx).machine() == machine, "what an engine cannot drive concerns its own operations only");
      exchange(ctx, "inline");
      HaloOptions options;
      options.engine = "thread";
      options.path = "mpi";
      const Grid grid(ctx, {6 * ctx.size(), 5}, {.periodic = {true, false}});
      Field<double> u(grid, {.name = "u", .shadow = 1});
      const std::string text = error_of([&] { Halo halo(HaloField(u), options); });
      check(text.find("engine 'thread' with path 'mpi' needs MPI_THREAD_MULTIPLE") != std::string::npos, text);
    }
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
