// What this library itself runs on this rank's GPU: copies and kernels, as work of a stream.
#pragma once

#include <cstdint>
#include <memory>

#include "locations.hpp"
#include "tasuki/device.hpp"
#include "tasuki/dtype.hpp"

namespace tasuki::xmp {

/// Extents of a product of matrices on one rank, and the strides of their rows, in elements.
struct Extents {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  std::int64_t stride_c = 0;
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
};

// All throw `Error` where something fails, and in builds without CUDA.

/// Whether it points to memory of a GPU, or managed memory.
bool gpu_has(const void* pointer);

/// Memory of the current GPU. Freeing it waits for the GPU.
std::shared_ptr<void> gpu_memory(std::int64_t bytes);

void gpu_copy(void* to, const void* from, std::int64_t bytes, Stream stream);

/// `rows` rows of so many bytes, whose beginnings are `to_pitch` and `from_pitch` bytes apart.
void gpu_copy_rows(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch, std::int64_t bytes,
                   std::int64_t rows, Stream stream);

/// A value of any type.
struct Element {
  std::uint64_t value[2] = {};
  int bytes = 0;
};
/// All of `count` elements.
void gpu_fill(void* to, const Element& with, std::int64_t count, Stream stream);

/// As `take_best`.
void gpu_take_best(const Gathered& in, const Chosen& what, Stream stream);

/// c = a * b, or with `more` c = c + a * b, every element summed in the order of the inner index without fused
/// operations: what the host computes, bit by bit, but for complex numbers that are not finite. Integers of one size
/// are the same product, with signs or without.
void gpu_multiply(DType type, void* c, const void* a, const void* b, const Extents& n, bool more, Stream stream);

}  // namespace tasuki::xmp
