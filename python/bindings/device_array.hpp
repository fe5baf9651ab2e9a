// DeviceArray: what Python sees of a field on a GPU. CuPy, PyTorch, JAX and Numba look at it in place.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream.hpp"

namespace tasuki::python {

struct DeviceArray {
  nb::object block;  ///< Keeps the memory; tells that somebody looks at it.
  nb::object dtype;  ///< NumPy's.
  std::byte* data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< In bytes.
  int gpu = 0;                        ///< CUDA's ordinal.
  Library library = Library::none;    ///< Whose memory it is, which says what its current stream is.

  std::int64_t size() const;  ///< Elements.
  bool is_contiguous() const;
  /// `array[key]` for slices with positive steps, integers and `...`.
  DeviceArray at(nb::handle key) const;
};

}  // namespace tasuki::python
