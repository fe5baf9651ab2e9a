// All of Tasuki's calls of MPI go through this file. They use the PMPI_ names, so profilers and interposition libraries
// see the user's communication and not Tasuki's. With TASUKI_PMPI=0 they use the plain names. MPI_Init_thread and
// MPI_Finalize are always called by their plain names, because tools start and stop there.
//
//   mpi::Isend(...)           throws `Error` with the call's name unless it succeeds
//   mpi::calls().Isend(...)   returns MPI's code
#pragma once

#include <mpi.h>

#include <span>
#include <string>

#include "tasuki/error.hpp"

#define TASUKI_MPI_CALLS(X) \
  X(Cancel)                 \
  X(Comm_create_group)      \
  X(Comm_create_keyval)     \
  X(Comm_free)              \
  X(Comm_get_attr)          \
  X(Comm_get_errhandler)    \
  X(Comm_group)             \
  X(Comm_idup)              \
  X(Comm_rank)              \
  X(Comm_set_attr)          \
  X(Comm_set_errhandler)    \
  X(Comm_size)              \
  X(Comm_test_inter)        \
  X(Errhandler_free)        \
  X(Error_string)           \
  X(Finalized)              \
  X(Get_count)              \
  X(Get_library_version)    \
  X(Group_free)             \
  X(Group_incl)             \
  X(Group_translate_ranks)  \
  X(Iallgather)             \
  X(Iallgatherv)            \
  X(Iallreduce)             \
  X(Ibarrier)               \
  X(Improbe)                \
  X(Imrecv)                 \
  X(Initialized)            \
  X(Irecv)                  \
  X(Isend)                  \
  X(Issend)                 \
  X(Query_thread)           \
  X(Recv)                   \
  X(Recv_init)              \
  X(Request_free)           \
  X(Send)                   \
  X(Send_init)              \
  X(Start)                  \
  X(Test)                   \
  X(Testall)

namespace tasuki {

/// Throws `Error` with the rank in MPI_COMM_WORLD, the call's name and MPI's text, unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);
std::string mpi_error_text(int code);

/// True between MPI_Init and MPI_Finalize, in the process that called them. Destructors check it before they call MPI.
bool mpi_running();

namespace mpi {

#define TASUKI_MPI_CALL(name) decltype(&MPI_##name) name;  // NOLINT(bugprone-macro-parentheses)
struct Calls {
  TASUKI_MPI_CALLS(TASUKI_MPI_CALL)
};
#undef TASUKI_MPI_CALL

/// MPI's functions, under the names that TASUKI_PMPI chose at the first call.
const Calls& calls();
/// MPI's functions under their PMPI_ names, or under the plain ones.
const Calls& calls_by(bool profiled);

#define TASUKI_MPI_CALL(name)                            \
  template <class... Arguments>                          \
  void name(Arguments... arguments) {                    \
    check_mpi(calls().name(arguments...), "MPI_" #name); \
  }
TASUKI_MPI_CALLS(TASUKI_MPI_CALL)
#undef TASUKI_MPI_CALL

/// Duplicates `comm`; the duplicate returns errors to the caller. Collective. Throws an `Error` that contains `doing`
/// if a rank is known to have died (`Roster`), or if the other ranks have not called it within `seconds`.
MPI_Comm duplicate(MPI_Comm comm, double seconds, const std::string& doing);

/// Makes a communicator of these ranks of `comm`, numbered in this order; it returns errors to the caller. Only these
/// ranks call it. `tag` must differ from those of concurrent calls by the same ranks. The ranks must have agreed before
/// that all of them call it. MPI blocks in this call. With MPI_THREAD_MULTIPLE a thread of its own makes it, so that an
/// `Error` is thrown if a rank dies meanwhile, or after `seconds`; with less, MPI may block for ever then.
MPI_Comm part(MPI_Comm comm, std::span<const int> ranks, int tag, double seconds);

}  // namespace mpi
}  // namespace tasuki
