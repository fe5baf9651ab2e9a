// See scratch.hpp.
#include "scratch.hpp"

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace tasuki::mpi {

namespace {

constexpr int kSmallest = 12;          // 4 KiB
constexpr int kLargestKept = 26;       // 64 MiB; larger ones go back to the system
constexpr std::size_t kMostKept = 64;  // of a kind

std::mutex mutex;
auto& kept = *new std::array<std::vector<std::byte*>, kLargestKept + 1>;  // never ended, as messages may outlive it

}  // namespace

Scratch::Scratch(std::int64_t bytes) {
  const auto width = std::bit_width(static_cast<std::uint64_t>(bytes > 0 ? bytes - 1 : 0));
  kind_ = width < kSmallest ? kSmallest : static_cast<int>(width);
  if (kind_ <= kLargestKept) {
    const std::scoped_lock lock(mutex);
    auto& free = kept[static_cast<std::size_t>(kind_)];
    if (!free.empty()) {
      data_ = free.back();
      free.pop_back();
      return;
    }
  }
  data_ = static_cast<std::byte*>(std::aligned_alloc(64, std::size_t{1} << kind_));
}

Scratch::~Scratch() {
  if (data_ == nullptr) return;
  if (kind_ <= kLargestKept) {
    const std::scoped_lock lock(mutex);
    auto& free = kept[static_cast<std::size_t>(kind_)];
    if (free.size() < kMostKept) {
      free.push_back(data_);
      return;
    }
  }
  std::free(data_);
}

}  // namespace tasuki::mpi
