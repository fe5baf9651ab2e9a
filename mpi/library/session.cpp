// See session.hpp. The calls of MPI's beginning and end are taken over here.
#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "comms.hpp"
#include "hook.hpp"
#include "known.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "ring.hpp"

namespace tasuki::mpi {

namespace {

Session one;
enum class Phase : int { before, runs, over };
std::atomic<Phase> phase{Phase::before};
std::mutex beginning;

double cached_copy_ns() {
  constexpr std::size_t kBytes = 64 << 10;
  std::vector<char> from(kBytes, 1), to(kBytes);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    asm volatile("" : : "r"(to.data()) : "memory");
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return best / kBytes;
}

void read_layers() {
  const char* named = std::getenv("TASUKI_MPI_LAYERS");
  if (named == nullptr) return;
  one.spelling = one.packing = one.ring = false;
  const std::string all = named;
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find(',', at), all.size());
    const std::string layer = all.substr(at, end - at);
    if (layer == "spelling")
      one.spelling = true;
    else if (layer == "packing")
      one.packing = true;
    else if (layer == "ring")
      one.ring = true;
    else if (layer != "none")
      std::fprintf(
          stderr,
          "tasuki: MPI library: TASUKI_MPI_LAYERS names '%s'; give none, or some of spelling, packing and ring "
          "with commas between them\n",
          layer.c_str());
    at = end + 1;
  }
}

}  // namespace

const Session& session() {
  return one;
}

bool session_runs() {
  const Phase now = phase.load(std::memory_order_acquire);
  if (now == Phase::runs) return true;
  if (now == Phase::over) return false;
  begin_session();
  return phase.load(std::memory_order_acquire) == Phase::runs;
}

void begin_session() {
  const std::scoped_lock lock(beginning);
  int initialised = 0, finalised = 0;
  if (phase.load() != Phase::before || PMPI_Initialized(&initialised) != MPI_SUCCESS || !initialised) return;
  if (PMPI_Finalized(&finalised) != MPI_SUCCESS || finalised) return;
  if (PMPI_Comm_dup(MPI_COMM_SELF, &one.own) != MPI_SUCCESS) return;
  PMPI_Comm_set_errhandler(one.own, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(MPI_COMM_WORLD, &one.world_rank);
  read_layers();
  const char* always = std::getenv("TASUKI_MPI_ALWAYS");
  one.always = always != nullptr && std::strcmp(always, "0") != 0;
  one.copy_ns = cached_copy_ns();
  begin_types();
  begin_report();
  begin_peers();
  if (ring_runs()) begin_comms();
  phase.store(Phase::runs, std::memory_order_release);
}

void end_session() {
  if (phase.load() != Phase::runs) return;
  end_requests();
  end_report();
  phase.store(Phase::over, std::memory_order_release);
  end_comms();
  end_peers();
  end_types();
  PMPI_Comm_free(&one.own);
}

}  // namespace tasuki::mpi

using namespace tasuki::mpi;

HOOK int tasuki_MPI_Init(int* argc, char*** argv) {
  const int status = PMPI_Init(argc, argv);
  if (status == MPI_SUCCESS) begin_session();
  return status;
}

HOOK int tasuki_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  if (status == MPI_SUCCESS) begin_session();
  return status;
}

HOOK int tasuki_MPI_Finalize() {
  end_session();
  return PMPI_Finalize();
}
