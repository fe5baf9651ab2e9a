// Engine `stream`: for operations on GPU memory. An epoch is one kernel in the caller's stream (or two: start and
// wait), which runs the lowered plan (gpu_program.hpp). The epoch's number lives on the GPU, so that a captured graph
// can be replayed.
#include <atomic>
#include <cstring>

#include "engines/engine.hpp"
#include "engines/gpu_program.hpp"
#include "tasuki/cuda.cuh"
#include "topology/gpu_memory.hpp"

namespace tasuki {
namespace {

constexpr unsigned kPollsPerLook = 256;  // polls between two looks at the clock and at the abort word

// What lasts from epoch to epoch.
struct State {
  std::uint64_t epoch;     // the last that has ended
  std::uint32_t finished;  // blocks of the running kernel
  std::uint32_t failed;
};

// Where a wait that gives up says so; in host memory.
struct Failure {
  std::uint32_t set;
  std::int32_t command;
  std::uint64_t epoch;
  std::uint64_t value;
  std::uint64_t target;
};

struct Launch {
  const GpuStep* steps;
  const GpuCopy* copies;
  const GpuDim* dims;
  const GpuPlace* places;
  const std::int32_t* deps;
  const GpuLane* lanes;
  const GpuBlock* blocks;
  std::int32_t lane_count;
  std::int32_t parts;
  std::uint64_t selection;  // bit p: the copy of pair p
  std::uint64_t patience;   // ns
  State* state;
  std::uint32_t* arrived;  // per step: blocks of its lane that have got there
  std::uint64_t* done;     // per step: epoch in which it last ended
  Failure* failure;
  const std::uint32_t* abort;
};

__device__ std::uint64_t now_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ std::uint64_t load_acquire(const std::uint64_t* p) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}

__device__ void store_release(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

__device__ bool failed(const Launch& l) {
  return *static_cast<volatile std::uint32_t*>(&l.state->failed) != 0;
}

// Polls until the counter has reached `target`. False if nobody can be waited for any longer.
__device__ bool await(const Launch& l, const std::uint64_t* counter, std::uint64_t target, const GpuStep& step,
                      std::uint64_t epoch) {
  if (load_acquire(counter) >= target) return true;
  const std::uint64_t begin = now_ns();
  for (unsigned polls = 1;; ++polls) {
    if (load_acquire(counter) >= target) return true;
    if (polls % kPollsPerLook != 0) continue;
    if (failed(l)) return false;
    const bool told = *static_cast<const volatile std::uint32_t*>(l.abort) != 0;
    if (!told && now_ns() - begin < l.patience) continue;
    if (atomicExch(&l.state->failed, 1u) == 0) {
      l.failure->command = step.command;
      l.failure->epoch = epoch;
      l.failure->value = load_acquire(counter);
      l.failure->target = target;
      __threadfence_system();
      *static_cast<volatile std::uint32_t*>(&l.failure->set) = 1;
    }
    return false;
  }
}

__device__ std::uint64_t target_of(const GpuStep& step, std::uint64_t epoch) {
  if (step.verb == Verb::wait) {
    if (epoch > step.lag) {
      epoch -= step.lag;
    } else if (step.credit != 0) {
      return 0;
    } else {
      epoch = 1;
    }
  }
  return (epoch - 1) * step.per_epoch + step.index + 1;
}

__device__ std::byte* base_of(const Launch& l, const GpuPlace& place, std::uint64_t epoch) {
  if (place.copies == 1) return place.base;
  std::uint64_t copy = place.pair >= 0 ? (l.selection >> place.pair) & 1 : 0;
  if (place.takes_turns != 0) copy = (copy + epoch - 1) % place.copies;
  return place.base + static_cast<std::int64_t>(copy) * place.stride;
}

// Where unit n of a copy is, relative to the two bases.
__device__ void locate(const GpuCopy& copy, const GpuDim* dims, std::uint32_t n, std::int64_t& src, std::int64_t& dst) {
  src = copy.src_offset;
  dst = copy.dst_offset;
  for (int d = 0; d + 1 < copy.dims; ++d) {
    const GpuDim dim = dims[d];
    const auto next = static_cast<std::uint32_t>((static_cast<std::uint64_t>(n) * dim.magic) >> dim.shift);
    const std::uint32_t at = n - next * dim.count;
    src += at * dim.src_stride;
    dst += at * dim.dst_stride;
    n = next;
  }
  src += n * dims[copy.dims - 1].src_stride;
  dst += n * dims[copy.dims - 1].dst_stride;
}

// One warp, one tile: all loads go out before the first store.
template <class Unit>
__device__ void move_tile(const GpuCopy& copy, const GpuDim* dims, std::uint32_t first, std::uint32_t units,
                          const std::byte* src, std::byte* dst) {
  Unit value[kTileUnits];
  Unit* to[kTileUnits];
#pragma unroll
  for (int j = 0; j < kTileUnits; ++j) {
    const std::uint32_t n = first + 32 * j;
    to[j] = nullptr;
    if (j >= units || n >= copy.units) continue;
    std::int64_t from_at;
    std::int64_t to_at;
    locate(copy, dims, n, from_at, to_at);
    value[j] = *reinterpret_cast<const Unit*>(src + from_at);
    to[j] = reinterpret_cast<Unit*>(dst + to_at);
  }
#pragma unroll
  for (int j = 0; j < kTileUnits; ++j) {
    if (to[j] != nullptr) *to[j] = value[j];
  }
}

template <class Number>
__device__ void add_tile(const GpuCopy& copy, const GpuDim* dims, std::uint32_t first, std::uint32_t units,
                         const std::byte* src, std::byte* dst) {
  for (std::uint32_t j = 0; j < units; ++j) {
    const std::uint32_t n = first + 32 * j;
    if (n >= copy.units) return;
    std::int64_t from_at;
    std::int64_t to_at;
    locate(copy, dims, n, from_at, to_at);
    Number* to = reinterpret_cast<Number*>(dst + to_at);
    *to = static_cast<Number>(*to + *reinterpret_cast<const Number*>(src + from_at));
  }
}

__device__ void add_tile_of(DType type, const GpuCopy& copy, const GpuDim* dims, std::uint32_t first,
                            std::uint32_t units, const std::byte* src, std::byte* dst) {
  switch (type) {
    case DType::f32:
      return add_tile<float>(copy, dims, first, units, src, dst);
    case DType::f64:
      return add_tile<double>(copy, dims, first, units, src, dst);
    case DType::i8:
    case DType::u8:
      return add_tile<std::uint8_t>(copy, dims, first, units, src, dst);
    case DType::i16:
    case DType::u16:
      return add_tile<std::uint16_t>(copy, dims, first, units, src, dst);
    case DType::i32:
    case DType::u32:
      return add_tile<std::uint32_t>(copy, dims, first, units, src, dst);
    case DType::i64:
    case DType::u64:
      return add_tile<std::uint64_t>(copy, dims, first, units, src, dst);
    case DType::none:
      return;
  }
}

// The tiles of a step that are this warp's.
__device__ void move(const Launch& l, const GpuStep& step, std::uint64_t epoch, std::uint32_t warp,
                     std::uint32_t warps) {
  const std::byte* src = base_of(l, l.places[step.src], epoch);
  std::byte* dst = base_of(l, l.places[step.dst], epoch);
  const GpuCopy* copies = l.copies + step.first_copy;
  for (std::uint32_t tile = warp; tile < step.tiles; tile += warps) {
    int low = 0;
    for (int high = step.copies; high - low > 1;) {
      const int middle = (low + high) / 2;
      (copies[middle].first_tile <= tile ? low : high) = middle;
    }
    const GpuCopy copy = copies[low];
    const GpuDim* dims = l.dims + copy.first_dim;
    const std::uint32_t first = (tile - copy.first_tile) * 32 * step.tile_units + threadIdx.x % 32;
    if (step.verb == Verb::reduce) {
      add_tile_of(step.dtype, copy, dims, first, step.tile_units, src, dst);
      continue;
    }
    switch (copy.log_unit) {
      case 4:
        move_tile<uint4>(copy, dims, first, step.tile_units, src, dst);
        break;
      case 3:
        move_tile<std::uint64_t>(copy, dims, first, step.tile_units, src, dst);
        break;
      case 2:
        move_tile<std::uint32_t>(copy, dims, first, step.tile_units, src, dst);
        break;
      case 1:
        move_tile<std::uint16_t>(copy, dims, first, step.tile_units, src, dst);
        break;
      default:
        move_tile<std::uint8_t>(copy, dims, first, step.tile_units, src, dst);
    }
  }
}

// True for the last of the lane's blocks to get to the step; what they all have stored comes before what it does next.
__device__ bool last_to_arrive(const Launch& l, std::int32_t step, std::uint32_t blocks) {
  __threadfence_system();
  if (blocks == 1) return true;
  if (atomicAdd(&l.arrived[step], 1u) + 1 != blocks) return false;
  l.arrived[step] = 0;
  __threadfence_system();
  return true;
}

__device__ bool deps_ended(const Launch& l, const GpuStep& step, std::uint64_t epoch) {
  for (std::int32_t d = step.first_dep; d < step.first_dep + step.deps; ++d) {
    if (!await(l, &l.done[l.deps[d]], epoch, step, epoch)) return false;
  }
  return true;
}

// A lane that moves data, by all threads of `blocks` blocks.
__device__ void run_lane(const Launch& l, const GpuLane& lane, std::uint32_t block, std::uint64_t epoch) {
  __shared__ bool going;
  const auto blocks = static_cast<std::uint32_t>(lane.blocks[l.parts]);
  const std::uint32_t warp = threadIdx.x / 32 * blocks + block;
  for (std::int32_t s = lane.first; s < lane.last; ++s) {
    const GpuStep& step = l.steps[s];
    if ((step.part & l.parts) == 0) continue;
    if (step.deps > 0 || step.verb == Verb::wait) {
      __syncthreads();
      if (threadIdx.x == 0) {
        going = deps_ended(l, step, epoch) &&
                (step.verb != Verb::wait || await(l, step.counter, target_of(step, epoch), step, epoch));
      }
      __syncthreads();
      if (!going) return;
    }
    if (step.tiles > 0) move(l, step, epoch, warp, blocks * (kGpuThreads / 32));
    if (step.verb == Verb::signal || step.verb == Verb::reduce || step.awaited != 0) __syncthreads();
    if (threadIdx.x == 0 && (step.verb == Verb::signal || step.awaited != 0) && last_to_arrive(l, s, blocks)) {
      if (step.verb == Verb::signal) store_release(step.counter, target_of(step, epoch));
      if (step.awaited != 0) store_release(&l.done[s], epoch);
    }
  }
}

// A lane that moves nothing, by one thread.
__device__ void run_light_lane(const Launch& l, const GpuLane& lane, std::uint64_t epoch) {
  for (std::int32_t s = lane.first; s < lane.last; ++s) {
    const GpuStep& step = l.steps[s];
    if ((step.part & l.parts) == 0) continue;
    if (!deps_ended(l, step, epoch)) return;
    if (step.verb == Verb::wait && !await(l, step.counter, target_of(step, epoch), step, epoch)) return;
    if (step.verb == Verb::signal) store_release(step.counter, target_of(step, epoch));
    if (step.awaited != 0) store_release(&l.done[s], epoch);
  }
}

__global__ void __launch_bounds__(kGpuThreads) run_plan(const __grid_constant__ Launch l) {
  const std::uint64_t epoch = *static_cast<volatile std::uint64_t*>(&l.state->epoch) + 1;
  const GpuBlock block = l.blocks[blockIdx.x];
  if (failed(l)) {
    // Nothing is touched any more; the host will be told.
  } else if (block.lane >= 0) {
    run_lane(l, l.lanes[block.lane], static_cast<std::uint32_t>(block.index), epoch);
  } else {
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < l.lane_count; i += kGpuThreads) {
      if (l.lanes[i].blocks[l.parts] == 0) run_light_lane(l, l.lanes[i], epoch);
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&l.state->finished, 1u) + 1 != gridDim.x) return;
  l.state->finished = 0;
  if ((l.parts & kPartWait) != 0) l.state->epoch = epoch;
}

class StreamEngine final : public Engine {
 public:
  StreamEngine(Executor& executor, Runtime& runtime) : executor_(executor), runtime_(runtime) {
    // Half of the GPU at most: what computes meanwhile needs room too.
    program_ = lower(executor.program(), std::max(1, runtime.gpus->processors() / 2));
    failure_ = {reinterpret_cast<Failure*>(gpu()->allocate_mapped(sizeof(Failure))),
                [](Failure* p) { gpu()->release_mapped(reinterpret_cast<std::byte*>(p)); }};
    upload();
    TASUKI_CUDA(cudaEventCreateWithFlags, &ended_, cudaEventDisableTiming);
  }

