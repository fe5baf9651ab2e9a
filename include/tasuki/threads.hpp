// Ranks that are threads: one process that drives several GPUs, or works on several cores, without MPI.
#pragma once

#include <functional>

#include "tasuki/context.hpp"

namespace tasuki {

/// Runs `body` in `ranks` threads of this process, each of them one rank of a context that is made for them, and
/// returns when all have ended. Everything else is as with processes: objects are made collectively, in the same order
/// in all threads; a context and what is made with it belong to their thread. MPI need not be running and is not used.
/// The paths are those inside a host (`shared`, `peer`) and `nccl`. All ranks are on this host; TASUKI_ISLAND may cut
/// it into islands.
///
/// Every thread drives one GPU: the one that it selected before its first use of Tasuki's GPU memory, else GPU
/// `rank % count`. Two ranks cannot share a GPU. CUDA may block calls that free GPU memory until the kernels of other
/// threads have ended, so destroy operations only when no rank waits for another.
///
/// If `body` throws on a rank, waits on the others end with an error that says so. When all threads have ended, this
/// function throws what the first rank that failed had thrown. Throws `Error` if `ranks` is not between 1 and 1024, and
/// if TASUKI_TRACE is set.
void run_threads(int ranks, const std::function<void(const Context&)>& body);

}  // namespace tasuki
