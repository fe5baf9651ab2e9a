// What the tests of kernels share. Each file of them is compiled as ordinary C++, where blocks are threads, and by nvcc
// as part of gpu.cu.
#pragma once

#include <doctest/doctest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rank_test.hpp"
#include "ranks/error_of.hpp"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace kernel_tests {

using tasuki::device::Byte;
using tasuki::device::Word;

/// Where fields are on which kernels work.
#if defined(__CUDACC__)
inline constexpr tasuki::Memory kWhere = tasuki::Memory::device;
#else
inline constexpr tasuki::Memory kWhere = tasuki::Memory::host;
#endif

/// Zero-filled memory of one rank that its kernels and the host see.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
#if defined(__CUDACC__)
    TASUKI_CUDA(cudaMallocManaged, &data_, count * sizeof(T));
#else
    data_ = static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(64)));
#endif
    for (std::size_t i = 0; i < count; ++i) data_[i] = T{};
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = values[i];
  }
  ~Buffer() {
#if defined(__CUDACC__)
    cudaFree(data_);
#else
    ::operator delete(data_, std::align_val_t(64));
#endif
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* get() const {
    return data_;
  }
  T& operator[](std::size_t i) const {
    return data_[i];
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// On GPUs where there are any. Collective. The machine may be busy: waits get time, unless TASUKI_DEADLINE says how
/// much.
inline void prepare(tasuki::Context ctx) {
  if (std::getenv("TASUKI_DEADLINE") == nullptr) ctx.set_deadline(120);
#if defined(__CUDACC__)
  tasuki::use_gpu(ctx);
#endif
}

/// Between threads of one process there is no MPI, so nothing that the host would have to carry.
inline bool ranks_are_threads() {
  int processes = 0;
  MPI_Initialized(&processes);
  return processes == 0;
}

/// Calls `f` with hosts cut into islands of so many ranks, between which only messages travel.
template <class F>
void with_islands(int ranks, F&& f) {
  setenv("TASUKI_ISLAND", std::to_string(ranks).c_str(), 1);
  f();
  unsetenv("TASUKI_ISLAND");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A field on a ring of ranks and its halo.
struct Ring {
  tasuki::Grid grid;
  tasuki::Field<float> field;
  tasuki::Halo halo;
  explicit Ring(const tasuki::Context& ctx, const tasuki::HaloOptions& options = {}, int copies = 1)
      : grid(ctx, {7L * ctx.size()}, {.periodic = {true}}),
        field(grid, {.name = "u", .shadow = 2, .copies = copies, .memory = kWhere}),
        halo(field, options) {
    const bool sound = tasuki::verify(halo).ok();
    CHECK(sound);
  }
};

/// How wide blocks are in turn: threads on a GPU and on a processor.
inline std::vector<tasuki::ResidentOptions> widths(int blocks = 1) {
  std::vector<tasuki::ResidentOptions> all;
  for (const auto& [threads, cpu_threads] : {std::pair{32, 1}, std::pair{96, 3}, std::pair{256, 4}}) {
    tasuki::ResidentOptions options;
    options.blocks = blocks;
    options.threads = threads;
    options.cpu_threads = cpu_threads;
    all.push_back(options);
  }
  return all;
}

/// Numbers that look random and are the same everywhere.
TASUKI_DEVICE Word mixed(Word a, Word b, Word c = 0, Word d = 0) {
  Word x = a * 0x9e3779b97f4a7c15ull + b;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull + c;
  x = (x ^ x >> 29) * 0xd6e8feb86659fd93ull + d;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
  return x ^ x >> 31;
}
TASUKI_DEVICE Byte byte_of(Word seed, Word i) {
  return static_cast<Byte>(mixed(seed, i / 8) >> 8 * (i % 8));
}

template <class Group>
TASUKI_DEVICE void fill(const Group& group, Byte* to, Word bytes, Word seed) {
  for (Word i = static_cast<Word>(group.thread()); i < bytes; i += static_cast<Word>(group.threads()))
    to[i] = byte_of(seed, i);
}
/// How many bytes differ, to every thread its own.
template <class Group>
TASUKI_DEVICE Word differences(const Group& group, const Byte* at, Word bytes, Word seed) {
  Word wrong = 0;
  for (Word i = static_cast<Word>(group.thread()); i < bytes; i += static_cast<Word>(group.threads()))
    if (at[i] != byte_of(seed, i)) ++wrong;
  return wrong;
}
TASUKI_DEVICE void count(Word* errors, Word more) {
  if (more != 0) tasuki::device::detail::add_gpu(errors, more);
}

}  // namespace kernel_tests
