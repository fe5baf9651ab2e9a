// Tries copy kernels out, on memory of its own. Each runs some dozens of times, and its least time counts.
#include "layout/kernel_trial.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

namespace tasuki {
namespace {

constexpr int kTurns = 8;
constexpr int kRuns = 4;          // in a turn
constexpr double kClearly = 0.9;  // a kernel is clearly faster below this share of the usual kernel's time

std::size_t end_of(const StridedCopy& copy, std::int64_t offset, std::int64_t StridedCopy::Dim::*stride) {
  std::int64_t end = offset + copy.block;
  for (int d = 0; d < copy.ndims; ++d) end += (copy.dims[d].count - 1) * copy.dims[d].*stride;
  return static_cast<std::size_t>(end);
}

bool try_out(CopyFunction other, CopyFunction usual, const StridedCopy& copy) {
  // Not initialised: pages in which no number lies are never touched.
  const std::unique_ptr<std::byte[]> from(new std::byte[end_of(copy, copy.src_offset, &StridedCopy::Dim::src_stride)]);
  const std::unique_ptr<std::byte[]> to(new std::byte[end_of(copy, copy.dst_offset, &StridedCopy::Dim::dst_stride)]);
  const std::unique_ptr<std::byte[]> zeros(new std::byte[static_cast<std::size_t>(copy.block)]());
  StridedCopy fill = copy;  // writes what is read later
  fill.src_offset = 0;
  fill.dst_offset = copy.src_offset;
  for (int d = 0; d < fill.ndims; ++d) fill.dims[d] = {copy.dims[d].count, 0, copy.dims[d].src_stride};
  usual(fill, zeros.get(), from.get());
  using Clock = std::chrono::steady_clock;
  Clock::duration least[2] = {Clock::duration::max(), Clock::duration::max()};
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int k = 0; k < 2; ++k) {
      const auto begin = Clock::now();
      for (int run = 0; run < kRuns; ++run) (k == 0 ? usual : other)(copy, from.get(), to.get());
      least[k] = std::min(least[k], Clock::now() - begin);
    }
  }
  return static_cast<double>(least[1].count()) < kClearly * static_cast<double>(least[0].count());
}

const KernelTrialRegistration registration{try_out};

}  // namespace

}  // namespace tasuki