  ~StreamEngine() override {
    cudaDeviceSynchronize();  // whatever stream the last kernels are in: they use what is given back now
    cudaEventDestroy(ended_);
  }

  void enqueue(Stream stream, int parts) override {
    complain();
    for (std::size_t p = 0; p < program_.pairs.size(); ++p) {
      const std::uint64_t bit = std::uint64_t{1} << p;
      const bool turns = (turning_ & bit) != 0;
      if (turns && started_) continue;  // the kernel counts from the copy of the first epoch
      launch_.selection = (launch_.selection & ~bit) | (*program_.pairs[p] != 0 ? bit : 0);
    }
    started_ = true;
    launch_.parts = parts;
    launch_.patience = static_cast<std::uint64_t>(std::min(runtime_.deadline, 1e6) * 1e9);
    launch_.blocks = blocks_[parts];
    const auto grid = static_cast<unsigned>(program_.blocks[parts].size());
    run_plan<<<grid, kGpuThreads, 0, stream>>>(launch_);
    check_cuda(cudaGetLastError(), "launching an exchange");
  }

  void start() override {
    enqueue(nullptr, kPartStart | kPartWait);
    TASUKI_CUDA(cudaEventRecord, ended_, nullptr);
  }

  bool test() override {
    const cudaError_t code = cudaEventQuery(ended_);
    if (code == cudaErrorNotReady) return false;
    check_cuda(code, "cudaEventQuery");
    complain();
    return true;
  }

