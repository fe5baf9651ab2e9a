// What descriptors name: node sets, templates and arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shape.hpp"
#include "tasuki/field.hpp"
#include "work.hpp"
#include "xmp.h"

namespace tasuki::xmp {

struct Object {
  enum class Kind : std::uint8_t { nodes, template_, array };
  explicit Object(Kind what) : kind(what) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  const Kind kind;
};

struct Nodes final : Object {
  static constexpr Kind kKind = Kind::nodes;
  Nodes() : Object(kKind) {}
  NodeShape shape;
  int attr = XMP_ENTIRE_NODES;
};

/// How a dimension shall be distributed, as the program has said.
struct Wanted {
  int format = XMP_NOT_DISTRIBUTED;
  std::int64_t size = 0;
  std::optional<std::vector<std::int64_t>> map;  // gblock's, once it is known
};

struct Template final : Object {
  static constexpr Kind kKind = Kind::template_;
  Template() : Object(kKind) {}
  std::size_t ndims = 0;
  std::vector<Range> ranges;   ///< empty: fixed later
  std::vector<Wanted> wanted;  ///< empty: not distributed yet
  xmp_desc_t nodes_desc = nullptr;
  NodeShape nodes;
  std::vector<Spread> spreads;  ///< empty: something is not fixed

  /// Throws `Error` unless it is distributed and fixed.
  const std::vector<Spread>& fixed() const;
};

/// A field over an array's memory.
class ArrayField : public FieldBase {
 public:
  ArrayField(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype, void* memory)
      : FieldBase(grid, options, element_bytes, dtype, std::vector<void*>{memory}) {}
};

/// How shadows are to be filled, as a program has said.
struct ReflectCall {
  std::vector<xmp_desc_t> arrays;
  std::vector<Layers> width;  ///< empty: the whole shadow
  std::vector<bool> periodic;
  bool corners = true;
  bool reverse = false;
  std::string path = "auto";
};

struct Array final : Object {
  static constexpr Kind kKind = Kind::array;
  Array() : Object(kKind) {}
  std::int64_t serial = 0;  ///< of this array on this rank
  std::string name;
  DType type = DType::none;
  xmp_desc_t template_desc = nullptr;
  std::vector<Spread> spreads;  ///< of the template
  std::vector<int> fixed_axes;  ///< dimensions of the template at one index of which all of the array lies
  ArrayShape shape;
  int number = -1;  ///< of this rank among its nodes; -1: it is none of them
  Coordinates at{};

  /// Memory on the host and on the GPU.
  struct Place {
    void* memory = nullptr;
    std::shared_ptr<void> owned;
    std::int64_t generation = 0;                     ///< how often it was bound
    std::map<std::vector<bool>, ArrayField> fields;  ///< over it, by where they are periodic
    std::optional<ReflectCall> initialised;          ///< by reflect_init
    std::shared_ptr<Work> reflect;                   ///< its plan; null: to be made anew
  };
  std::array<Place, 2> places;
  Place& place(Memory where) { return places[where == Memory::host ? 0 : 1]; }

  std::int64_t bytes() const { return number < 0 ? 0 : shape.bytes(at); }
  /// Replaces the memory. Throws `Error` if older memory is in use.
  void bind(Memory where, void* memory, std::shared_ptr<void> owned);
};

/// A descriptor is a slot's number and how often the slot was used, so that one that was freed is never another's.
struct Slot {
  std::unique_ptr<Object> object;
  std::uint32_t use = 0;
};
inline std::vector<Slot>& slots = *new std::vector<Slot>;  // not destroyed, as world.cpp's

/// What a descriptor names. Null: it names nothing, or nothing any more.
inline Slot* slot_of(xmp_desc_t desc) {
  const auto value = reinterpret_cast<std::uint64_t>(desc);
  const std::uint64_t number = (value & 0xffffffffU) - 1;
  if (number >= slots.size()) return nullptr;
  Slot& slot = slots[number];
  return slot.use == value >> 32U && slot.object ? &slot : nullptr;
}

/// A new descriptor.
xmp_desc_t add_object(std::unique_ptr<Object> object);
/// Throws `Error` for what is none, was freed, or names something else.
Nodes& nodes_of(xmp_desc_t desc, const char* argument);
Template& template_of(xmp_desc_t desc, const char* argument);
Array& array_of(xmp_desc_t desc, const char* argument);
/// Throws `Error` for what is no descriptor.
Object::Kind kind_of(xmp_desc_t desc);
void remove_object(xmp_desc_t desc);
void forget_objects();

/// A range as C gives it. Throws `Error` for a step below 0.
Range range_from(const xmp_range& range);
/// A range for each dimension of the array; null: all of it.
std::vector<Range> section_from(const Array& array, const xmp_range section[]);

}  // namespace tasuki::xmp
