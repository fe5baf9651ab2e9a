// What handles of the C interface name, for programs in C or Fortran that have a file in C++: kernels that communicate
// by themselves are C++, and so is what makes their messages and launches them (tasuki/kernel.hpp). Such a file does
// without tasuki/tasuki.h, whose TASUKI_DEVICE is a number.
#pragma once

#include "tasuki/context.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

// As tasuki/c/types.h has them.
using tasuki_context = struct tasuki_context_s*;
using tasuki_operation = struct tasuki_operation_s*;
using tasuki_layout = struct tasuki_layout_s*;

namespace tasuki {

/// The object that a handle names, which lives as long as the handle or the last copy. In Fortran the handle is the
/// component `handle`. Local. Throws `Error` if the handle is null, was freed or is of another kind. No exception may
/// leave a function that C or Fortran calls: catch it there.
Context context_of(tasuki_context handle);
Operation operation_of(tasuki_operation handle);
Layout layout_of(tasuki_layout handle);

}  // namespace tasuki
