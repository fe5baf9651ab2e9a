// See gpu_work.hpp. Compiled without fused multiplications and additions (CMakeLists.txt).
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>

#include "gpu_work.hpp"
#include "tasuki/error.hpp"

namespace tasuki::xmp {

namespace {

constexpr int kThreads = 256;
constexpr int kTile = 16;
constexpr std::int64_t kMostBlocks = 1 << 15;

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // so that it is not the next call's
  throw Error(ErrorKind::system, fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

unsigned blocks_for(std::int64_t count, int each) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + each - 1) / each, 1, kMostBlocks));
}

// Two parts as C stores them. Its product has no cases of its own for what is not finite.
template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;
};
template <class T>
__device__ T zero(T /*type*/) {
  return T(0);
}
template <class T>
__device__ Complex<T> zero(Complex<T> /*type*/) {
  return {T(0), T(0)};
}
template <class T>
__device__ T plus_product(T sum, T a, T b) {
  return sum + a * b;
}
template <class T>
__device__ Complex<T> plus_product(Complex<T> sum, Complex<T> a, Complex<T> b) {
  return {sum.re + (a.re * b.re - a.im * b.im), sum.im + (a.re * b.im + a.im * b.re)};
}

__global__ void fill_kernel(unsigned char* to, Element with, std::int64_t bytes) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const auto* const from = reinterpret_cast<const unsigned char*>(with.value);
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step)
    to[i] = from[i % with.bytes];
}

template <class T>
__global__ void take_best_kernel(Gathered in, Chosen what) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < in.count; i += step)
    take_best_at<T>(in, what, i);
}

// A thread an element of the result; a block a tile of it, and after it those that are as many tiles away as the grid
// has. Tiles of the factors pass through shared memory.
template <class T>
__global__ void multiply_kernel(T* c, const T* a, const T* b, Extents n, bool more) {
  __shared__ T a_tile[kTile][kTile];
  __shared__ T b_tile[kTile][kTile];
  const int y = static_cast<int>(threadIdx.y);
  const int x = static_cast<int>(threadIdx.x);
  for (std::int64_t row0 = std::int64_t{blockIdx.y} * kTile; row0 < n.rows; row0 += std::int64_t{gridDim.y} * kTile) {
    for (std::int64_t column0 = std::int64_t{blockIdx.x} * kTile; column0 < n.columns;
         column0 += std::int64_t{gridDim.x} * kTile) {
      const std::int64_t row = row0 + y;
      const std::int64_t column = column0 + x;
      const bool mine = row < n.rows && column < n.columns;
      T sum = mine && more ? c[row * n.stride_c + column] : zero(T{});
      for (std::int64_t k0 = 0; k0 < n.inner; k0 += kTile) {
        if (row < n.rows && k0 + x < n.inner) a_tile[y][x] = a[row * n.stride_a + k0 + x];
        if (column < n.columns && k0 + y < n.inner) b_tile[y][x] = b[(k0 + y) * n.stride_b + column];
        __syncthreads();
        const int some = static_cast<int>(n.inner - k0 < kTile ? n.inner - k0 : kTile);
        if (mine)
          for (int k = 0; k < some; ++k) sum = plus_product(sum, a_tile[y][k], b_tile[k][x]);
        __syncthreads();
      }
      if (mine) c[row * n.stride_c + column] = sum;
    }
  }
}

template <class T>
void multiply_as(void* c, const void* a, const void* b, const Extents& n, bool more, Stream stream) {
  const dim3 grid(blocks_for(n.columns, kTile), blocks_for(n.rows, kTile));
  multiply_kernel<T><<<grid, dim3(kTile, kTile), 0, stream>>>(static_cast<T*>(c), static_cast<const T*>(a),
                                                              static_cast<const T*>(b), n, more);
  check(cudaGetLastError(), "the product of matrices");
}

}  // namespace

bool gpu_has(const void* pointer) {
  cudaPointerAttributes what{};
  check(cudaPointerGetAttributes(&what, pointer), "cudaPointerGetAttributes");
  return what.type == cudaMemoryTypeDevice || what.type == cudaMemoryTypeManaged;
}

std::shared_ptr<void> gpu_memory(std::int64_t bytes) {
  void* memory = nullptr;
  if (bytes == 0) return nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc");
  return {memory, [](void* one) { static_cast<void>(cudaFree(one)); }};
}

void gpu_copy(void* to, const void* from, std::int64_t bytes, Stream stream) {
  if (bytes > 0)
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void gpu_copy_rows(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch, std::int64_t bytes,
                   std::int64_t rows, Stream stream) {
  if (bytes > 0 && rows > 0)
    check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_pitch), from, static_cast<std::size_t>(from_pitch),
                            static_cast<std::size_t>(bytes), static_cast<std::size_t>(rows), cudaMemcpyDefault, stream),
          "cudaMemcpy2DAsync");
}

void gpu_fill(void* to, const Element& with, std::int64_t count, Stream stream) {
  const std::int64_t bytes = count * with.bytes;
  if (bytes == 0) return;
  fill_kernel<<<blocks_for(bytes, kThreads), kThreads, 0, stream>>>(static_cast<unsigned char*>(to), with, bytes);
  check(cudaGetLastError(), "the beginning of a reduction");
}

void gpu_take_best(const Gathered& in, const Chosen& what, Stream stream) {
  if (in.count == 0) return;
  const bool known = with_ordered(in.type, [&](auto type) {
    take_best_kernel<decltype(type)><<<blocks_for(in.count, kThreads), kThreads, 0, stream>>>(in, what);
    check(cudaGetLastError(), "the choice of the best value");
  });
  if (!known) throw Error(fmt::format("values of type {} have no order", to_string(in.type)));
}

void gpu_multiply(DType type, void* c, const void* a, const void* b, const Extents& n, bool more, Stream stream) {
  if (n.rows == 0 || n.columns == 0) return;
  switch (type) {
    case DType::i32:
    case DType::u32:
      return multiply_as<std::uint32_t>(c, a, b, n, more, stream);
    case DType::i64:
    case DType::u64:
      return multiply_as<std::uint64_t>(c, a, b, n, more, stream);
    case DType::f32:
      return multiply_as<float>(c, a, b, n, more, stream);
    case DType::f64:
      return multiply_as<double>(c, a, b, n, more, stream);
    case DType::c64:
      return multiply_as<Complex<float>>(c, a, b, n, more, stream);
    case DType::c128:
      return multiply_as<Complex<double>>(c, a, b, n, more, stream);
    default:
      throw Error(fmt::format("of elements of type {} there is no product", to_string(type)));
  }
}

}  // namespace tasuki::xmp
