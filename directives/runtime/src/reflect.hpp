// Shadows: `reflect`, `reflect_init`, `reflect_do` and `reduce_shadow`, on the host or on GPUs.
#pragma once

#include <memory>

#include "objects.hpp"
#include "tasuki/machine.hpp"

namespace tasuki::xmp {

/// The arguments of a call. Throws `Error` for what they cannot be.
ReflectCall reflect_call(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options,
                         bool reverse = false);

/// What fills the shadows, made now unless it is there. Null: this node has no part in it. Collective.
std::shared_ptr<Work> prepare(const char* name, const ReflectCall& call, Memory where);

/// Keeps the plan for `reflect_do`.
void initialise(const char* name, ReflectCall call, Memory where);

/// The plan that reflect_init has made for these arrays; made anew if memory has been bound since. Null: this node has
/// no part in it.
Work* initialised(const char* name, int count, const xmp_desc_t arrays[], Memory where);
std::shared_ptr<Work> shared_initialised(const char* name, int count, const xmp_desc_t arrays[], Memory where);

/// The table of the plan.
const char* explain_reflect(const char* name, xmp_desc_t array, Memory where);

/// The memory of an array's part there; null on a node that has none. Throws `Error` if it has not been given.
void* memory_of_array(Array& array, Memory where);

}  // namespace tasuki::xmp
