// A program that calls MPI_Finalize while it still has Tasuki's objects: every call is an error that says so, freeing
// is quiet, and so is the program's end.
//
//   after_finalize ENGINE PATH
#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tasuki/tasuki.hpp"

namespace {

struct Objects {
  tasuki::Context context;
  tasuki::Grid grid;
  tasuki::Field<double> u;
  tasuki::Halo halo, active, freed;
};
std::unique_ptr<Objects> objects;  // destroyed when the program ends

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  tasuki::HaloOptions options;
  options.engine = argv[1];
  options.path = argv[2];
  {
    const tasuki::Context context(MPI_COMM_WORLD);
    const tasuki::Grid grid(context, {11 * context.size(), 5}, {.split = {context.size(), 1}});
    const tasuki::Field<double> u(grid, {.name = "u", .shadow = 2});
    const auto halo = [&] { return tasuki::Halo(tasuki::HaloField(u), options); };
    objects = std::make_unique<Objects>(Objects{context, grid, u, halo(), halo(), halo()});
  }
  Objects& o = *objects;
  o.halo.start();
  o.halo.wait();
  MPI_Barrier(MPI_COMM_WORLD);
  if (o.context.rank() == 0) o.active.start();  // and it will never end
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  int failures = 0;
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"start", [&] { o.halo.start(); }},
      {"wait", [&] { o.halo.wait(); }},
      {"test", [&] { o.halo.test(); }},
      {"wait for the active one", [&] { o.active.wait(); }},
      {"test the active one", [&] { o.active.test(); }},
      {"barrier", [&] { o.context.barrier(); }},
      {"allgather", [&] { o.context.allgather(1); }},
      {"verify", [&] { verify(o.halo); }},
      {"grid", [&] { const tasuki::Grid other(o.context, {4}); }},
      {"field", [&] { const tasuki::Field<float> other(o.grid, {.name = "v"}); }},
      {"halo", [&] { const tasuki::Halo other{tasuki::HaloField(o.u)}; }},
      {"broadcast", [&] { const tasuki::Broadcast other(o.context, 0, o.u.data(), 8); }},
      {"context", [&] { const tasuki::Context other(MPI_COMM_WORLD); }},
  };
  for (const auto& [name, call] : calls) {
    try {
      call();
      fmt::print("{} was no error\n", name);
      ++failures;
    } catch (const tasuki::Error& error) {
      const std::string_view text = error.what();
      const bool says = text.find("MPI has been finalised") != text.npos || text.find("finalised)") != text.npos;
      if (says) continue;
      fmt::print("{} says: {}\n", name, text);
      ++failures;
    }
  }
  o.freed.free();
  // What does without MPI goes on.
  tasuki::run_threads(2, [](const tasuki::Context& threads) { threads.barrier(); });
  if (failures == 0) fmt::print("fine\n");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
