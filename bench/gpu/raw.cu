// Bounds for one contiguous piece from GPU to GPU or inside one: `raw store`, a kernel written for just that which says
// when it may come and when it is there, and `raw copy`, the copy engine, which says neither.
#include <mpi.h>

#include <algorithm>
#include <optional>

#include "gpu/device_memory.cuh"
#include "gpu/ipc.hpp"
#include "gpu/problem.hpp"

namespace bench {
namespace {

constexpr unsigned kThreads = 512;
constexpr int kUnits = 4;                         // of 16 bytes if possible, that a thread has on the way
constexpr std::int64_t kMostRemote = 128;         // blocks: all find room at once
constexpr std::int64_t kMostLocal = 132 * 16;     // blocks where nobody waits for anybody
constexpr std::uint64_t kPatience = 10000000000;  // ns, after which the check will find wrong bytes

// What this rank sends, from `from` to `to` (null: nothing), and the words by which it and its partners tell each
// other. Null where there is no partner. Waiting is for words in this GPU's memory.
struct Exchange {
  const std::byte* from;
  std::byte* to;
  std::int64_t bytes;
  std::uint64_t* ready_there;  // at the one that writes here
  const std::uint64_t* ready_here;
  std::uint64_t* arrived_there;  // at the one that is written to
  const std::uint64_t* arrived_here;
};

__device__ std::uint64_t now() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ void await(const std::uint64_t* word, std::uint64_t target) {
  std::uint64_t begin = 0;
  for (unsigned polls = 0;; ++polls) {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    if (value >= target) return;
    if (polls % 1024 != 0) continue;
    if (begin == 0) begin = now();
    if (now() - begin > kPatience) return;
  }
}

template <class Unit>
__global__ void __launch_bounds__(kThreads) store(Exchange x, std::uint64_t epoch, std::uint64_t blocks_there) {
  const bool first = threadIdx.x == 0 && blockIdx.x == 0;
  if (first && x.ready_there != nullptr) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(x.ready_there), "l"(epoch) : "memory");
  }
  if (x.to != nullptr) {
    if (threadIdx.x == 0 && x.ready_here != nullptr) await(x.ready_here, epoch);
    __syncthreads();
    const std::int64_t units = x.bytes / static_cast<std::int64_t>(sizeof(Unit));
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
    const auto* const from = reinterpret_cast<const Unit*>(x.from);
    auto* const to = reinterpret_cast<Unit*>(x.to);
    for (std::int64_t n = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; n < units;
         n += kUnits * step) {
      Unit value[kUnits];
#pragma unroll
      for (int j = 0; j < kUnits; ++j) {
        if (n + j * step < units) value[j] = from[n + j * step];
      }
#pragma unroll
      for (int j = 0; j < kUnits; ++j) {
        if (n + j * step < units) to[n + j * step] = value[j];
      }
    }
    if (x.arrived_there != nullptr) {
      __syncthreads();
      if (threadIdx.x == 0) {
        asm volatile("red.release.sys.add.u64 [%0], %1;" ::"l"(x.arrived_there), "l"(std::uint64_t{1}) : "memory");
      }
    }
  }
  if (first && x.arrived_here != nullptr) await(x.arrived_here, epoch * blocks_there);
}

std::int64_t blocks_for(std::int64_t bytes, bool remote) {
  const std::int64_t wanted = (bytes + 16 * kUnits * kThreads - 1) / (16 * kUnits * kThreads);
  return std::clamp<std::int64_t>(wanted, 1, remote ? kMostRemote : kMostLocal);
}

// The contiguous pieces of a case, at most one out and one in; nothing if it is no such case. Collective.
struct Pieces {
  std::optional<GpuMove> out;
  std::optional<GpuMove> in;
};
std::optional<Pieces> pieces_of(const GpuCase& problem) {
  Pieces pieces;
  bool simple = true;
  const int me = problem.context.rank();
  for (const GpuMove& move : problem.moves) {
    const tasuki::FieldBase& field = problem.fields[static_cast<std::size_t>(move.field)];
    simple = simple && rows_of(field, move.from).contiguous() && rows_of(field, move.to).contiguous();
    if (move.source == me) {
      simple = simple && !pieces.out;
      pieces.out = move;
    }
    if (move.target == me) {
      simple = simple && !pieces.in;
      pieces.in = move;
    }
  }
  if (!everywhere(problem.context, simple)) return std::nullopt;
  return pieces;
}