  void stop() override {
    std::atomic_ref<std::uint32_t>(*runtime_.gpus->abort_word()).store(1);
    cudaDeviceSynchronize();
  }

 private:
  template <class T>
  T* place(std::byte*& at, const std::vector<T>& values) {
    T* here = reinterpret_cast<T*>(at);
    if (!values.empty()) gpu()->copy(here, values.data(), static_cast<std::int64_t>(values.size() * sizeof(T)));
    at += room(values.size() * sizeof(T));
    return here;
  }
  static std::int64_t room(std::size_t bytes) { return static_cast<std::int64_t>((bytes + 63) / 64 * 64); }

  void upload() {
    const GpuProgram& p = program_;
    const std::vector<std::uint32_t> arrived(p.steps.size(), 0);
    const std::vector<std::uint64_t> done(p.steps.size(), 0);
    const std::vector<State> state(1);
    std::int64_t total = room(sizeof(State));
    const auto count = [&](const auto& values) { total += room(values.size() * sizeof(values[0])); };
    count(p.steps), count(p.copies), count(p.dims), count(p.places), count(p.deps), count(p.lanes);
    for (int parts = 1; parts < 4; ++parts) count(p.blocks[parts]);
    count(arrived), count(done);
    memory_ = {gpu()->allocate(total), [](std::byte* m) { gpu()->release(m); }};
    std::byte* at = memory_.get();
    launch_.state = place(at, state);
    launch_.steps = place(at, p.steps);
    launch_.copies = place(at, p.copies);
    launch_.dims = place(at, p.dims);
    launch_.places = place(at, p.places);
    launch_.deps = place(at, p.deps);
    launch_.lanes = place(at, p.lanes);
    for (int parts = 1; parts < 4; ++parts) blocks_[parts] = place(at, p.blocks[parts]);
    launch_.arrived = place(at, arrived);
    launch_.done = place(at, done);
    launch_.lane_count = static_cast<std::int32_t>(p.lanes.size());
    launch_.failure = failure_.get();
    launch_.abort = runtime_.gpus->abort_word();
    for (const GpuPlace& place : p.places) {
      if (place.pair >= 0 && place.takes_turns != 0) turning_ |= std::uint64_t{1} << place.pair;
    }
  }

  // Throws if a kernel has given up.
  void complain() {
    if (std::atomic_ref<std::uint32_t>(failure_->set).load() == 0) return;
    const std::string text = describe_failure(executor_.plan(), runtime_, failure_->command, failure_->epoch,
                                              failure_->value, failure_->target);
    runtime_.fail(text);
    throw Error(text);
  }

  Executor& executor_;
  Runtime& runtime_;
  GpuProgram program_;
  std::shared_ptr<Failure> failure_;
  std::shared_ptr<std::byte> memory_;
  GpuBlock* blocks_[4] = {};
  Launch launch_{};
  std::uint64_t turning_ = 0;  // pairs whose copy the kernel counts itself
  bool started_ = false;
  cudaEvent_t ended_ = nullptr;
};

const EngineRegistration registration{"stream", false,
                                      [](Executor& executor, Runtime& runtime) -> std::unique_ptr<Engine> {
                                        return std::make_unique<StreamEngine>(executor, runtime);
                                      },
                                      Memory::device};

}  // namespace
}  // namespace tasuki
