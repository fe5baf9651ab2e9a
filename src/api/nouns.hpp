// What is kept for each kind of handle of the C interface, and the plain data that go in and out.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/guard.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/device.hpp"
#include "tasuki/field.hpp"
#include "tasuki/graph.hpp"
#include "tasuki/grid.hpp"
#include "tasuki/halo.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

namespace tasuki::api {

static_assert(TASUKI_MAX_DIMS == kMaxDims);

/// A field of elements whose type is known at run time only.
struct AnyField : FieldBase {
  AnyField(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype)
      : FieldBase(grid, options, element_bytes, dtype) {}
  AnyField(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype,
           const std::vector<void*>& memory)
      : FieldBase(grid, options, element_bytes, dtype, memory) {}
};

struct AnyOperation {
  explicit AnyOperation(const Operation& any) : operation(any) {}
  explicit AnyOperation(const Halo& one) : operation(one), halo(one) {}
  Operation operation;
  std::optional<Halo> halo;  ///< the same, if it is one
};

#define TASUKI_KEPT(handle, object, text)      \
  template <>                                  \
  struct Kept<tasuki_##handle> {               \
    using type = object;                       \
    static constexpr Kind kind = Kind::handle; \
    static constexpr const char* name = text;  \
  }
TASUKI_KEPT(context, Context, "a context");
TASUKI_KEPT(grid, Grid, "a grid");
TASUKI_KEPT(field, AnyField, "a field");
TASUKI_KEPT(layout, Layout, "a layout");
TASUKI_KEPT(memory, std::shared_ptr<std::byte>, "a piece of memory");
TASUKI_KEPT(operation, AnyOperation, "an operation");
TASUKI_KEPT(fork, Fork, "a fork");
TASUKI_KEPT(graph, Graph, "a graph");
#undef TASUKI_KEPT

/// A buffer of a collective, where TASUKI_IN_PLACE may stand.
inline const void* input(const void* in) {
  return in == TASUKI_IN_PLACE ? in_place : in;
}
inline void* output(void* out) {
  return out == TASUKI_IN_PLACE ? in_place : out;
}

inline tasuki_box box_for_caller(const Box& box) {
  tasuki_box result{};
  result.ndims = box.ndims;
  std::copy(box.lo.begin(), box.lo.end(), result.lo);
  std::copy(box.hi.begin(), box.hi.end(), result.hi);
  return result;
}

inline Width width_from(const tasuki_width& width) {
  Width result;
  std::copy(width.lo, width.lo + kMaxDims, result.lo.begin());
  std::copy(width.hi, width.hi + kMaxDims, result.hi.begin());
  return result;
}

/// A list that the caller gives as a number and a pointer.
template <class T>
std::vector<T> list_from(const T* entries, std::int64_t count, const char* argument) {
  if (count > 0) given(entries, argument);
  return count > 0 ? std::vector<T>(entries, entries + count) : std::vector<T>();
}

}  // namespace tasuki::api
