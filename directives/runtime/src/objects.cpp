// See objects.hpp.
#include "objects.hpp"

#include <fmt/format.h>

#include <utility>

#include "guard.hpp"
#include "world.hpp"

namespace tasuki::xmp {

namespace {

[[noreturn]] void bad(xmp_desc_t desc, const char* argument, const char* wanted) {
  if (desc == nullptr) refuse("argument '{}' is null; it must be {}", argument, wanted);
  refuse("argument '{}' is no descriptor of {}, or was freed", argument, wanted);
}

template <class T>
T& get(xmp_desc_t desc, const char* argument, const char* wanted) {
  Slot* const slot = slot_of(desc);
  if (slot == nullptr || slot->object->kind != T::kKind) [[unlikely]]
    bad(desc, argument, wanted);
  return static_cast<T&>(*slot->object);
}

}  // namespace

const std::vector<Spread>& Template::fixed() const {
  if (wanted.empty()) refuse("the template is not distributed; call xmp_distribute first");
  if (spreads.empty()) refuse("the template is not fixed; call xmp_template_fix first");
  return spreads;
}

void Array::bind(Memory where, void* memory, std::shared_ptr<void> owned) {
  world().forget(serial);
  Place& here = place(where);
  here.reflect = nullptr;
  here.fields.clear();
  here.memory = memory;
  here.owned = std::move(owned);
  ++here.generation;
}

xmp_desc_t add_object(std::unique_ptr<Object> object) {
  std::size_t number = 0;
  while (number < slots.size() && slots[number].object) ++number;
  if (number == slots.size()) slots.emplace_back();
  Slot& slot = slots[number];
  ++slot.use;
  slot.object = std::move(object);
  return reinterpret_cast<xmp_desc_t>((std::uint64_t{slot.use} << 32U) | (number + 1));
}

Nodes& nodes_of(xmp_desc_t desc, const char* argument) {
  return get<Nodes>(desc, argument, "nodes");
}
Template& template_of(xmp_desc_t desc, const char* argument) {
  return get<Template>(desc, argument, "a template");
}
Array& array_of(xmp_desc_t desc, const char* argument) {
  return get<Array>(desc, argument, "an array");
}

Object::Kind kind_of(xmp_desc_t desc) {
  const Slot* const slot = slot_of(desc);
  if (slot == nullptr) bad(desc, "on", "nodes or a template");
  return slot->object->kind;
}

void remove_object(xmp_desc_t desc) {
  Slot* const slot = slot_of(desc);
  if (slot == nullptr) bad(desc, "desc", "nodes, a template or an array");
  if (slot->object->kind == Object::Kind::array) world().forget(static_cast<Array&>(*slot->object).serial);
  slot->object = nullptr;
}

void forget_objects() {
  for (Slot& slot : slots) slot.object = nullptr;
}

Range range_from(const xmp_range& range) {
  if (range.step < 0)
    refuse("the range {} to {} has step {}; it must be at least 1", range.first, range.end, range.step);
  constexpr std::int64_t kFar = std::int64_t{1} << 61;  // sums and differences of these fit into 64 bits
  if (range.first < -kFar || range.end > kFar || range.first > kFar || range.end < -kFar || range.step > kFar)
    refuse("the range {} to {} by {} is too far from 0", range.first, range.end, range.step);
  return {range.first, range.end, range.step == 0 ? 1 : range.step};
}

std::vector<Range> section_from(const Array& array, const xmp_range section[]) {
  std::vector<Range> all;
  for (int d = 0; d < array.shape.ndims(); ++d)
    all.push_back(section == nullptr ? Range{0, array.shape.dim(d).extent} : range_from(section[d]));
  return all;
}

}  // namespace tasuki::xmp
