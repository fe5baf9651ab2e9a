// Peers of tasuki-bench-kernel: others whose calls are made inside kernels. Each is there if its headers were found
// when this was built, and its library and the GPUs serve when it runs; else it says why not. On GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tasuki/tasuki.hpp"

namespace peers {

using Word = unsigned long long;

enum class Call { put_with_signal, barrier, all_to_all };

/// One launch. Ranks 0 and 1 play ping-pong by `put_with_signal`, in parts by blocks; a rank alone sends to itself. The
/// others are of all ranks.
struct Launch {
  Word bytes;
  Word rounds;  // in all
  Word warm_up;
  Word first;   // number of the first round: numbers only grow
  Word* times;  // ns of what follows the warm-up, by block
  int blocks;
  int threads;
  tasuki::Stream stream;
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual bool has(Call call) const = 0;
  /// Returns when it has ended. Collective.
  virtual void launch(Call call, const Launch& launch) = 0;
};

struct Made {
  std::unique_ptr<Peer> peer;
  std::string why_not;  // there is none; the same on all ranks
};

/// Of up to `most` bytes by up to `blocks` blocks. Collective, once in a process.
Made nvshmem(const tasuki::Context& context, bool ranks_are_threads, std::size_t most, int blocks);
Made nccl(const tasuki::Context& context, bool ranks_are_threads, std::size_t most, int blocks);

/// What the first rank has to complain about; the same on all ranks. Collective.
std::string agreed(const tasuki::Context& context, const std::string& why_not);
/// Whether two ranks share a GPU, and TASUKI_TEST_SHARED_GPUS does not say that it is meant. Collective.
std::string why_not_shared(const tasuki::Context& context);

/// By a block of a kernel.
#if defined(__CUDACC__)
__device__ inline Word now_ns() {
  Word t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
#endif

}  // namespace peers
