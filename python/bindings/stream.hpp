// Streams as other libraries pass them, and the one that they mean when none is passed.
#pragma once

#include <nanobind/nanobind.h>

#include "tasuki/device.hpp"

namespace tasuki::python {

namespace nb = nanobind;

/// Libraries that have a current stream.
enum class Library { none, cupy, torch };

/// Whose array it is, by its type's module; nothing is imported.
Library library_of(nb::handle array);

/// The current stream of `library`. With `none`: of CuPy or PyTorch if the process uses exactly one of them, else the
/// legacy default stream. Nothing is imported and no GPU is woken up.
Stream current_stream(Library library);

/// An address, or an object with `__cuda_stream__`, `cuda_stream` (PyTorch) or `ptr` (CuPy). Throws `Error`.
Stream stream_from(nb::handle value);

/// `stream_from`, or with None `current_stream`.
Stream stream_or_current(nb::handle value, Library library);

/// Makes `ordinal` the calling thread's GPU: PyTorch runs gradients in threads of its own, and CUDA keeps one a thread.
void select_gpu(int ordinal);

/// Work that `later` gets from now on comes after the work that `earlier` has so far. On the GPU, without waiting.
void order(Stream earlier, Stream later);

}  // namespace tasuki::python
