// What an operation costs to keep and to start.
#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>
#include <new>

#include "tasuki/tasuki.hpp"

namespace {
bool counting = false;
int allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace tasuki;

TEST_CASE("a plan for the six faces of a field takes less than 16 KiB, also when every face leaves the rank") {
  Context ctx(MPI_COMM_WORLD);
  GridOptions options;
  options.periodic = {true, true, true};
  const Grid grid(ctx, {32, 32, 32}, options);
  const Field<double> u(grid, {.name = "u"});
  HaloOptions halo_options;
  halo_options.corners = false;
  const Halo halo(HaloField(u), halo_options);
  CHECK(halo.memory() < 16 * 1024);
}

TEST_CASE("starting and waiting allocate nothing") {
  Context ctx(MPI_COMM_WORLD);
  GridOptions options;
  options.periodic = {true, true, true};
  const Grid grid(ctx, {24, 24, 24}, options);
  Field<double> u(grid, {.name = "u", .copies = 2});
  Halo halo{HaloField(u)};
  for (int iteration = 0; iteration < 20; ++iteration) {
    counting = iteration >= 2;  // an MPI may set things up in the first rounds
    halo.start();
    halo.wait();
    counting = false;
    u.swap();
  }
  CHECK(allocations == 0);
}
