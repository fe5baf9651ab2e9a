// The element types and operators of reductions: their names, their sizes, and which of them go together.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <string_view>
#endif

#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki {

/// Element types that reductions know. A complex number is its real part followed by its imaginary part.
///
/// A pair is a value followed by an index, as in MPI's `MPI_FLOAT_INT`, laid out as C lays out the struct of the two:
/// `f64_i32` and `i64_i32` have 4 bytes of padding after the index, the others none. A reduction leaves the
/// destination's padding as it is.
enum class DType : std::uint8_t {
  none,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f32,
  f64,
  f16,      ///< IEEE 754 binary16
  bf16,     ///< the upper half of an `f32`
  c64,      ///< two `f32`
  c128,     ///< two `f64`
  f32_i32,  ///< 8 bytes, MPI_FLOAT_INT
  f64_i32,  ///< 16 bytes, MPI_DOUBLE_INT; the index at byte 8
  i32_i32,  ///< 8 bytes, MPI_2INT
  i64_i32,  ///< 16 bytes, MPI_LONG_INT; the index at byte 8
  f64_i64,  ///< 16 bytes
  i64_i64,  ///< 16 bytes
};

/// How a reduction combines a source element with a destination element. The destination is the left operand:
/// `dst = dst op src`. All operators but `own` are commutative in every bit, except for which of two NaNs is kept.
///
/// * `sum`, `product`: integers wrap; `f16` and `bf16` are combined as `f32` and rounded, to nearest even, each time
///   that two are combined.
/// * `min`, `max`: a NaN wins over every number; of two NaNs the destination's is kept; -0 is less than +0.
/// * `band`, `bor`, `bxor`: bit by bit. `land`, `lor`, `lxor`: every value other than 0 is true; the result is 0 or 1.
/// * `minloc`, `maxloc`: the pair whose value is least, or greatest; a NaN wins over every number. Of pairs with equal
///   values the one with the lower index is kept, and with equal indices the destination's. Here -0 equals +0, and a
///   NaN equals a NaN.
/// * `own`: a function of the user's (`Operator` in collectives.hpp), which may depend on the order; in host memory
/// only.
/// * `negate`: the source with its sign changed; the destination is not read. Of the edges of halos, and of no
/// reduction.
enum class ReduceOp : std::uint8_t {
  sum,
  product,
  min,
  max,
  band,
  bor,
  bxor,
  land,
  lor,
  lxor,
  minloc,
  maxloc,
  own,
  negate
};

#if !defined(__CUDACC_RTC__)  // what follows is for the host

std::string_view to_string(DType type);
std::string_view to_string(ReduceOp op);
DType dtype_from_string(std::string_view name);         ///< Throws `Error` for an unknown name, with the known ones.
ReduceOp reduce_op_from_string(std::string_view name);  ///< Throws `Error` for an unknown name, with the known ones.

std::int64_t size_of(DType type);  ///< Bytes of one element, padding included; 0 for `none`.

/// Whether `op` has a meaning for elements of `type`: `sum` and `product` for integers, floats and complex numbers,
/// `min` and `max` for integers and floats, bitwise and logical operators for integers, `minloc` and `maxloc` for
/// pairs, `own` for all. False for `none`, for values that are no enumerators, and for `negate`, which combines
/// nothing.
bool defined(ReduceOp op, DType type);

/// Whether elements can change their sign: signed integers, floats and complex numbers.
bool has_sign(DType type);

/// Whether what moves as elements of `type` by `op` is combined with the destination, and does not replace it.
inline bool accumulates(DType type, ReduceOp op) {
  return type != DType::none && op != ReduceOp::negate;
}

#endif

}  // namespace tasuki
