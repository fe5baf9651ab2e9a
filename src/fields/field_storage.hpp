// FieldBase::Storage: what all handles of one field share. It has the shape, the memory and the number of operations
// that use the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grid/memory_order.hpp"
#include "tasuki/field.hpp"

namespace tasuki {

struct FieldBase::Storage {
  explicit Storage(const Grid& g) : grid(g) {}

  Grid grid;       // declared first, so destroyed last: the context outlives the memory
  int number = 0;  // identifies the field: equal on all ranks, unique in the context
  std::string name;
  std::int64_t element_bytes = 0;
  DType dtype = DType::none;
  Memory where = Memory::host;
  Width shadow;
  std::int64_t pad = 0;  // cells at the end of each row of the last dimension
  Index extents{};       // local cells, shadow included
  Index byte_strides{};
  std::int64_t origin = 0;  // bytes from the lowest cell's first byte to local cell (0, 0, ...)
  std::int64_t bytes = 0;
  /// By rank, for memory that is not in C order with the same padding on all ranks; null if it is.
  std::shared_ptr<const std::vector<MemoryOrder>> orders;

  std::vector<std::shared_ptr<std::byte>> blocks;  // owner of each copy's memory; empty if the user owns it
  std::vector<std::byte*> memory;                  // lowest byte of each copy; may be null if bytes is 0
  int current = 0;                                 // the copy that `data()` shows
  int users = 0;  // operations that use the field; each adds 1 when it is made and takes 1 off when it is freed
  bool freed = false;
};

/// All local cells of this rank, relative to the lowest one's first byte.
Layout all_cells(const FieldBase& field);

/// Gives the library access to the private storage of a public field.
struct FieldAccess {
  static const std::shared_ptr<FieldBase::Storage>& storage(const FieldBase& field) { return field.storage_; }
};

}  // namespace tasuki
