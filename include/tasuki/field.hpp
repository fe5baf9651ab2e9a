// Field: a distributed array over a grid, with a shadow for the neighbours' cells.
#pragma once

#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tasuki/device.hpp"
#include "tasuki/grid.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

struct FieldOptions {
  std::string name = "field";
  Width shadow = 1;      ///< Cells allocated around the owned box, also in unsplit and non-periodic dimensions.
  int copies = 1;        ///< Instances in memory: 1, or 2 for double buffering (Jacobi's old and new; see `swap`).
  std::int64_t pad = 0;  ///< Extra cells at the end of each row of the last dimension, for alignment.
  /// `device` is memory of this rank's GPU (`use_gpu`), which only kernels read and write; see `upload`. For memory of
  /// the user's it follows from the pointers. Only an empty rank, which has no pointers, must give it.
  Memory memory = Memory::host;
  /// For memory of the user's in any order: bytes from a local cell to the next one in each dimension, which may be
  /// negative; the pointers are to local cell (0, 0, ...). So arrays in Fortran's order, components of structures, and
  /// parts of larger arrays are fields in place; bytes between the cells are left alone. No two cells may share bytes.
  /// All ranks give strides, which may differ, or none does. Empty: C order, with rows padded by `pad`.
  std::vector<std::int64_t> strides = {};
};

struct FieldAccess;

/// What `Field<T>` is underneath: the part that does not depend on the element type.
class FieldBase {
 public:
  struct Storage;
  const Grid& grid() const;
  const std::string& name() const;
  std::int64_t element_bytes() const;
  DType dtype() const;  ///< `none` for elements that are not numbers.
  const Width& shadow() const;
  Memory memory() const;
  int copies() const;
  int current() const;      ///< The copy that `data()` returns, 0 or 1; `swap` changes it.
  Box owned() const;        ///< This rank's cells, global indices.
  Box local_owned() const;  ///< The same in local indices: starts at the shadow's width.
  Index extents() const;    ///< Local cells in memory, shadow included, padding excluded.
  /// In elements, for local indices. Throws if option `strides` has bytes that are no whole number of elements.
  Index strides() const;
  Index byte_strides() const;  ///< The same in bytes, which may be negative.
  /// Of one copy in memory: from the first byte of the lowest cell to the last byte of the highest, and padding.
  std::int64_t bytes() const;
  std::byte* raw(int copy) const;  ///< Local cell (0, 0, ...) of copy 0 or 1; throws after `free`.

  /// Transfers all `bytes()` of the current copy, shadow and padding included, from or to host memory. Meant for fields
  /// on the device, works for all in C order: throws for others, between whose cells may lie what is not the field's.
  /// Runs after the work that the default stream already has, and returns when done. Local.
  void upload(const void* host) const;
  void download(void* host) const;

  /// The other copy becomes the current one. Local. Throws for a field with one copy.
  void swap();

  /// Gives the memory back now. Throws if an operation that uses the field still exists. Destroying the field object
  /// never throws: memory in use lives as long as its operations.
  void free();

  /// Boundary and interior for overlap, in local indices. The boundary is the owned cells within `width` of a side of
  /// the owned box, which must be computed before the halo starts, cut into disjoint boxes, none empty. The interior is
  /// the rest; it is an empty box if nothing is left. Local.
  std::vector<Box> boundary(const Width& width) const;
  Box interior(const Width& width) const;

 protected:
  friend struct FieldAccess;
  void need_host(const char* call) const;     ///< throws if the memory is on a device
  void need_c_order(const char* call) const;  ///< throws if the memory is in another order
  FieldBase(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype);
  FieldBase(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype,
            const std::vector<void*>& memory);
  std::shared_ptr<Storage> storage_;
};

/// What a field's elements count as where shadows are added (`HaloOptions::reverse`); `none` cannot be added. C++20 has
/// no names for `f16` and `bf16`.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::c64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::c128;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return is_signed ? DType::i8 : DType::u8;
      case 2:
        return is_signed ? DType::i16 : DType::u16;
      case 4:
        return is_signed ? DType::i32 : DType::u32;
      case 8:
        return is_signed ? DType::i64 : DType::u64;
      default:
        return DType::none;
    }
  }
  return DType::none;
}

/// An array of trivially copyable `T` over a grid. A handle: a second handle refers to the same memory. (`copies` of a
/// field are its instances in memory.) Local indices run from 0 and include the shadow; element (i, j, k) is at
/// data()[i * strides()[0] + j * strides()[1] + k * strides()[2]], where the last stride is 1 unless option `strides`
/// was given.
template <class T>
class Field : public FieldBase {
  static_assert(std::is_trivially_copyable_v<T>, "a field's elements are moved as bytes");

 public:
  /// Memory from Tasuki, zero-filled, shared with the ranks of the same host. Collective.
  explicit Field(const Grid& grid, const FieldOptions& options = {})
      : FieldBase(grid, options, sizeof(T), dtype_of<T>()) {}
  /// The user's memory: one pointer a copy, each to local cell (0, 0, ...), alive as long as the field and its
  /// operations; in C order, or as option `strides` says. Collective.
  Field(const Grid& grid, std::initializer_list<T*> memory, const FieldOptions& options = {})
      : FieldBase(grid, options, sizeof(T), dtype_of<T>(), std::vector<void*>(memory.begin(), memory.end())) {}
  /// The same with a `std::vector<T*>`; a template only so that braced options are never taken for a vector.
  template <std::same_as<std::vector<T*>> Pointers>
  Field(const Grid& grid, const Pointers& memory, const FieldOptions& options = {})
      : FieldBase(grid, options, sizeof(T), dtype_of<T>(), std::vector<void*>(memory.begin(), memory.end())) {}

  T* data() const { return reinterpret_cast<T*>(raw(current())); }
  T* data(int copy) const { return reinterpret_cast<T*>(raw(copy)); }
  T* next() const { return reinterpret_cast<T*>(raw((current() + 1) % copies())); }  ///< What `swap` will show.

  /// Calls `f(global index, element&)` for every owned cell of the current copy. For set-up and checks, not for speed.
  /// Throws for a field on the device.
  template <class F>
  void for_each(F&& f) const {
    const Box own = owned();
    if (own.empty()) return;
    need_host("for_each");
    const Index stride = byte_strides();
    Index at = own.lo;
    for (;;) {
      std::int64_t offset = 0;
      for (int d = 0; d < own.ndims; ++d) offset += (at[d] - own.lo[d] + shadow().lo[d]) * stride[d];
      std::byte* const place = raw(current()) + offset;
      if (reinterpret_cast<std::uintptr_t>(place) % alignof(T) == 0) {
        f(at, *reinterpret_cast<T*>(place));
      } else {  // in a structure without gaps
        std::array<std::byte, sizeof(T)> bytes;
        std::memcpy(bytes.data(), place, sizeof(T));
        auto element = std::bit_cast<T>(bytes);
        f(at, element);
        std::memcpy(place, &element, sizeof(T));
      }
      int d = own.ndims - 1;
      for (; d >= 0 && ++at[d] == own.hi[d]; --d) at[d] = own.lo[d];
      if (d < 0) return;
    }
  }
};

}  // namespace tasuki
