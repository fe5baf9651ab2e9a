// Ranks that are threads: one process that drives several GPUs, or works on several cores, without MPI.
#pragma once

#include <functional>

#include "tasuki/context.hpp"

namespace tasuki {

/// Runs `body` in `ranks` threads of this process, each of them one rank of a context that is made for them, and
/// returns when all have ended. Everything else is as with processes: objects are made collectively, in the same order
/// in all threads; a context and what is made with it belong to their thread. MPI need not be running and is not used:
/// the paths are those inside a host (`shared`, `peer`) and `nccl`; all ranks are on this host, which TASUKI_ISLAND may
/// cut.
///
/// On GPUs every thread drives one: the one that it has selected before its first use of Tasuki's GPU memory, else GPU
/// `rank % count`. Two ranks cannot share a GPU. CUDA may hold up calls that free GPU memory until other threads'
/// kernels have ended, so destroy operations only when no rank waits for another.
///
/// If `body` throws on a rank, waits on the others end with an error that says so; when all threads have ended, what
/// the first rank that failed has thrown is thrown here. Throws `Error` if `ranks` is not between 1 and 1024. Not with
/// TASUKI_TRACE.
void run_threads(int ranks, const std::function<void(const Context&)>& body);

}  // namespace tasuki
