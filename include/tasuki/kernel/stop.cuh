// Stop: how the host ends what its kernels wait for. Part of tasuki/kernel.cuh.
//
// The host's word lies in host memory, because a CUDA call may wait for the very kernels that are to end. A GPU loads
// it over PCIe, and loads of one address go there one after the other, a few microseconds each. If every waiting warp
// of a launch loaded it, the last would get its answer after a millisecond, and until then would not see that what it
// waits for has long come. Those that wait for it would load the word in turn, and so on. So one thread of the GPU
// loads it, and nobody else for some time.
#pragma once

#include "tasuki/kernel/words.cuh"

namespace tasuki::device {

/// What waiting kernels of a rank look at. Its members are Tasuki's own.
struct Stop {
  const unsigned* told;  // by the host, in its memory: not 0 when all waits are to end
  Word* looked;          // in the GPU's memory: when a thread has last looked at it, by `now_ns`
};

namespace detail {

constexpr Word kStopNs = 10'000;  // from one look to the next

/// Whether the host has told the kernels to give up, as far as this thread finds out at time `now`. To whomever it is
/// true, that thread passes it on to the others, by the word that says that something has failed.
TASUKI_DEVICE bool told_to_stop(const Stop& stop, Word now) {
  const Word looked = load_relaxed_gpu(stop.looked);
  if (now < looked + kStopNs) return false;
  if (!replace_gpu(stop.looked, looked, now)) return false;  // another thread looks
  return load_relaxed(stop.told) != 0;
}

}  // namespace detail
}  // namespace tasuki::device
