// Departures: parts of contexts (subsets) that this rank has released while other ranks may still use them. Ranks
// release parts in any order, so a release does not wait. What a part shares stays until all its ranks have released
// it.
#pragma once

namespace tasuki {

class Runtime;

/// Releases a part. It is destroyed at once if all its ranks have released it, and otherwise in a later call of one of
/// the functions below. Waits for the other ranks if nothing else of Tasuki is left in this process, except among
/// threads.
void depart(Runtime* part) noexcept;

/// Destroys the parts that this thread and all other ranks have released, except those that use GPUs.
void collect_departures() noexcept;
/// The same for all of them. Only where the caller frees or allocates GPU memory anyway: CUDA frees memory when the
/// kernels on the GPU have ended, and a kernel may wait for a rank that waits for the caller.
void collect_departures_with_gpus() noexcept;
/// The same for the parts of ranks that were threads of this process and have ended.
void collect_departures_of_threads() noexcept;
/// The number of parts over MPI that wait for other ranks.
int departing();
/// Waits for their other ranks, and destroys them.
void await_departures() noexcept;

/// If no context is left: writes the trace, and finalises MPI if Tasuki has started it.
void end_session();

}  // namespace tasuki
