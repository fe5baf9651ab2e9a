// The C interface of Field.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/nouns.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

constexpr std::size_t kFirstOptions = sizeof(tasuki_field_options);
constexpr std::size_t kFirstInfo = sizeof(tasuki_field_info);

static_assert(TASUKI_I8 == static_cast<int>(DType::i8) && TASUKI_U8 == static_cast<int>(DType::u8) &&
              TASUKI_F32 == static_cast<int>(DType::f32) && TASUKI_F64 == static_cast<int>(DType::f64));

/// What a field is made of, once C's arguments have been read.
struct Recipe {
  FieldOptions options;
  DType dtype = DType::none;
  std::int64_t element_bytes = 0;
};

void check_extents(const Grid& grid, const Recipe& recipe, const std::int64_t* theirs) {
  const Box own = grid.owned();
  std::vector<std::int64_t> needed;
  for (int d = 0; d < grid.ndims(); ++d)
    needed.push_back(own.extent(d) + recipe.options.shadow.lo[d] + recipe.options.shadow.hi[d]);
  if (std::find(needed.begin(), needed.end(), 0) != needed.end()) return;  // no cells, and no rows to pad
  needed.back() += recipe.options.pad;
  const std::vector<std::int64_t> has(theirs, theirs + grid.ndims());
  if (has != needed)
    throw Failure(TASUKI_BAD_ARGUMENT,
                  fmt::format("the array of field '{}' has {} cells; it needs {} (owned cells, shadow and padding)",
                              recipe.options.name, fmt::join(has, " x "), fmt::join(needed, " x ")));
}

Recipe recipe_from(const Grid& grid, int type, const tasuki_field_options* options, bool wrap) {
  const tasuki_field_options from = read_options(options, TASUKI_FIELD_OPTIONS_INIT, kFirstOptions);
  if (type < TASUKI_BYTES || type > TASUKI_F64)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'type' is {}, which is no tasuki_type", type));
  if (from.memory != TASUKI_HOST && from.memory != TASUKI_DEVICE)
    throw Failure(TASUKI_BAD_ARGUMENT,
                  fmt::format("options->memory is {}; it must be TASUKI_HOST or TASUKI_DEVICE", from.memory));
  Recipe recipe;
  recipe.dtype = static_cast<DType>(type);
  recipe.element_bytes = type == TASUKI_BYTES ? from.element_bytes : size_of(recipe.dtype);
  if (type != TASUKI_BYTES && from.element_bytes != 0 && from.element_bytes != recipe.element_bytes)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("options->element_bytes is {}; elements of type {} have {}",
                                                   from.element_bytes, to_string(recipe.dtype), recipe.element_bytes));
  if (from.name != nullptr) recipe.options.name = from.name;
  recipe.options.shadow = width_from(from.shadow);
  recipe.options.copies = from.copies;
  recipe.options.pad = from.pad;
  recipe.options.memory = from.memory == TASUKI_DEVICE ? Memory::device : Memory::host;
  if (wrap && from.memory_extents != nullptr) check_extents(grid, recipe, from.memory_extents);
  return recipe;
}

}  // namespace

tasuki_status tasuki_field_create(tasuki_grid grid, int type, const tasuki_field_options* options,
                                  tasuki_field* field) {
  return guarded("tasuki_field_create", [&] {
    const Grid& over = get(grid, "grid");
    Recipe recipe;
    agree("tasuki_field_create", over.context(), [&] {
      given(field, "field");
      recipe = recipe_from(over, type, options, false);
    });
    *field = keep<tasuki_field>(std::make_unique<AnyField>(over, recipe.options, recipe.element_bytes, recipe.dtype));
  });
}

tasuki_status tasuki_field_wrap(tasuki_grid grid, int type, void* const* memory, int count,
                                const tasuki_field_options* options, tasuki_field* field) {
  return guarded("tasuki_field_wrap", [&] {
    const Grid& over = get(grid, "grid");
    Recipe recipe;
    std::vector<void*> pointers;
    agree("tasuki_field_wrap", over.context(), [&] {
      given(field, "field");
      recipe = recipe_from(over, type, options, true);
      if (count < 1 || count > 2)
        throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'count' is {}; it must be 1 or 2", count));
      pointers = list_from(memory, count, "memory");
    });
    *field = keep<tasuki_field>(
        std::make_unique<AnyField>(over, recipe.options, recipe.element_bytes, recipe.dtype, pointers));
  });
}

