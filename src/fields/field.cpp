// FieldBase: shape and memory of a field, and the boxes for overlap.
#include "tasuki/field.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fields/field_storage.hpp"
#include "layout/checked.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

/// Computes the extents from grid and options. Throws `Error` for a shape that cannot be.
void set_extents(FieldBase::Storage& field) {
  const Box own = field.grid.owned();
  if (field.element_bytes < 1)
    throw Error(fmt::format("the element has {} bytes; it must have at least 1", field.element_bytes));
  for (int d = field.grid.ndims() - 1; d >= 0; --d) {
    const std::int64_t below = field.shadow.lo[d];
    const std::int64_t above = field.shadow.hi[d];
    if (below < 0 || above < 0)
      throw Error(
          fmt::format("argument 'shadow' has width {} below and {} above in dimension {}; a width must be 0 or "
                      "more",
                      below, above, d));
    const std::int64_t widest = std::max(below, above);
    field.extents[d] = narrow(Wide{own.extent(d)} + below + above, "the local extent", "shadow", widest);
  }
}

// A rank without cells has no rows, so it has no padding either.
bool without_cells(const FieldBase::Storage& field) {
  const auto end = field.extents.begin() + field.grid.ndims();
  return std::find(field.extents.begin(), end, 0) != end;
}

/// C order: strides and size. Throws `Error` for what cannot be stored.
void set_c_order(FieldBase::Storage& field, std::int64_t pad) {
  const int ndims = field.grid.ndims();
  if (pad < 0) throw Error(fmt::format("argument 'pad' is {}; it must be 0 or more", pad));
  field.pad = pad;
  Wide stride = 1;
  for (int d = ndims - 1; d >= 0; --d) {
    field.byte_strides[d] = narrow(stride * field.element_bytes, "the size", "the local extent", field.extents[d]);
    const Wide row = Wide{field.extents[d]} + (d == ndims - 1 ? pad : 0);
    stride =
        narrow(stride * narrow(row, "the local extent", "pad", pad), "the size", "the local extent", field.extents[d]);
  }
  field.bytes = narrow(without_cells(field) ? 0 : stride * field.element_bytes, "the size", "the element's size",
                       field.element_bytes);
}

Layout cells_in(const MemoryOrder& order, const FieldBase::Storage& field) {
  return box_layout(order, field.element_bytes, field.grid.ndims(), Index{}, field.extents);
}

/// The order that option 'strides' tells of. Throws `Error` if it cannot be.
void set_order(FieldBase::Storage& field, const FieldOptions& options) {
  const int ndims = field.grid.ndims();
  if (options.pad != 0)
    throw Error(
        fmt::format("argument 'pad' is {}, but 'strides' were given, which say it: leave 'pad' out", options.pad));
  if (std::ssize(options.strides) != ndims)
    throw Error(fmt::format("argument 'strides' is ({}); a grid of {} dimension{} needs {}",
                            fmt::join(options.strides, ", "), ndims, ndims == 1 ? "" : "s", ndims));
  std::copy(options.strides.begin(), options.strides.end(), field.byte_strides.begin());
  if (without_cells(field)) return;
  Wide low = 0;
  Wide high = field.element_bytes;
  for (int d = 0; d < ndims; ++d) {
    const Wide reach = Wide{field.extents[d] - 1} * field.byte_strides[d];
    (reach < 0 ? low : high) += reach;
    narrow(high - low, "the size", "strides", field.byte_strides[d]);
  }
  field.origin = static_cast<std::int64_t>(-low);
  field.bytes = static_cast<std::int64_t>(high - low);
  if (cells_in({field.byte_strides, field.origin}, field).overlaps())
    throw Error(
        fmt::format("argument 'strides' is ({}): cells of an array of ({}) elements of {} bytes would share bytes",
                    fmt::join(options.strides, ", "),
                    fmt::join(field.extents.begin(), field.extents.begin() + ndims, ", "), field.element_bytes));
}

constexpr std::int64_t kAnyPad = -1;  // of a rank without cells, whose strides mean nothing
constexpr std::int64_t kNoPad = -2;   // of memory that is not in C order