// Where a piece goes from and to, with the other ranks' fields open in this process.
class RawRunner : public Runner {
 public:
  RawRunner(const GpuCase& problem, const Pieces& pieces) : problem_(problem), stream_(gpu_stream(problem.context)) {
    for (const tasuki::FieldBase& field : problem.fields)
      fields_.emplace_back(problem.context, field.raw(problem.copy));
    if (!pieces.out) return;
    const GpuMove& out = *pieces.out;
    const auto f = static_cast<std::size_t>(out.field);
    const GpuRows from = rows_of(problem.fields[f], out.from);
    from_ = fields_[f].of(out.source) + from.offset;
    to_ = fields_[f].of(out.target) + rows_of(problem.fields[f], out.to).offset;
    bytes_ = from.bytes();
  }

 protected:
  GpuCase problem_;
  cudaStream_t stream_;
  std::vector<PeerMemory> fields_;
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  std::int64_t bytes_ = 0;
};

class RawCopy : public RawRunner {
 public:
  using RawRunner::RawRunner;
  void start() override {
    if (to_ != nullptr) {
      TASUKI_CUDA(cudaMemcpyAsync, to_, from_, static_cast<std::size_t>(bytes_), cudaMemcpyDefault, stream_);
    }
  }
  void finish() override { finish_stream(problem_.context); }
};

class RawStore : public RawRunner {
 public:
  RawStore(const GpuCase& problem, const Pieces& pieces)
      : RawRunner(problem, pieces), words_(words()), all_words_(problem.context, words_.get()) {
    const int me = problem.context.rank();
    x_.from = from_;
    x_.to = to_;
    x_.bytes = bytes_;
    const bool out = pieces.out && pieces.out->target != me;
    const bool in = pieces.in && pieces.in->source != me;
    if (out) {
      x_.ready_here = word(me, kReady);
      x_.arrived_there = word(pieces.out->target, kArrived);
    }
    if (in) {
      x_.ready_there = word(pieces.in->source, kReady);
      x_.arrived_here = word(me, kArrived);
      blocks_there_ = static_cast<std::uint64_t>(blocks_for(bytes_of(*pieces.in), true));
    }
    blocks_ = static_cast<unsigned>(blocks_for(bytes_, out));
    runs_ = pieces.out || pieces.in;
    unit_ = reinterpret_cast<std::uintptr_t>(from_) | reinterpret_cast<std::uintptr_t>(to_) |
            static_cast<std::uintptr_t>(bytes_);
    MPI_Barrier(problem.context.comm());  // everybody's words are 0 from here on
  }

  void start() override {
    if (!runs_) return;
    ++epoch_;
    if (unit_ % 16 == 0) {
      store<uint4><<<blocks_, kThreads, 0, stream_>>>(x_, epoch_, blocks_there_);
    } else if (unit_ % 8 == 0) {
      store<std::uint64_t><<<blocks_, kThreads, 0, stream_>>>(x_, epoch_, blocks_there_);
    } else if (unit_ % 4 == 0) {
      store<std::uint32_t><<<blocks_, kThreads, 0, stream_>>>(x_, epoch_, blocks_there_);
    } else {
      store<std::uint8_t><<<blocks_, kThreads, 0, stream_>>>(x_, epoch_, blocks_there_);
    }
    TASUKI_CUDA(cudaGetLastError);
  }
  void finish() override { finish_stream(problem_.context); }

 private:
  enum Word { kReady, kArrived, kWords };
  static constexpr std::size_t kLine = 128;  // bytes from word to word

  // Zeroed, and kept to the end of the process: others may have them open longer than this runner lives.
  static DeviceMemory words() {
    static const auto* const memory = new DeviceMemory(device_memory(kWords * kLine));
    TASUKI_CUDA(cudaMemset, memory->get(), 0, kWords * kLine);
    TASUKI_CUDA(cudaStreamSynchronize, nullptr);
    return *memory;
  }
  std::uint64_t* word(int rank, Word which) const {
    return reinterpret_cast<std::uint64_t*>(all_words_.of(rank) + which * kLine);
  }
  std::int64_t bytes_of(const GpuMove& move) const {
    return rows_of(problem_.fields[static_cast<std::size_t>(move.field)], move.from).bytes();
  }

  DeviceMemory words_;
  PeerMemory all_words_;
  Exchange x_{};
  std::uint64_t blocks_there_ = 0;
  unsigned blocks_ = 1;
  bool runs_ = false;
  std::uintptr_t unit_ = 0;
  std::uint64_t epoch_ = 0;
};

template <class R>
Peer raw_peer(const std::string& name, bool silent) {
  Peer peer = gpu_peer(name, [name](const GpuCase& problem) -> RunnerPtr {
    const auto pieces = pieces_of(problem);
    if (!pieces) return nullptr;
    return unless_left_out(problem, name, [&] { return std::make_unique<R>(problem, *pieces); });
  });
  peer.silent = silent;
  return peer;
}

const RegisterPeer kStore(raw_peer<RawStore>("raw store", false));
const RegisterPeer kCopy(raw_peer<RawCopy>("raw copy", true));

}  // namespace
}  // namespace bench
