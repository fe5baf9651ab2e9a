// from_mpi: asks MPI how a type was made, down to its named types. MPI's own bounds are taken at every level, since
// MPIs differ in how they pad structs.
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include "datatypes/decode.hpp"
#include "layout/constructed.hpp"
#include "tasuki/datatype.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Open MPI 5.0 has no calls for large counts, and MPICH's types that were made with them are only understood by these.
#if MPI_VERSION >= 4
#define TASUKI_LARGE_CONTENTS 1
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define TASUKI_VALUE_INDEX 1
#endif

// What MPI_Type_get_contents says. Inner types that are not named are handles to free.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Datatype> types;

  explicit Contents(MPI_Datatype type) { read(type); }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    for (MPI_Datatype& inner : types)
      if (!mpis_own(inner)) MPI_Type_free(&inner);
  }

  void read(MPI_Datatype type) {
#ifdef TASUKI_LARGE_CONTENTS
    MPI_Count ints = 0, addrs = 0, large = 0, inner = 0;
    check(MPI_Type_get_envelope_c(type, &ints, &addrs, &large, &inner, &combiner), "MPI_Type_get_envelope_c");
    if (leaf()) return;
    resize(ints, addrs, large, inner);
    check(MPI_Type_get_contents_c(type, ints, addrs, large, inner, integers.data(), addresses.data(), counts.data(),
                                  types.data()),
          "MPI_Type_get_contents_c");
#else
    int ints = 0, addrs = 0, inner = 0;
    check(MPI_Type_get_envelope(type, &ints, &addrs, &inner, &combiner), "MPI_Type_get_envelope");
    if (leaf()) return;
    resize(ints, addrs, 0, inner);
    check(MPI_Type_get_contents(type, ints, addrs, inner, integers.data(), addresses.data(), types.data()),
          "MPI_Type_get_contents");
#endif
  }

  /// Named, or made by Fortran of a precision: MPI's own, which is not to be freed, and has no inner types.
  bool leaf() const {
    return is_leaf(combiner);
  }

 private:
  static bool is_leaf(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  }
  static bool mpis_own(MPI_Datatype type) {
    int how = 0;
#ifdef TASUKI_LARGE_CONTENTS
    MPI_Count ints = 0, addrs = 0, large = 0, inner = 0;
    if (MPI_Type_get_envelope_c(type, &ints, &addrs, &large, &inner, &how) != MPI_SUCCESS) return true;
#else
    int ints = 0, addrs = 0, inner = 0;
    if (MPI_Type_get_envelope(type, &ints, &addrs, &inner, &how) != MPI_SUCCESS) return true;
#endif
#ifdef TASUKI_VALUE_INDEX
    if (how == MPI_COMBINER_VALUE_INDEX) return true;  // MPI's own as well
#endif
    return is_leaf(how);
  }
  template <class Count>
  void resize(Count ints, Count addrs, Count large, Count inner) {
    integers.resize(static_cast<std::size_t>(ints));
    addresses.resize(static_cast<std::size_t>(addrs));
    counts.resize(static_cast<std::size_t>(large));
    types.resize(static_cast<std::size_t>(inner), MPI_DATATYPE_NULL);
  }
  static void check(int status, const char* call) {
    if (status != MPI_SUCCESS)
      throw Error(ErrorKind::system, fmt::format("from_mpi: {} says error {} of the type", call, status));
  }
};

// A value and an index beside it, as a C struct has them.
Layout pair(std::int64_t value, std::int64_t index) {
  const std::int64_t at = (value + index - 1) / index * index;
  const std::array<std::int64_t, 2> ones{1, 1};
  const std::array<std::int64_t, 2> offsets{0, at};
  const std::array<Layout, 2> parts{Layout::bytes(value), Layout::bytes(index)};
  return Layout::structure(ones, offsets, parts);
}

Layout named(MPI_Datatype type, std::int64_t size, std::int64_t extent) {
  constexpr auto kInt = static_cast<std::int64_t>(sizeof(int));
  if (type == MPI_SHORT_INT) return pair(sizeof(short), kInt);
  if (type == MPI_LONG_INT) return pair(sizeof(long), kInt);
  if (type == MPI_FLOAT_INT) return pair(sizeof(float), kInt);
  if (type == MPI_DOUBLE_INT) return pair(sizeof(double), kInt);
  if (type == MPI_LONG_DOUBLE_INT) return pair(sizeof(long double), kInt);
  if (size != extent)
    throw Error(
        fmt::format("from_mpi: a named type of {} bytes has an extent of {}; it is not known here", size, extent));
  return Layout::bytes(size);
}