tasuki_status tasuki_field_free(tasuki_field* field) {
  return let_go("tasuki_field_free", field, "field", [](AnyField& one) { one.free(); });
}

tasuki_status tasuki_field_get_info(tasuki_field field, tasuki_field_info* info) {
  return guarded("tasuki_field_get_info", [&] {
    const AnyField& one = get(field, "field");
    tasuki_field_info facts{};
    facts.ndims = one.grid().ndims();
    facts.type = static_cast<int>(one.dtype());
    facts.memory = one.memory() == Memory::device ? TASUKI_DEVICE : TASUKI_HOST;
    facts.copies = one.copies();
    facts.current = one.current();
    facts.element_bytes = one.element_bytes();
    facts.bytes = one.bytes();
    facts.owned = box_for_caller(one.owned());
    facts.local_owned = box_for_caller(one.local_owned());
    const Index extents = one.extents();
    const Index strides = one.strides();
    for (int d = 0; d < facts.ndims; ++d) {
      facts.shadow.lo[d] = one.shadow().lo[d];
      facts.shadow.hi[d] = one.shadow().hi[d];
      facts.extents[d] = extents[d];
      facts.strides[d] = strides[d];
    }
    write_info(info, facts, kFirstInfo);
  });
}

tasuki_status tasuki_field_name(tasuki_field field, char** name) {
  return guarded("tasuki_field_name", [&] { set_text(name, "name", get(field, "field").name()); });
}

tasuki_status tasuki_field_data(tasuki_field field, void** data) {
  return guarded("tasuki_field_data", [&] {
    const AnyField& one = get(field, "field");
    *given(data, "data") = one.raw(one.current());
  });
}

tasuki_status tasuki_field_next(tasuki_field field, void** data) {
  return guarded("tasuki_field_next", [&] {
    const AnyField& one = get(field, "field");
    given(data, "data");
    if (one.copies() == 1)
      throw Failure(TASUKI_BAD_ARGUMENT,
                    fmt::format("argument 'field' is '{}', which has one copy, and so no next one; "
                                "make it with copies = 2",
                                one.name()));
    *data = one.raw(1 - one.current());
  });
}

tasuki_status tasuki_field_copy_data(tasuki_field field, int copy, void** data) {
  return guarded("tasuki_field_copy_data", [&] { *given(data, "data") = get(field, "field").raw(copy); });
}

tasuki_status tasuki_field_swap(tasuki_field field) {
  return guarded("tasuki_field_swap", [&] { get(field, "field").swap(); });
}

tasuki_status tasuki_field_upload(tasuki_field field, const void* host) {
  return guarded("tasuki_field_upload", [&] {
    const AnyField& one = get(field, "field");
    if (one.bytes() > 0) given(host, "host");
    one.upload(host);
  });
}

tasuki_status tasuki_field_download(tasuki_field field, void* host) {
  return guarded("tasuki_field_download", [&] {
    const AnyField& one = get(field, "field");
    if (one.bytes() > 0) given(host, "host");
    one.download(host);
  });
}

tasuki_status tasuki_field_boundary(tasuki_field field, const tasuki_width* width,
                                    tasuki_box boxes[TASUKI_MAX_BOUNDARY], int* count) {
  return guarded("tasuki_field_boundary", [&] {
    const AnyField& one = get(field, "field");
    given(boxes, "boxes");
    given(count, "count");
    const std::vector<Box> found = one.boundary(width_from(*given(width, "width")));
    std::transform(found.begin(), found.end(), boxes, box_for_caller);
    *count = static_cast<int>(found.size());
  });
}

tasuki_status tasuki_field_interior(tasuki_field field, const tasuki_width* width, tasuki_box* box) {
  return guarded("tasuki_field_interior", [&] {
    const AnyField& one = get(field, "field");
    given(box, "box");
    *box = box_for_caller(one.interior(width_from(*given(width, "width"))));
  });
}
