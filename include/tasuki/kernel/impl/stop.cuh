// Stop: how the host ends what its kernels wait for. Part of tasuki/kernel.cuh.
//
// The host's word lies in host memory, because a CUDA call may wait for the very kernels that are to end. A GPU loads
// it over PCIe. When every waiting warp of a launch did so, kernels that wait for each other took a millisecond a step,
// as if the loads came one after the other, 3 us each; while a thread waits for its load it does not see that its data
// have come. So one thread of the GPU loads the word, and then no thread does for `kStopNs`.
#pragma once

#include "tasuki/kernel/impl/words.cuh"

namespace tasuki::device {

/// What waiting kernels of a rank look at. Its members are Tasuki's own.
struct Stop {
  const unsigned* requested;  // in host memory: the host stores 1 to end all waits
  Word* looked;               // in the GPU's memory: when a thread has last looked at it, by `now_ns`
};

namespace detail {

constexpr Word kStopNs = 10'000;  // from one look to the next

/// Whether this thread has found, at time `now` in ns, that the host ends all waits. False also where it has not
/// looked, because another thread has within `kStopNs`. A caller that gets true must set the word that says that
/// something has failed, for the other threads.
TASUKI_DEVICE bool stop_requested(const Stop& stop, Word now) {
  const Word looked = load_relaxed_gpu(stop.looked);
  if (now < looked + kStopNs) return false;
  if (!replace_gpu(stop.looked, looked, now)) return false;  // another thread looks
  return load_relaxed(stop.requested) != 0;
}

}  // namespace detail
}  // namespace tasuki::device
