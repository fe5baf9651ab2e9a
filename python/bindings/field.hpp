// What Python calls a Field: the core's field with an element type known at run time, and views of it: NumPy's, or
// DeviceArrays.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "memory.hpp"
#include "owner.hpp"
#include "stream.hpp"
#include "tasuki/field.hpp"

namespace tasuki::python {

/// The core's field, whose constructors are for derived classes.
class AnyField : public FieldBase {
 public:
  using FieldBase::FieldBase;
  AnyField(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype)
      : FieldBase(grid, options, element_bytes, dtype) {}
  AnyField(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype,
           const std::vector<void*>& memory)
      : FieldBase(grid, options, element_bytes, dtype, memory) {}
};

class PyField : public Held<AnyField> {
 public:
  /// `sources` are the user's arrays, one a copy; empty if the memory is Tasuki's.
  PyField(std::shared_ptr<Owner> owner, AnyField core, nb::object dtype, std::vector<Array> sources);

  nb::object array(int copy);  ///< All local cells, shadow included.
  nb::object owned(int copy);  ///< The same without the shadow.
  bool on_gpu() const { return core().memory() == Memory::device; }
  Library library() const;  ///< Whose memory it is.
  /// Copies all local cells of the current copy from or to an array of NumPy, on a GPU after the work in `stream`.
  void upload(nb::handle values, nb::handle stream);
  nb::object download(nb::handle stream);
  const nb::object& dtype() const { return dtype_; }
  bool is_wrapped() const { return !sources_.empty(); }
  const std::vector<Array>& sources() const { return sources_; }
  void free();
  std::string in_use() const override;
  std::string text() const { return shown_as(text_); }  ///< Of its `repr`.

 private:
  struct Copy {
    nb::object block, array, owned;
  };
  void drop_views() const;
  nb::tuple shape() const;
  nb::tuple strides() const;  ///< In bytes.
  std::int64_t low() const;   ///< The lowest element's first byte, relative to that at index 0; 0 or less.
  std::int64_t span() const;  ///< Bytes from the lowest element to the end of the highest.
  nb::object image(nb::handle stream);

  nb::object dtype_;
  std::string text_;
  std::vector<Array> sources_;
  mutable std::array<Copy, 2> copies_;  // made when first asked for
};

}  // namespace tasuki::python
