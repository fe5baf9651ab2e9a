// The fields of a case: the stream that all work on them is in, filling them, and finding what is wrong in them.
#include <mpi.h>

#include "gpu/device_memory.cuh"
#include "gpu/problem.hpp"
#include "gpu/values.cuh"

namespace bench {
namespace {

constexpr unsigned kThreads = 256;

// The first wrong cell that a thread found, and how many there are.
struct Wrong {
  unsigned long long count;
  std::int64_t cell;
  std::int32_t field;
  std::int32_t source;  // rank whose value should have come; -1: none should
  std::uint64_t got;
  std::uint64_t expected;
};

__device__ void complain(Wrong* wrong, std::int64_t cell, int field, int source, std::uint64_t got,
                         std::uint64_t expected) {
  if (atomicAdd(&wrong->count, 1ull) != 0) return;
  wrong->cell = cell;
  wrong->field = field;
  wrong->source = source;
  wrong->got = got;
  wrong->expected = expected;
}

// All cells of a field that lie in memory, the shadow included.
template <class Word>
__global__ void fill(Word* data, std::int64_t cells, std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; n < cells; n += step) {
    data[n] = value_of<Word>(seed, n);
  }
}

// A box that has received: compares it, and fills it again as it was before the exchange.
template <class Word>
__global__ void check_received(Word* data, CellBox from, CellBox to, std::uint64_t seed_there, std::uint64_t seed_here,
                               int field, int source, Wrong* wrong) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; n < to.cells(); n += step) {
    const std::int64_t cell = to.at(n);
    const Word expected = value_of<Word>(seed_there, from.at(n));
    const Word got = data[cell];
    if (got != expected) complain(wrong, cell, field, source, got, expected);
    data[cell] = value_of<Word>(seed_here, cell);
  }
}

template <class Word>
__global__ void check_unchanged(const Word* data, std::int64_t cells, std::uint64_t seed, int field, Wrong* wrong) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; n < cells; n += step) {
    const Word expected = value_of<Word>(seed, n);
    if (data[n] != expected) complain(wrong, n, field, -1, data[n], expected);
  }
}

unsigned blocks_for(std::int64_t cells) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t wanted = (cells + kThreads - 1) / kThreads;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > kMost ? kMost : wanted);
}

CellBox cells_of(const tasuki::FieldBase& field, const GpuBox& box) {
  CellBox cells{};
  for (std::size_t d = 0; d < 3; ++d) {
    cells.lo[d] = box.lo[d];
    cells.extent[d] = box.extent[d];
    cells.stride[d] = field.strides()[d];
  }
  return cells;
}

// Calls `f` with the memory of a copy of the field as words of the size of its elements.
template <class F>
void as_words(const tasuki::FieldBase& field, int copy, F&& f) {
  if (field.element_bytes() == 4) return f(reinterpret_cast<std::uint32_t*>(field.raw(copy)));
  if (field.element_bytes() == 8) return f(reinterpret_cast<std::uint64_t*>(field.raw(copy)));
  throw tasuki::Error("a field of elements of " + std::to_string(field.element_bytes()) +
                      " bytes is not foreseen here; they may have 4 or 8");
}

std::string cell_name(const tasuki::FieldBase& field, std::int64_t cell) {
  std::string name;
  for (std::size_t d = 0; d < 3; ++d) {
    name += (d == 0 ? "(" : ", ") + std::to_string(cell / field.strides()[d]);
    cell %= field.strides()[d];
  }
  return name + ")";
}

}  // namespace

tasuki::Stream gpu_stream(const tasuki::Context& context) {
  static const cudaStream_t stream = [&context] {
    // Tasuki's own run time has done so already; this one has its own idea of the current device.
    TASUKI_CUDA(cudaSetDevice, tasuki::use_gpu(context));
    cudaStream_t made = nullptr;
    TASUKI_CUDA(cudaStreamCreateWithFlags, &made, cudaStreamNonBlocking);
    return made;
  }();
  return stream;
}

void fill_fields(const GpuCase& problem, int round) {
  const cudaStream_t stream = gpu_stream(problem.context);
  for (int f = 0; f < static_cast<int>(problem.fields.size()); ++f) {
    const tasuki::FieldBase& field = problem.fields[static_cast<std::size_t>(f)];
    const std::int64_t cells = field.bytes() / field.element_bytes();
    as_words(field, problem.copy, [&](auto* data) {
      fill<<<blocks_for(cells), kThreads, 0, stream>>>(data, cells, seed_of(problem.context.rank(), f, round));
    });
    TASUKI_CUDA(cudaGetLastError);
  }
}

std::string wrong_in_fields(const GpuCase& problem, int round) {
  static const DeviceMemory memory = device_memory(sizeof(Wrong));
  auto* const wrong = reinterpret_cast<Wrong*>(memory.get());
  const cudaStream_t stream = gpu_stream(problem.context);
  const int me = problem.context.rank();
  TASUKI_CUDA(cudaMemsetAsync, wrong, 0, sizeof(Wrong), stream);
  for (const GpuMove& move : problem.moves) {
    if (move.target != me) continue;
    const tasuki::FieldBase& field = problem.fields[static_cast<std::size_t>(move.field)];
    const CellBox to = cells_of(field, move.to);
    as_words(field, problem.copy, [&](auto* data) {
      check_received<<<blocks_for(to.cells()), kThreads, 0, stream>>>(
          data, cells_of(field, move.from), to, seed_of(move.source, move.field, round), seed_of(me, move.field, round),
          move.field, move.source, wrong);
    });
    TASUKI_CUDA(cudaGetLastError);
  }
  for (int f = 0; f < static_cast<int>(problem.fields.size()); ++f) {
    const tasuki::FieldBase& field = problem.fields[static_cast<std::size_t>(f)];
    const std::int64_t cells = field.bytes() / field.element_bytes();
    as_words(field, problem.copy, [&](auto* data) {
      check_unchanged<<<blocks_for(cells), kThreads, 0, stream>>>(data, cells, seed_of(me, f, round), f, wrong);
    });
    TASUKI_CUDA(cudaGetLastError);
  }
  Wrong found{};
  TASUKI_CUDA(cudaMemcpyAsync, &found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream);
  finish_stream(problem.context);
  if (found.count == 0) return {};
  const std::string should =
      found.source < 0 ? "which nobody should write" : "from rank " + std::to_string(found.source);
  return "field " + std::to_string(found.field) + ", local cell " +
         cell_name(problem.fields[static_cast<std::size_t>(found.field)], found.cell) + ", " + should + ": bits " +
         std::to_string(found.got) + " instead of " + std::to_string(found.expected) + "; " +
         std::to_string(found.count) + " cells are wrong";
}

}  // namespace bench
