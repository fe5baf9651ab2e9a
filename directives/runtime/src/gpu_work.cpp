// See gpu_work.hpp: builds without CUDA.
#include "gpu_work.hpp"

#if !defined(TASUKI_HAVE_CUDA)

#include "tasuki/error.hpp"

namespace tasuki::xmp {

namespace {

[[noreturn]] void no_gpu() {
  throw Error(ErrorKind::not_possible, "no GPU can be used: " + why_no_gpu());
}

}  // namespace

bool gpu_has(const void* /*pointer*/) {
  no_gpu();
}

std::shared_ptr<void> gpu_memory(std::int64_t /*bytes*/) {
  no_gpu();
}

void gpu_copy(void* /*to*/, const void* /*from*/, std::int64_t /*bytes*/, Stream /*stream*/) {
  no_gpu();
}

void gpu_copy_rows(void* /*to*/, std::int64_t /*to_pitch*/, const void* /*from*/, std::int64_t /*from_pitch*/,
                   std::int64_t /*bytes*/, std::int64_t /*rows*/, Stream /*stream*/) {
  no_gpu();
}

void gpu_fill(void* /*to*/, const Element& /*with*/, std::int64_t /*count*/, Stream /*stream*/) {
  no_gpu();
}

void gpu_take_best(const Gathered& /*in*/, const Chosen& /*what*/, Stream /*stream*/) {
  no_gpu();
}

void gpu_multiply(DType /*type*/, void* /*c*/, const void* /*a*/, const void* /*b*/, const Extents& /*n*/,
                  bool /*more*/, Stream /*stream*/) {
  no_gpu();
}

}  // namespace tasuki::xmp

#endif