/// The padding of rows, if strides tell of C order.
std::int64_t pad_of(const FieldBase::Storage& field) {
  const auto last = static_cast<std::size_t>(field.grid.ndims() - 1);
  if (without_cells(field)) return kAnyPad;
  // Where there is one cell, the stride is never used.
  const auto fits = [&](std::size_t d, Wide stride) {
    return field.extents[d] == 1 || field.byte_strides[d] == stride;
  };
  if (!fits(last, field.element_bytes)) return kNoPad;
  if (last == 0) return 0;
  const auto fits_with = [&](std::int64_t pad) {
    Wide stride = Wide{field.extents[last] + pad} * field.element_bytes;
    for (std::size_t d = last; d-- > 0; stride *= field.extents[d])
      if (!fits(d, stride)) return false;
    return true;
  };
  // A single row tells by its stride of the padding that other ranks have, if there is one.
  const std::int64_t rest = field.byte_strides[last - 1] - field.extents[last] * field.element_bytes;
  const std::int64_t told = rest > 0 && rest % field.element_bytes == 0 ? rest / field.element_bytes : 0;
  const bool single = std::all_of(field.extents.begin(), field.extents.begin() + static_cast<std::ptrdiff_t>(last),
                                  [](std::int64_t n) { return n <= 1; });
  if (!single && fits_with(0)) return 0;
  return fits_with(told) ? told : kNoPad;
}

/// Where strides were given: C order if all ranks have it, with one padding; else the order of every rank. Collective.
void agree_on_order(FieldBase::Storage& field) {
  struct Told {
    std::int64_t pad = 0;
    MemoryOrder order;
  };
  const std::vector<Told> all = field.grid.context().allgather(Told{pad_of(field), {field.byte_strides, field.origin}});
  std::int64_t pad = kAnyPad;
  bool plain = true;
  for (const Told& one : all) {
    if (one.pad == kAnyPad) continue;
    plain = plain && one.pad != kNoPad && (pad == kAnyPad || pad == one.pad);
    pad = one.pad;
  }
  if (plain) {
    field.origin = 0;
    set_c_order(field, std::max<std::int64_t>(pad, 0));
    return;
  }
  auto orders = std::make_shared<std::vector<MemoryOrder>>();
  for (const Told& one : all) orders->push_back(one.order);
  field.orders = std::move(orders);
}

void check_copies(int copies) {
  if (copies < 1 || copies > 2) throw Error(fmt::format("argument 'copies' is {}; it must be 1 or 2", copies));
}

void check_memory(const std::vector<void*>& memory, int copies, const FieldBase::Storage& field, bool strided) {
  const std::int64_t bytes = field.bytes;
  if (memory.size() != static_cast<std::size_t>(copies))
    throw Error(fmt::format("argument 'memory' has {} pointers; {} copies need one each", memory.size(), copies));
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i] == nullptr && bytes > 0)
      throw Error(fmt::format("memory[{}] is null; it must point to {} bytes", i, bytes));
  if (copies < 2) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory[0]);
  const auto second = reinterpret_cast<std::uintptr_t>(memory[1]);
  const std::uintptr_t apart = first < second ? second - first : first - second;
  if (bytes == 0 || apart >= static_cast<std::uintptr_t>(bytes)) return;
  if (strided) {
    const MemoryOrder order{field.byte_strides, field.origin};
    const Layout layouts[] = {cells_in(order, field), cells_in(order, field)};
    const std::int64_t counts[] = {1, 1};
    const std::int64_t places[] = {0, static_cast<std::int64_t>(apart)};
    if (!Layout::structure(counts, places, layouts).overlaps()) return;
  }
  throw Error(fmt::format("memory[0] and memory[1] overlap: they are {} bytes apart, and a copy has {}", apart, bytes));
}

Memory where_is(const std::vector<void*>& memory, Memory said) {
  Memory found = said;
  for (const void* pointer : memory) {
    if (pointer == nullptr) continue;
    const Memory actual = memory_of(pointer);
    if (said == Memory::device && actual == Memory::host)
      throw Error(
          "argument 'memory' is said to be on the device, but it points to host memory; pass what cudaMalloc gave");
    if (pointer != memory[0] && actual != memory_of(memory[0]))
      throw Error("memory[0] and memory[1] are not both on the host or both on the device");
    found = actual;
  }
  return found;
}

template <class T>
std::string first_entries(const T& list, int count) {
  return fmt::format("{}", fmt::join(list.begin(), list.begin() + count, ", "));
}

