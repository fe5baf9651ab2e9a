// Deferred release of contexts. Ranks release the contexts that they share in any order, and no release waits for
// another rank. What a context shares (communicators, memory that others have mapped) stays until all its ranks have
// released it.
#pragma once

#include <memory>

namespace tasuki {

class Pending;
class Runtime;

/// A context's state, which its last handle releases.
std::shared_ptr<Runtime> owned(std::unique_ptr<Runtime> context);

/// Destroys the contexts that this thread (of those over MPI, any thread) and all other ranks have released, and those
/// of which a rank has died or given up, except those that use GPUs. Called where contexts are made.
void collect_released() noexcept;
/// The same for all of them. Only where the caller frees or allocates GPU memory anyway: CUDA frees memory when the
/// kernels on the GPU have ended, and a kernel may wait for a rank that waits for the caller.
void collect_released_with_gpus() noexcept;
/// The same for the contexts of ranks that were threads of this process and have ended.
void collect_released_of_threads() noexcept;
/// The number of contexts over MPI that this process has released and that wait for other ranks.
int deferred_releases();
/// Waits until the other ranks have released what this process has, and destroys it: contexts over MPI, or those of
/// this thread, which is a rank. Returns also when a rank has died or given up; a line on stderr says so.
void await_releases() noexcept;
void await_releases_of_this_thread() noexcept;
/// Waits for the other ranks of a context. False if one has died or given up; a line on stderr says so.
bool have_left(Runtime& context, Pending& others) noexcept;

/// Called when a context has been released. If no other is in use: writes the trace, and finalises MPI if Tasuki has
/// started it, for which the other ranks are waited for.
void end_session() noexcept;
/// Called when MPI_Finalize begins. Contexts that are still held are announced as released too, so that ranks need not
/// release theirs alike.
void end_with_mpi() noexcept;

}  // namespace tasuki
