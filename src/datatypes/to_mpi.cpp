// to_mpi: a layout's nests as hvectors of unsigned integers.
#include <algorithm>
#include <climits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include "tasuki/datatype.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// A type that is freed unless it is released.
class Made {
 public:
  explicit Made(MPI_Datatype type = MPI_DATATYPE_NULL) : type_(type) {}
  Made(Made&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  Made& operator=(Made&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~Made() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }
  MPI_Datatype get() const { return type_; }
  MPI_Datatype release() { return std::exchange(type_, MPI_DATATYPE_NULL); }

 private:
  MPI_Datatype type_;
};

int as_int(std::int64_t number, const char* what) {
  if (number < INT_MIN || number > INT_MAX)
    throw Error(ErrorKind::not_possible,
                fmt::format("to_mpi: {} is {}, which MPI's calls with 32-bit counts cannot take", what, number));
  return static_cast<int>(number);
}

template <class Call, class... Arguments>
Made make(const char* name, Call call, Arguments... arguments) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int status = call(arguments..., &type);
  if (status != MPI_SUCCESS) throw Error(ErrorKind::system, fmt::format("to_mpi: {} says error {}", name, status));
  return Made(type);
}

struct Element {
  MPI_Datatype type;
  std::int64_t bytes;
};
Element element_of(std::int64_t block, std::int64_t unit) {
  block = std::gcd(block, unit);
  if (block % 8 == 0) return {MPI_UINT64_T, 8};
  if (block % 4 == 0) return {MPI_UINT32_T, 4};
  if (block % 2 == 0) return {MPI_UINT16_T, 2};
  return {MPI_UINT8_T, 1};
}

// `count` times `length` of `type`, which is `bytes` in all, `stride` bytes apart.
Made repeated(std::int64_t count, int length, std::int64_t stride, MPI_Datatype type, std::int64_t bytes) {
  const int times = as_int(count, "a count");
  if (stride < 0 && -stride <= bytes) {  // some of which Open MPI takes for a contiguous range if it is an hvector
    std::vector<MPI_Aint> offsets(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) offsets[static_cast<std::size_t>(i)] = i * stride;
    return make("MPI_Type_create_hindexed_block", MPI_Type_create_hindexed_block, times, length, offsets.data(), type);
  }
  return make("MPI_Type_create_hvector", MPI_Type_create_hvector, times, length, static_cast<MPI_Aint>(stride), type);
}

// The nest without its offset and without its `skip` outermost dimensions.
Made nest_of(const Block& nest, std::size_t skip, std::int64_t unit) {
  const Element element = element_of(nest.bytes, unit);
  const int length = as_int(nest.bytes / element.bytes, "a block's length");
  std::size_t left = nest.dims.size();
  if (left == skip) return make("MPI_Type_contiguous", MPI_Type_contiguous, length, element.type);
  const Dim& inner = nest.dims[--left];
  Made type = repeated(inner.count, length, inner.stride, element.type, nest.bytes);
  std::int64_t bytes = nest.bytes * inner.count;
  while (left > skip) {
    const Dim& outer = nest.dims[--left];
    type = repeated(outer.count, 1, outer.stride, type.get(), bytes);
    bytes *= outer.count;
  }
  return type;
}

Made placed(Made type, std::int64_t offset) {
  if (offset == 0) return type;
  const MPI_Aint at = offset;
  return make("MPI_Type_create_hindexed_block", MPI_Type_create_hindexed_block, 1, 1, &at, type.get());
}

// Contiguous blocks, as one indexed type.
Made list_of(std::span<const Block> blocks, std::int64_t unit) {
  const std::int64_t first = blocks.front().bytes;
  const int count = as_int(std::ssize(blocks), "the number of blocks");
  std::vector<MPI_Aint> offsets;
  for (const Block& block : blocks) offsets.push_back(block.offset);
  if (std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) { return block.bytes == first; })) {
    const Element element = element_of(first, unit);
    return make("MPI_Type_create_hindexed_block", MPI_Type_create_hindexed_block, count,
                as_int(first / element.bytes, "a block's length"), offsets.data(), element.type);
  }
  std::int64_t all = 0;
  for (const Block& block : blocks) all |= block.bytes;
  const Element element = element_of(all, unit);
  std::vector<int> lengths;
  for (const Block& block : blocks) lengths.push_back(as_int(block.bytes / element.bytes, "a block's length"));
  return make("MPI_Type_create_hindexed", MPI_Type_create_hindexed, count, lengths.data(), offsets.data(),
              element.type);
}

Made struct_of(std::span<const Block> blocks, std::int64_t unit) {
  std::vector<Made> made;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> offsets;
  const std::vector<int> ones(blocks.size(), 1);
  for (const Block& block : blocks) {
    made.push_back(nest_of(block, 0, unit));
    types.push_back(made.back().get());
    offsets.push_back(block.offset);
  }
  return make("MPI_Type_create_struct", MPI_Type_create_struct, as_int(std::ssize(blocks), "the number of blocks"),
              ones.data(), offsets.data(), types.data());
}

Made whole(const Layout& layout, std::int64_t unit) {
  const auto blocks = layout.blocks();
  if (blocks.empty()) return make("MPI_Type_contiguous", MPI_Type_contiguous, 0, MPI_UINT8_T);
  if (blocks.size() == 1) return placed(nest_of(blocks[0], 0, unit), blocks[0].offset);
  if (std::all_of(blocks.begin(), blocks.end(), [](const Block& block) { return block.dims.empty(); }))
    return list_of(blocks, unit);
  return struct_of(blocks, unit);
}

Made resized(Made type, std::int64_t lower_bound, std::int64_t extent) {
  MPI_Count low = 0, length = 0;
  MPI_Type_get_extent_x(type.get(), &low, &length);
  if (low == lower_bound && length == extent) return type;
  return make("MPI_Type_create_resized", MPI_Type_create_resized, type.get(), static_cast<MPI_Aint>(lower_bound),
              static_cast<MPI_Aint>(extent));
}

}  // namespace

Spelt to_mpi(const Layout& layout, Spelling spelling, std::int64_t unit) {
#ifdef OPEN_MPI
  constexpr Spelling kFavourite = Spelling::nested;
#else
  constexpr Spelling kFavourite = Spelling::repeated;
#endif
  if (spelling == Spelling::favourite) spelling = kFavourite;
  Spelt spelt{1, MPI_DATATYPE_NULL};
  Made type;
  const auto blocks = layout.blocks();
  // Elements can follow each other upwards only.
  if (spelling == Spelling::repeated && blocks.size() == 1 && !blocks[0].dims.empty() && blocks[0].dims[0].stride > 0) {
    const Dim& outer = blocks[0].dims[0];
    type = resized(placed(nest_of(blocks[0], 1, unit), blocks[0].offset), 0, outer.stride);
    spelt.count = outer.count;
  } else {
    type = resized(whole(layout, unit), layout.lower_bound(), layout.extent());
  }
  MPI_Datatype committed = type.get();
  const int status = MPI_Type_commit(&committed);
  if (status != MPI_SUCCESS)
    throw Error(ErrorKind::system, fmt::format("to_mpi: MPI_Type_commit says error {}", status));
  spelt.type = type.release();
  return spelt;
}

}  // namespace tasuki
