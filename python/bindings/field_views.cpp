// What Python sees of a field's memory: views in place, and copies on the host.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "arguments.hpp"
#include "device_array.hpp"
#include "field.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

[[noreturn]] void refuse_stream(const AnyField& field, const char* call) {
  throw Error(fmt::format("rank {}: Field '{}': {}: argument 'stream' was given, but the field is on the host",
                          field.grid().context().rank(), field.name(), call));
}

}  // namespace

PyField::PyField(std::shared_ptr<Owner> owner, AnyField core, nb::object dtype, std::vector<Array> sources)
    : Held<AnyField>(std::move(owner), std::move(core)), dtype_(std::move(dtype)), sources_(std::move(sources)) {
  const Grid& grid = this->core().grid();
  const auto each = [&](auto of) {
    std::vector<std::int64_t> all;
    for (int d = 0; d < grid.ndims(); ++d) all.push_back(of(d));
    return fmt::format("{}", fmt::join(all, " x "));
  };
  text_ = fmt::format(".Field '{}' {} {} of a grid of {} split {}", this->core().name(),
                      nb::cast<std::string>(nb::str(dtype_)), shown(shape()),
                      each([&](int d) { return grid.extent(d); }), each([&](int d) { return grid.split(d); }));
}

nb::object PyField::array(int copy) {
  Copy& views = copies_[static_cast<std::size_t>(copy)];
  if (views.array.is_valid()) return views.array;
  const AnyField& field = core();
  std::byte* data = field.raw(copy);  // the element at index 0, which is not the lowest where strides are negative
  if (!views.block.is_valid()) {
    // The core's storage keeps memory of its own; memory of the user's is kept by its array.
    std::shared_ptr<void> keep = std::make_shared<AnyField>(field);
    if (is_wrapped()) keep = std::make_shared<Array>(sources_[static_cast<std::size_t>(copy)]);
    auto block = std::make_unique<MemoryBlock>(shared_owner(), std::move(keep), data == nullptr ? data : data + low(),
                                               field.bytes(), fmt::format("memory of field '{}'", field.name()),
                                               is_wrapped() ? std::numeric_limits<int>::max() - 1 : 1);
    views.block = nb::cast(block.release(), nb::rv_policy::take_ownership);
  }
  if (!on_gpu()) {
    views.array = numpy_array(views.block, dtype_, shape(), strides(), -low());
    return views.array;
  }
  DeviceArray array{views.block, dtype_, data, {}, {}, use_gpu(owner().context()), library()};
  for (std::size_t d = 0; d < static_cast<std::size_t>(field.grid().ndims()); ++d) {
    array.shape.push_back(field.extents()[d]);
    array.strides.push_back(field.byte_strides()[d]);
  }
  views.array = nb::cast(std::move(array));
  return views.array;
}

Library PyField::library() const {
  return is_wrapped() ? library_of(sources_[0].object) : Library::none;
}

nb::tuple PyField::shape() const {
  return tuple_of(core().extents(), core().grid().ndims());
}

nb::tuple PyField::strides() const {
  return tuple_of(core().byte_strides(), core().grid().ndims());
}

std::int64_t PyField::low() const {
  std::int64_t low = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(core().grid().ndims()); ++d) {
    if (core().extents()[d] == 0) return 0;
    low += std::min<std::int64_t>(0, (core().extents()[d] - 1) * core().byte_strides()[d]);
  }
  return low;
}

std::int64_t PyField::span() const {
  std::int64_t high = core().element_bytes();
  for (std::size_t d = 0; d < static_cast<std::size_t>(core().grid().ndims()); ++d) {
    if (core().extents()[d] == 0) return 0;
    high += std::max<std::int64_t>(0, (core().extents()[d] - 1) * core().byte_strides()[d]);
  }
  return high - low();
}

// The current copy's bytes on the host, laid out as on the GPU. The padding, which may belong to others, is there too.
nb::object PyField::image(nb::handle stream) {
  select_gpu(use_gpu(owner().context()));
  synchronize(owner().context(), stream_or_current(stream, library()));
  nb::object bytes = nb::module_::import_("numpy").attr("empty")(span(), "u1");
  if (span() > 0) copy_bytes(array_from(bytes, "bytes", true).data, core().raw(core().current()) + low(), span());
  return bytes;
}

nb::object PyField::download(nb::handle stream) {
  if (on_gpu()) return nb::module_::import_("numpy").attr("ndarray")(shape(), dtype_, image(stream), -low(), strides());
  if (!stream.is_none()) refuse_stream(core(), "download");
  return array(core().current()).attr("copy")();
}

void PyField::upload(nb::handle values, nb::handle stream) {
  if (!on_gpu() && !stream.is_none()) refuse_stream(core(), "upload");
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object bytes = on_gpu() ? image(stream) : nb::none();
  const nb::object target =
      on_gpu() ? nb::object(numpy.attr("ndarray")(shape(), dtype_, bytes, -low(), strides())) : array(core().current());
  try {
    numpy.attr("copyto")(target, values, nb::arg("casting") = "same_kind");
  } catch (const nb::python_error& error) {
    throw Error(
        fmt::format("rank {}: Field '{}': upload: argument 'values' does not fit an array of shape {} and type "
                    "{}: {}",
                    owner().context().rank(), core().name(), shown(shape()), shown(dtype_),
                    nb::cast<std::string>(nb::str(error.value()))));
  }
  if (on_gpu() && span() > 0)
    copy_bytes(core().raw(core().current()) + low(), array_from(bytes, "bytes", false).data, span());
}

nb::object PyField::owned(int copy) {
  Copy& views = copies_[static_cast<std::size_t>(copy)];
  if (!views.owned.is_valid()) views.owned = array(copy)[slices(core().local_owned())];
  return views.owned;
}

void PyField::drop_views() const {
  for (Copy& copy : copies_) {
    copy.owned.reset();
    copy.array.reset();
  }
}

std::string PyField::in_use() const {
  drop_views();
  return {};
}

void PyField::free() {
  drop_views();
  for (const Copy& copy : copies_) {
    if (!copy.block.is_valid()) continue;
    const std::string why = nb::inst_ptr<MemoryBlock>(copy.block)->in_use();
    if (!why.empty()) throw Error(fmt::format("Field '{}': free: {}", core().name(), why));
  }
  core().free();
  set_freed();
  for (Copy& copy : copies_) copy.block.reset();
  sources_.clear();
}

}  // namespace tasuki::python