/// The shape of a new field, the same on all ranks. Collective.
std::shared_ptr<FieldBase::Storage> make_storage(const Grid& grid, const FieldOptions& options,
                                                 std::int64_t element_bytes, DType dtype,
                                                 const std::vector<void*>* memory) {
  auto field = std::make_shared<FieldBase::Storage>(grid);
  field->name = options.name;
  field->element_bytes = element_bytes;
  field->dtype = dtype;
  field->shadow = options.shadow;
  Agreement agreement(runtime_of(grid.context()), fmt::format("Field '{}'", options.name));
  const bool strided = !options.strides.empty();
  if (options.name.empty()) agreement.complain("option 'name' is empty; plans and errors name the field");
  try {
    check_copies(options.copies);
    set_extents(*field);
    if (!strided) set_c_order(*field, options.pad);
    if (strided && memory == nullptr)
      throw Error("argument 'strides' was given, which is for memory of the user's; give memory, or leave it out");
    if (strided) set_order(*field, options);
    if (memory != nullptr) check_memory(*memory, options.copies, *field, strided);
    field->where = memory != nullptr ? where_is(*memory, options.memory) : options.memory;
  } catch (const std::exception& error) {
    agreement.complain(error);
  }
  std::string extents;
  for (int d = 0; d < grid.ndims(); ++d) extents += fmt::format("{}{}", d == 0 ? "" : " x ", grid.extent(d));
  agreement.same("grid", fmt::format("{} (the context's object {})", extents, grid.number()))
      .same("element bytes", element_bytes)
      .same("element type", std::string(to_string(dtype)))
      .same("shadow.lo", first_entries(options.shadow.lo, grid.ndims()))
      .same("shadow.hi", first_entries(options.shadow.hi, grid.ndims()))
      .same("copies", options.copies)
      .same("pad", options.pad)
      .same("strides", std::string(strided ? "given" : "not given"))
      .same("memory",
            fmt::format("{} on the {}", memory == nullptr ? "Tasuki's" : "the user's", to_string(field->where)))
      .check();
  if (strided) agree_on_order(*field);
  field->number = runtime_of(grid.context()).next_object();
  if (field->where == Memory::device) gpu_memory(runtime_of(grid.context()));
  return field;
}

/// Takes the cells within `width` of the sides off `box`. Returns the interior, and the cells taken off as disjoint
/// boxes.
Box peel(Box box, const Width& width, const std::string& name, const std::function<void(const Box&)>& use) {
  for (int d = 0; d < box.ndims; ++d) {
    if (width.lo[d] < 0 || width.hi[d] < 0)
      throw Error(
          fmt::format("Field '{}': argument 'width' is {} below and {} above in dimension {}; a width must be "
                      "0 or more",
                      name, width.lo[d], width.hi[d], d));
    Box below = box;
    Box above = box;
    below.hi[d] = box.lo[d] = box.lo[d] + std::min(width.lo[d], box.extent(d));
    above.lo[d] = box.hi[d] = box.hi[d] - std::min(width.hi[d], box.extent(d));
    if (!below.empty()) use(below);
    if (!above.empty()) use(above);
  }
  return box;
}

}  // namespace

FieldBase::FieldBase(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype)
    : storage_(make_storage(grid, options, element_bytes, dtype, nullptr)) {
  Runtime& runtime = runtime_of(grid.context());
  all_do(runtime, fmt::format("Field '{}'", options.name), [&] {
    for (int i = 0; i < options.copies; ++i) {
      storage_->blocks.push_back(storage_->where == Memory::device ? runtime.gpus->allocate(storage_->bytes)
                                                                   : runtime.memory().allocate(storage_->bytes));
      storage_->memory.push_back(storage_->blocks.back().get());
    }
  });
}

FieldBase::FieldBase(const Grid& grid, const FieldOptions& options, std::int64_t element_bytes, DType dtype,
                     const std::vector<void*>& memory)
    : storage_(make_storage(grid, options, element_bytes, dtype, &memory)) {
  for (void* pointer : memory) {
    auto* const first = static_cast<std::byte*>(pointer);
    storage_->memory.push_back(first == nullptr ? first : first - storage_->origin);
  }
}

Layout all_cells(const FieldBase& field) {
  const FieldBase::Storage& storage = *FieldAccess::storage(field);
  return cells_in({storage.byte_strides, storage.origin}, storage);
}

