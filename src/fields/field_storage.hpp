// What the handles of one field share: its shape, its memory, and how many operations hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tasuki/field.hpp"

namespace tasuki {

struct FieldBase::Storage {
  explicit Storage(const Grid& g) : grid(g) {}

  Grid grid;       // first, so that the context outlives the memory
  int number = 0;  // the same on all ranks, and no other field's
  std::string name;
  std::int64_t element_bytes = 0;
  DType dtype = DType::none;
  Memory where = Memory::host;
  Width shadow;
  std::int64_t pad = 0;  // cells at the end of each row of the last dimension
  Index extents{};       // local cells, shadow included
  Index strides{};       // in elements
  std::int64_t bytes = 0;

  std::vector<std::shared_ptr<std::byte>> blocks;  // one a copy, if the memory is Tasuki's; else empty
  std::vector<std::byte*> memory;                  // one a copy, whoever's it is; may be null if bytes is 0
  int current = 0;
  int users = 0;  // operations that hold the field; each counts itself in and out
  bool freed = false;
};

/// What a public field keeps to itself.
struct FieldAccess {
  static const std::shared_ptr<FieldBase::Storage>& storage(const FieldBase& field) { return field.storage_; }
};

}  // namespace tasuki
