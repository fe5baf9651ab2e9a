// The C interface of Layout.
#include <fmt/format.h>

#include "api/reading.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

constexpr std::size_t kFirstInfo = sizeof(tasuki_layout_info);

static_assert(TASUKI_EMPTY == static_cast<int>(Pattern::empty) && TASUKI_LIST == static_cast<int>(Pattern::list));

// What every constructor does: the layout that `make` returns becomes a handle.
template <class Make>
tasuki_status construct(const char* function, tasuki_layout* layout, Make&& make) {
  return guarded(function, [&] {
    given(layout, "layout");
    *layout = keep<tasuki_layout>(std::make_unique<Layout>(make()));
  });
}

const Layout& element_of(tasuki_layout element) {
  return get(element, "element");
}

std::vector<std::int64_t> entries(const std::int64_t* list, int count, const char* argument) {
  if (count < 0) throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'count' is {}; it must be 0 or more", count));
  return list_from(list, count, argument);
}

}  // namespace

tasuki_status tasuki_layout_bytes(int64_t count, tasuki_layout* layout) {
  return construct("tasuki_layout_bytes", layout, [&] { return Layout::bytes(count); });
}

tasuki_status tasuki_layout_contiguous(int64_t count, tasuki_layout element, tasuki_layout* layout) {
  return construct("tasuki_layout_contiguous", layout, [&] { return Layout::contiguous(count, element_of(element)); });
}

tasuki_status tasuki_layout_vector(int64_t count, int64_t block_length, int64_t stride, tasuki_layout element,
                                   tasuki_layout* layout) {
  return construct("tasuki_layout_vector", layout,
                   [&] { return Layout::vector(count, block_length, stride, element_of(element)); });
}

tasuki_status tasuki_layout_hvector(int64_t count, int64_t block_length, int64_t stride_bytes, tasuki_layout element,
                                    tasuki_layout* layout) {
  return construct("tasuki_layout_hvector", layout,
                   [&] { return Layout::hvector(count, block_length, stride_bytes, element_of(element)); });
}

tasuki_status tasuki_layout_subarray(int ndims, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts,
                                     tasuki_layout element, tasuki_layout* layout) {
  return construct("tasuki_layout_subarray", layout, [&] {
    if (ndims < 1 || ndims > kMaxDims)
      throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'ndims' is {}; it must be 1 to {}", ndims, kMaxDims));
    return Layout::subarray(entries(sizes, ndims, "sizes"), entries(subsizes, ndims, "subsizes"),
                            entries(starts, ndims, "starts"), element_of(element));
  });
}

tasuki_status tasuki_layout_indexed(int count, const int64_t* block_lengths, const int64_t* displacements,
                                    tasuki_layout element, tasuki_layout* layout) {
  return construct("tasuki_layout_indexed", layout, [&] {
    return Layout::indexed(entries(block_lengths, count, "block_lengths"),
                           entries(displacements, count, "displacements"), element_of(element));
  });
}

tasuki_status tasuki_layout_hindexed(int count, const int64_t* block_lengths, const int64_t* displacements,
                                     tasuki_layout element, tasuki_layout* layout) {
  return construct("tasuki_layout_hindexed", layout, [&] {
    return Layout::hindexed(entries(block_lengths, count, "block_lengths"),
                            entries(displacements, count, "displacements"), element_of(element));
  });
}

tasuki_status tasuki_layout_structure(int count, const int64_t* block_lengths, const int64_t* displacements,
                                      const tasuki_layout* elements, tasuki_layout* layout) {
  return construct("tasuki_layout_structure", layout, [&] {
    const std::vector<std::int64_t> lengths = entries(block_lengths, count, "block_lengths");
    const std::vector<std::int64_t> places = entries(displacements, count, "displacements");
    std::vector<Layout> types;
    if (count > 0) given(elements, "elements");
    for (int i = 0; i < count; ++i) types.push_back(get(elements[i], "elements"));
    return Layout::structure(lengths, places, types);
  });
}

tasuki_status tasuki_layout_resized(tasuki_layout element, int64_t lower_bound, int64_t extent, tasuki_layout* layout) {
  return construct("tasuki_layout_resized", layout,
                   [&] { return Layout::resized(element_of(element), lower_bound, extent); });
}

tasuki_status tasuki_layout_free(tasuki_layout* layout) {
  return let_go("tasuki_layout_free", layout, "layout", [](Layout&) {});
}

