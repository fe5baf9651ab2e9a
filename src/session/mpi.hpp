// Small helpers for calling MPI: every return code is looked at, and nothing is called after MPI has ended.
#pragma once

#include <mpi.h>

#include <string>

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {

inline std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error code {}", code);
  return text;
}

[[noreturn]] inline void mpi_failed(int code, const char* call) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  throw Error(fmt::format("rank {}: {} failed: {}", rank, call, mpi_error_text(code)));
}

/// Throws `Error` with the rank in MPI_COMM_WORLD, the call's name and MPI's text, unless `code` is MPI_SUCCESS.
inline void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) mpi_failed(code, call);
}

/// True between MPI_Init and MPI_Finalize: destructors ask this before they call MPI.
inline bool mpi_running() {
  int started = 0;
  int ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

}  // namespace tasuki