// The numbers of `Combiner`, from any of the forms in which MPI keeps them.
class Numbers {
 public:
  explicit Numbers(const Contents& contents) : contents_(contents), large_(!contents.counts.empty()) {}
  // In the small form counts are integers, in the large form counts.
  Numbers& counts(std::size_t number) {
    for (std::size_t i = 0; i < number; ++i) out_.push_back(large_ ? contents_.counts.at(count_++) : integer());
    return *this;
  }
  // In the small form they are addresses, in the large form counts.
  Numbers& bytes(std::size_t number) {
    for (std::size_t i = 0; i < number; ++i)
      out_.push_back(large_ ? contents_.counts.at(count_++) : contents_.addresses.at(address_++));
    return *this;
  }
  Numbers& integers(std::size_t number) {
    for (std::size_t i = 0; i < number; ++i) out_.push_back(integer());
    return *this;
  }
  Numbers& add(std::int64_t number) {
    out_.push_back(number);
    return *this;
  }
  std::int64_t integer() { return contents_.integers.at(integer_++); }
  /// How many blocks an indexed type has: the first number of its contents.
  std::size_t blocks() { return static_cast<std::size_t>(large_ ? contents_.counts.at(count_++) : integer()); }
  std::span<const std::int64_t> all() const { return out_; }

 private:
  const Contents& contents_;
  bool large_ = false;
  std::size_t integer_ = 0, address_ = 0, count_ = 0;
  std::vector<std::int64_t> out_;
};

Layout read(MPI_Datatype type, std::int64_t& unit);

Layout derived(const Contents& contents, std::int64_t& unit) {
  std::vector<Layout> elements;
  for (const MPI_Datatype inner : contents.types) elements.push_back(read(inner, unit));
  Numbers numbers(contents);
  const auto made = [&](Combiner combiner) { return constructed(combiner, numbers.all(), elements); };
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
      return made(Combiner::dup);
    case MPI_COMBINER_CONTIGUOUS:
      numbers.counts(1);
      return made(Combiner::contiguous);
    case MPI_COMBINER_VECTOR:
      numbers.counts(3);
      return made(Combiner::vector);
    case MPI_COMBINER_HVECTOR:
      numbers.counts(2).bytes(1);
      return made(Combiner::hvector);
    case MPI_COMBINER_INDEXED:
      numbers.counts(2 * numbers.blocks());
      return made(Combiner::indexed);
    case MPI_COMBINER_HINDEXED: {
      const std::size_t blocks = numbers.blocks();
      numbers.counts(blocks).bytes(blocks);
      return made(Combiner::hindexed);
    }
    case MPI_COMBINER_INDEXED_BLOCK: {
      const std::size_t blocks = numbers.blocks();
      numbers.counts(1 + blocks);
      return made(Combiner::indexed_block);
    }
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const std::size_t blocks = numbers.blocks();
      numbers.counts(1).bytes(blocks);
      return made(Combiner::hindexed_block);
    }
    case MPI_COMBINER_STRUCT: {
      const std::size_t blocks = numbers.blocks();
      numbers.counts(blocks).bytes(blocks);
      return made(Combiner::structure);
    }
    case MPI_COMBINER_SUBARRAY: {
      const auto ndims = static_cast<std::size_t>(numbers.integer());
      numbers.counts(3 * ndims).add(numbers.integer() == MPI_ORDER_FORTRAN);
      return made(Combiner::subarray);
    }
    case MPI_COMBINER_DARRAY: {
      numbers.integers(2);
      const auto ndims = static_cast<std::size_t>(numbers.integer());
      numbers.counts(ndims);
      for (std::size_t d = 0; d < ndims; ++d) {
        const std::int64_t how = numbers.integer();
        numbers.add(static_cast<std::int64_t>(how == MPI_DISTRIBUTE_NONE    ? Distribution::none
                                              : how == MPI_DISTRIBUTE_BLOCK ? Distribution::block
                                                                            : Distribution::cyclic));
      }
      for (std::size_t d = 0; d < ndims; ++d) {
        const std::int64_t argument = numbers.integer();
        numbers.add(argument == MPI_DISTRIBUTE_DFLT_DARG ? kDefaultArgument : argument);
      }
      numbers.integers(ndims).add(numbers.integer() == MPI_ORDER_FORTRAN);
      return made(Combiner::darray);
    }
    case MPI_COMBINER_RESIZED:
      numbers.bytes(2);
      return made(Combiner::resized);
#ifdef TASUKI_VALUE_INDEX
    case MPI_COMBINER_VALUE_INDEX:
      return pair(elements.at(0).size(), elements.at(1).size());
#endif
    default:
      throw Error(fmt::format("from_mpi: a type was made by combiner {}, which is not known here", contents.combiner));
  }
}

Layout read(MPI_Datatype type, std::int64_t& unit) {
  MPI_Count size = 0, lower_bound = 0, extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_extent_x(type, &lower_bound, &extent);
  const Contents contents(type);
  const Layout layout = contents.leaf() ? named(type, size, extent) : derived(contents, unit);
  if (contents.leaf())
    for (const Block& block : layout.blocks()) unit = std::gcd(unit, block.bytes);
  if (layout.size() != size)
    throw Error(fmt::format("from_mpi: a type names {} bytes, MPI says {}", layout.size(), size));
  return Layout::resized(layout, lower_bound, extent);
}

}  // namespace

Decoded decode(MPI_Datatype type) {
  Decoded decoded;
  decoded.layout = read(type, decoded.unit);
  return decoded;
}

Layout from_mpi(MPI_Datatype type) {
  return decode(type).layout;
}

}  // namespace tasuki