tasuki_status tasuki_layout_get_info(tasuki_layout layout, tasuki_layout_info* info) {
  return guarded("tasuki_layout_get_info", [&] {
    const Layout& one = get(layout, "layout");
    tasuki_layout_info facts{};
    facts.bytes = one.size();
    facts.lower_bound = one.lower_bound();
    facts.extent = one.extent();
    facts.true_lower_bound = one.true_lower_bound();
    facts.true_upper_bound = one.true_upper_bound();
    facts.runs = one.runs();
    facts.pattern = static_cast<int>(one.pattern());
    facts.overlaps = one.overlaps() ? 1 : 0;
    write_info(info, facts, kFirstInfo);
  });
}

tasuki_status tasuki_layout_equal(tasuki_layout a, tasuki_layout b, int* equal) {
  return guarded("tasuki_layout_equal", [&] { *given(equal, "equal") = get(a, "a") == get(b, "b") ? 1 : 0; });
}

tasuki_status tasuki_layout_pack(tasuki_layout layout, const void* base, void* packed) {
  return guarded("tasuki_layout_pack", [&] {
    const Layout& one = get(layout, "layout");
    if (one.size() == 0) return;
    one.pack(given(base, "base"), given(packed, "packed"));
  });
}

tasuki_status tasuki_layout_unpack(tasuki_layout layout, const void* packed, void* base) {
  return guarded("tasuki_layout_unpack", [&] {
    const Layout& one = get(layout, "layout");
    if (one.size() == 0) return;
    one.unpack(given(packed, "packed"), given(base, "base"));
  });
}

tasuki_status tasuki_layout_describe(tasuki_layout layout, char** text) {
  return guarded("tasuki_layout_describe", [&] { set_text(text, "text", get(layout, "layout").describe()); });
}

namespace {

// Handles for all of `made`, or for none.
void keep_all(const std::vector<Layout>& made, tasuki_layout* blocks) {
  std::vector<tasuki_layout> kept;
  try {
    for (const Layout& one : made) kept.push_back(keep<tasuki_layout>(std::make_unique<Layout>(one)));
  } catch (...) {
    for (tasuki_layout& one : kept) tasuki_layout_free(&one);
    throw;
  }
  std::copy(kept.begin(), kept.end(), blocks);
}

void check_blocks(int count, const tasuki_layout* blocks) {
  if (count < 0)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'count' is {}; it must not be negative", count));
  if (count > 0) given(blocks, "blocks");
}

}  // namespace

tasuki_status tasuki_blocks_of(tasuki_layout block, int count, tasuki_layout* blocks) {
  return guarded("tasuki_blocks_of", [&] {
    const Layout& one = get(block, "block");
    check_blocks(count, blocks);
    keep_all(blocks_of(one, count), blocks);
  });
}

tasuki_status tasuki_blocks_of_counts(tasuki_layout element, int count, const int64_t* counts,
                                      const int64_t* displacements, tasuki_layout* blocks) {
  return guarded("tasuki_blocks_of_counts", [&] {
    const Layout& one = get(element, "element");
    check_blocks(count, blocks);
    keep_all(blocks_of(one, list_from(counts, count, "counts"), list_from(displacements, count, "displacements")),
             blocks);
  });
}

tasuki_status tasuki_blocks_of_elements(int count, const tasuki_layout* elements, const int64_t* counts,
                                        const int64_t* displacements, tasuki_layout* blocks) {
  return guarded("tasuki_blocks_of_elements", [&] {
    check_blocks(count, blocks);
    const auto all = layouts_from(elements, count, "elements", true);
    keep_all(blocks_of(all, list_from(counts, count, "counts"), list_from(displacements, count, "displacements")),
             blocks);
  });
}

tasuki_status tasuki_layouts_free(int count, tasuki_layout* layouts) {
  return guarded("tasuki_layouts_free", [&] {
    check_blocks(count, layouts);
    for (int i = 0; i < count; ++i) get(layouts[i], fmt::format("layouts[{}]", i).c_str());
    for (int i = 0; i < count; ++i)
      if (const tasuki_status status = tasuki_layout_free(&layouts[i]); status != TASUKI_OK)
        throw Failure(status, fmt::format("argument 'layouts[{}]' stands in the list twice", i));
  });
}
