// Notices forks (pthread_atfork) and MPI_Finalize (an attribute of MPI_COMM_SELF), so that calls need not ask.
#include "session/generation.hpp"

#include <mpi.h>
#include <pthread.h>

#include "session/deferred_release.hpp"
#include "session/mpi.hpp"
#include "session/worker.hpp"

namespace tasuki {

void Generation::count_fork() {
  number.fetch_add(kFork, std::memory_order_relaxed);
}

/// Called when MPI_Finalize begins: it deletes the attributes of MPI_COMM_SELF before it does anything else. The
/// progress thread may be in a call of MPI, and has to withdraw messages of epochs that are active. Both must end
/// before MPI does.
struct EndOfMpi {
  static int begins(MPI_Comm, int, void*, void*) {
    if (!Generation::forked()) end_with_mpi();
    Generation::number.fetch_or(1, std::memory_order_relaxed);
    if (!Generation::forked()) Worker::instance().last_round();  // in a forked child the thread is the parent's
    return MPI_SUCCESS;
  }
  EndOfMpi() {
    int key = MPI_KEYVAL_INVALID;
    mpi::Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &EndOfMpi::begins, &key, nullptr);
    mpi::Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  }
};

std::uint32_t Generation::enter(bool mpi) {
  static const int forks = pthread_atfork(nullptr, nullptr, &Generation::count_fork);
  (void)forks;
  if (mpi) static const EndOfMpi end;
  return now();
}

}  // namespace tasuki
