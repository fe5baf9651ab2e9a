// Memory for packed messages, kept for the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tasuki::mpi {

/// At least `bytes` bytes, aligned to cache lines; given back when it ends. `data` is null if there is no memory.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t bytes);
  Scratch(Scratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)), kind_(other.kind_) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~Scratch();
  std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  int kind_ = 0;  // how large it is: a power of two
};

}  // namespace tasuki::mpi
