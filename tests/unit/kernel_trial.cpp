// Trying copy kernels out, by the clock of this processor.
#include "layout/kernel_trial.hpp"

#include <doctest/doctest.h>

#include "../plan/layout_model.hpp"

using layout_model::moves;
using tasuki::StridedCopy;

namespace {

int runs_of[2];
bool zeros_only = true;

template <int kWhich>
void counted(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  ++runs_of[kWhich];
  for (const auto& [from, to] : moves(copy)) {
    zeros_only = zeros_only && src[from] == std::byte{0};
    dst[to] = src[from];
  }
}

}  // namespace

TEST_CASE("kernels are tried out equally often, on memory of their own that holds zeros") {
  StridedCopy copy;
  copy.block = 8;
  copy.ndims = 2;
  copy.src_offset = 3;
  copy.dst_offset = 5;
  copy.dims[0] = {3, 500, 200};
  copy.dims[1] = {7, 40, 8};
  tasuki::clearly_faster(counted<1>, counted<0>, copy);
  CHECK(runs_of[0] == runs_of[1] + 1);  // one fills the source
  CHECK(runs_of[1] > 20);
  CHECK(zeros_only);
}
