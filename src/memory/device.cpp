// The public functions about this process's GPUs that need no context.
#include <fmt/format.h>

#include "memory/gpu.hpp"
#include "tasuki/device.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

Gpu& gpu_for(const char* call) {
  Gpu* const one = gpu();
  if (one == nullptr)
    throw Error(ErrorKind::not_possible, fmt::format("{}: this process cannot use a GPU: {}", call, why_no_gpu()));
  return *one;
}

}  // namespace

int current_gpu() {
  return gpu_for("current_gpu").current();
}

void select_gpu(int ordinal) {
  Gpu& all = gpu_for("select_gpu");
  if (ordinal < 0 || ordinal >= all.count())
    throw Error(fmt::format("select_gpu: argument 'ordinal' is {}; this process sees {} GPUs", ordinal, all.count()));
  all.select(ordinal);
}

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes < 0) throw Error(fmt::format("copy_bytes: argument 'bytes' is {}; it must be 0 or more", bytes));
  Gpu& all = gpu_for("copy_bytes");
  if (bytes > 0) all.copy(to, from, bytes);
}

}  // namespace tasuki
