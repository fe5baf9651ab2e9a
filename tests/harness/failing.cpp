// Test cases that fail in every way in which a rank can: they show that tests/ranks_main.cpp reports it and ends the
// job.
#include <doctest/doctest.h>
#include <mpi.h>

#include <csignal>
#include <stdexcept>

namespace {

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

}  // namespace

TEST_CASE("every rank passes") {
  CHECK(rank() >= 0);
}

TEST_CASE("one rank fails a check and goes on") {
  CHECK(rank() != 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("one rank fails a requirement while the others wait for it") {
  REQUIRE(rank() != 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("one rank throws while the others wait for it") {
  if (rank() == 1) throw std::runtime_error("thrown by rank 1");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("one rank crashes while the others wait for it") {
  if (rank() == 1) std::raise(SIGSEGV);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("one rank never comes") {
  if (rank() == 1) MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}