const Grid& FieldBase::grid() const {
  return storage_->grid;
}
const std::string& FieldBase::name() const {
  return storage_->name;
}
std::int64_t FieldBase::element_bytes() const {
  return storage_->element_bytes;
}
DType FieldBase::dtype() const {
  return storage_->dtype;
}
const Width& FieldBase::shadow() const {
  return storage_->shadow;
}
Memory FieldBase::memory() const {
  return storage_->where;
}
int FieldBase::copies() const {
  return static_cast<int>(storage_->memory.size());
}
int FieldBase::current() const {
  return storage_->current;
}
Box FieldBase::owned() const {
  return storage_->grid.owned();
}
Index FieldBase::extents() const {
  return storage_->extents;
}
Index FieldBase::strides() const {
  Index elements = storage_->byte_strides;
  for (int d = 0; d < grid().ndims(); ++d) {
    if (elements[d] % element_bytes() != 0)
      throw Error(
          fmt::format("Field '{}': its cells are {} bytes apart in dimension {}, no whole number of elements of "
                      "{} bytes; use byte_strides()",
                      name(), elements[d], d, element_bytes()));
    elements[d] /= element_bytes();
  }
  return elements;
}
Index FieldBase::byte_strides() const {
  return storage_->byte_strides;
}
std::int64_t FieldBase::bytes() const {
  return storage_->bytes;
}

Box FieldBase::local_owned() const {
  const Box own = owned();
  Box local;
  local.ndims = own.ndims;
  for (int d = 0; d < own.ndims; ++d) {
    local.lo[d] = shadow().lo[d];
    local.hi[d] = shadow().lo[d] + own.extent(d);
  }
  return local;
}

std::byte* FieldBase::raw(int copy) const {
  if (storage_->freed) throw Error(fmt::format("Field '{}': its memory was asked for after free()", name()));
  if (copy < 0 || copy >= copies())
    throw Error(fmt::format("Field '{}': argument 'copy' is {}; the field has {}", name(), copy, copies()));
  return storage_->memory[copy] == nullptr ? nullptr : storage_->memory[copy] + storage_->origin;
}

void FieldBase::need_c_order(const char* call) const {
  if (storage_->orders)
    throw Error(
        fmt::format("Field '{}': {} copies all bytes, but the field is not in C order, and what lies between its "
                    "cells is not its own; copy the cells",
                    name(), call));
}

void FieldBase::need_host(const char* call) const {
  if (storage_->where != Memory::host)
    throw Error(fmt::format("Field '{}': {} needs host memory, but the field is on the device; download it first",
                            name(), call));
}

void FieldBase::upload(const void* host) const {
  need_c_order("upload");
  std::byte* at = raw(current());
  if (bytes() == 0) return;
  storage_->where == Memory::device ? gpu()->copy(at, host, bytes())
                                    : static_cast<void>(std::memcpy(at, host, static_cast<std::size_t>(bytes())));
}

void FieldBase::download(void* host) const {
  need_c_order("download");
  const std::byte* at = raw(current());
  if (bytes() == 0) return;
  storage_->where == Memory::device ? gpu()->copy(host, at, bytes())
                                    : static_cast<void>(std::memcpy(host, at, static_cast<std::size_t>(bytes())));
}

void FieldBase::swap() {
  if (copies() < 2)
    throw Error(fmt::format("Field '{}': swap() needs two copies, the field has one; make it with copies = 2", name()));
  if (storage_->freed) throw Error(fmt::format("Field '{}': swap() was called after free()", name()));
  storage_->current = (storage_->current + 1) % copies();
}

void FieldBase::free() {
  if (storage_->users > 0)
    throw Error(fmt::format("Field '{}': free() was called while {} operation{} it; free {} first", name(),
                            storage_->users, storage_->users == 1 ? " uses" : "s use",
                            storage_->users == 1 ? "that" : "those"));
  storage_->freed = true;
  storage_->blocks.clear();
  std::fill(storage_->memory.begin(), storage_->memory.end(), nullptr);
}

std::vector<Box> FieldBase::boundary(const Width& width) const {
  std::vector<Box> boxes;
  peel(local_owned(), width, name(), [&](const Box& box) { boxes.push_back(box); });
  return boxes;
}

Box FieldBase::interior(const Width& width) const {
  return peel(local_owned(), width, name(), [](const Box&) {});
}

}  // namespace tasuki
