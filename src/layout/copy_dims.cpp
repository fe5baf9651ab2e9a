// CopyDims: the dimensions of strided copies, in memory that copies share until they are changed.
#include <algorithm>
#include <new>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

// `room` dimensions of which these are the first.
detail::Held CopyDims::made(std::span<const CopyDim> dims, std::size_t room) {
  void* const memory = ::operator new(sizeof(Head) + room * sizeof(CopyDim));
  Head* const head = new (memory) Head{1, static_cast<std::int32_t>(room)};
  auto* const all = reinterpret_cast<CopyDim*>(head + 1);
  std::uninitialized_fill(std::uninitialized_copy(dims.begin(), dims.end(), all), all + room, CopyDim{});
  return detail::Held(memory);
}

CopyDims::CopyDims(std::span<const CopyDim> dims) {
  if (!dims.empty()) dims_ = made(dims, dims.size());
}

// All of them, which nobody else has.
CopyDim* CopyDims::own() {
  if (kept() < kMaxDims || !dims_.alone()) dims_ = made({data(), kept()}, kMaxDims);
  return reinterpret_cast<CopyDim*>(head() + 1);
}

std::int64_t CopyDims::bytes() const {
  return dims_.get() == nullptr ? 0 : static_cast<std::int64_t>(sizeof(Head) + kept() * sizeof(CopyDim));
}

bool CopyDims::equals(const CopyDims& other) const {
  const std::size_t most = std::max(kept(), other.kept());
  for (std::size_t i = 0; i < most; ++i)
    if (!((*this)[i] == other[i])) return false;
  return true;
}

}  // namespace tasuki
