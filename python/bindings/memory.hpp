// Memory between Tasuki and Python: arrays of any library come in without a copy, and the core's memory goes out as
// arrays of NumPy or, on a GPU, as DeviceArray.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "owner.hpp"
#include "tasuki/device.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki::python {

/// Someone else's array, looked at in place and kept alive.
struct Array {
  nb::object object;
  std::shared_ptr<void> seen;  ///< What the memory was read from, where that is not `object` itself.
  std::byte* data = nullptr;   ///< The first element; others may lie before it where strides are negative.
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< In bytes.
  nb::object dtype;                   ///< NumPy's.
  std::int64_t element_bytes = 0;
  Memory where = Memory::host;
  int gpu = -1;  ///< CUDA's ordinal, if that can be told.

  std::int64_t low() const;    ///< The lowest byte, relative to `data`; 0 or less.
  std::int64_t high() const;   ///< One past the highest byte, relative to `data`.
  bool is_contiguous() const;  ///< In C order.
  Layout layout() const;       ///< Its elements in C order, relative to `data`.
  /// Throws `Error` if the array has moved its elements elsewhere since it was looked at.
  void check_unmoved(const std::string& what) const;
};

/// Looks at anything that shows its memory: `__array_interface__`, the buffer protocol, DLPack,
/// `__cuda_array_interface__`. Throws `Error` naming `argument` if it has none, would have to be copied, is on a device
/// (on a GPU only unless `on_gpu_too`), or (if `writable`) may not be written.
Array array_from(nb::handle object, const std::string& argument, bool writable, bool on_gpu_too = false);

/// Throws `Error` if `array` is on another GPU than this rank uses, or if this rank can use none.
void check_gpu(const Array& array, const Context& context, const std::string& argument);

/// `numpy.dtype(value)`; throws `Error` if there is no such type or its elements are Python objects.
nb::object dtype_from(nb::handle value, const char* argument);
DType number_type(nb::handle dtype);  ///< `none` for what the core cannot add.
std::int64_t element_bytes(nb::handle dtype);
std::string dtype_name(nb::handle dtype);  ///< as `str` writes it

/// Bytes of the core that NumPy arrays look at. The arrays keep it alive, and it keeps the bytes.
class MemoryBlock : public Member {
 public:
  /// `references`: how many Python references belong to Tasuki itself; others are users that look at the bytes.
  MemoryBlock(std::shared_ptr<Owner> owner, std::shared_ptr<void> keep, std::byte* data, std::int64_t bytes,
              std::string name, int references)
      : Member(std::move(owner)),
        keep_(std::move(keep)),
        data_(data),
        bytes_(bytes),
        name_(std::move(name)),
        references_(references) {}
  ~MemoryBlock() override { owner().retire(std::move(keep_)); }
  void release() noexcept override {
    data_ = nullptr;
    const auto last = std::move(keep_);  // which may take this block along
  }
  std::string in_use() const override;
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> keep_;
  std::byte* data_;
  std::int64_t bytes_;
  std::string name_;
  int references_;
};

/// A NumPy array over a block, whose first element is `offset` bytes from the block's start. Strides in bytes.
nb::object numpy_array(nb::handle block, nb::handle dtype, nb::handle shape, nb::handle strides,
                       std::int64_t offset = 0);

}  // namespace tasuki::python
