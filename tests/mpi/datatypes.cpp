// Layouts of MPI datatypes against MPI itself, on one rank: random types and those that others got wrong are packed and
// unpacked by MPI and by their layouts, and spelt anew.
//   mpi_datatypes [TREES [SEED]]
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "layout/packer.hpp"
#include "random_types.hpp"
#include "tasuki/datatype.hpp"
#include "tasuki/error.hpp"

namespace {

using namespace tasuki;
using random_types::Random;

[[noreturn]] void fail(const std::string& text, const char* what) {
  std::fprintf(stderr, "mpi_datatypes: %s: %s\n", what, text.c_str());
  std::exit(1);
}

void expect(bool holds, const std::string& text, const char* what) {
  if (!holds) fail(text, what);
}

constexpr std::int64_t kLargest = 1 << 20;

// Memory that holds all bytes of `layout`, and where its base is.
struct Memory {
  explicit Memory(const Layout& layout, unsigned char fill)
      : bytes(static_cast<std::size_t>(layout.true_upper_bound() - layout.true_lower_bound() + 2), fill),
        base(reinterpret_cast<std::byte*>(bytes.data()) + 1 - layout.true_lower_bound()) {}
  std::vector<unsigned char> bytes;
  std::byte* base;
};

std::vector<std::byte> packed_by_mpi(const void* base, int count, MPI_Datatype type, std::int64_t size) {
  std::vector<std::byte> packed(static_cast<std::size_t>(size) + 64);
  if (size == 0) return {};  // of which MPICH divides by zero, for some types
  int position = 0;
  MPI_Pack(base, count, type, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_SELF);
  packed.resize(static_cast<std::size_t>(position));
  return packed;
}

/// Whether it could be compared: types of more than a megabyte are left out.
bool check(MPI_Datatype type, int count, Random& random, const std::string& text) {
  MPI_Type_commit(&type);
  MPI_Count size = 0, low = 0, extent = 0, true_low = 0, true_extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_extent_x(type, &low, &extent);
  MPI_Type_get_true_extent_x(type, &true_low, &true_extent);
  if (size * count > kLargest || std::abs(extent) > kLargest || true_extent > kLargest) return false;
  const Layout one = from_mpi(type);
  expect(one.size() == size, text, "the size differs");
  expect(one.lower_bound() == low && one.extent() == extent, text, "the bounds differ");
  if (size > 0)  // MPICH's are wider than the bytes that it moves for some structs
    expect(one.true_lower_bound() >= true_low && one.true_upper_bound() <= true_low + true_extent, text,
           "there are bytes outside of MPI's true bounds");
  const Layout layout = Layout::contiguous(count, one);
  Memory memory(layout, 0);
  for (auto& byte : memory.bytes) byte = static_cast<unsigned char>(random());
  const auto expected = packed_by_mpi(memory.base, count, type, size * count);
  expect(static_cast<std::int64_t>(expected.size()) == layout.size(), text, "MPI packs another number of bytes");

  std::vector<std::byte> packed(expected.size());
  layout.pack(memory.base, packed.data());
  expect(packed == expected, text, "the layout packs other bytes");
  const Packer packer(layout);
  expect(packer.size() == layout.size(), text, "the packer has another size");
  std::fill(packed.begin(), packed.end(), std::byte{0});
  packer.pack(memory.base, packed.data());
  expect(packed == expected, text, "the packer packs other bytes");

  for (const Spelling spelling : {Spelling::nested, Spelling::repeated, Spelling::favourite}) {
    Spelt spelt = to_mpi(layout, spelling);
    const auto again = packed_by_mpi(memory.base, static_cast<int>(spelt.count), spelt.type, layout.size());
    expect(again == expected, text + ": " + layout.describe() + (spelling == Spelling::nested ? ", nested" : ""),
           "the type spelt anew packs other bytes");
    if (spelt.count == 1) {
      MPI_Type_get_extent_x(spelt.type, &low, &extent);
      expect(low == layout.lower_bound() && extent == layout.extent(), text, "the type spelt anew has other bounds");
    }
    MPI_Type_free(&spelt.type);
  }

  if (!layout.overlaps() && layout.size() > 0) {
    Memory ours(layout, 0x5a), theirs(layout, 0x5a);
    packer.unpack(packed.data(), ours.base);
    int position = 0;
    MPI_Unpack(expected.data(), static_cast<int>(expected.size()), &position, theirs.base, count, type, MPI_COMM_SELF);
    expect(ours.bytes == theirs.bytes, text, "unpacking changes other bytes");
  }
  return true;
}

void check_and_free(MPI_Datatype type, int count, Random& random, const char* text) {
  expect(check(type, count, random, text), text, "it is too large to be checked");
  MPI_Type_free(&type);
}

// What others got wrong.
void regressions(Random& random) {
  MPI_Datatype type, inner, other;
  MPI_Type_create_resized(MPI_DOUBLE, 0, 4, &type);
  check_and_free(type, 5, random, "resized to less than its size");
  MPI_Type_vector(4, 2, 0, MPI_INT, &type);
  check_and_free(type, 3, random, "a stride of zero");
  MPI_Type_vector(0, 3, 4, MPI_INT, &type);
  check_and_free(type, 3, random, "a count of zero");
  MPI_Type_vector(3, 0, 4, MPI_INT, &type);
  check_and_free(type, 3, random, "blocks of zero");
  check(MPI_DOUBLE_INT, 7, random, "MPI_DOUBLE_INT");

  const int ones[] = {1, 1, 1};
  const MPI_Aint at[] = {0, 8, 20};
  const MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
  MPI_Type_create_struct(3, ones, at, parts, &inner);
  const MPI_Aint apart[] = {64, 0, 128};
  const MPI_Datatype inners[] = {inner, MPI_INT, inner};
  MPI_Type_create_struct(3, ones, apart, inners, &type);
  MPI_Type_free(&inner);
  check_and_free(type, 3, random, "a struct of structs");

  MPI_Type_contiguous(1, MPI_DOUBLE, &inner);
  const int lengths[] = {2, 1, 3};
  const int places[] = {7, 0, 2};
  MPI_Type_indexed(3, lengths, places, inner, &type);
  MPI_Type_free(&inner);
  check_and_free(type, 2, random, "contiguous(1) inside indexed");

  MPI_Type_create_struct(3, ones, at, parts, &type);
  check_and_free(type, 17404, random, "a struct that chunks cut in the middle of an element");

  MPI_Type_create_resized(MPI_INT, -8, 24, &inner);
  MPI_Type_create_hvector(3, 2, -64, inner, &type);
  MPI_Type_free(&inner);
  check_and_free(type, 4, random, "a negative stride over a negative lower bound");
  MPI_Type_create_resized(MPI_INT, 0, -12, &type);
  check_and_free(type, 4, random, "a negative extent");

  MPI_Type_create_f90_real(15, MPI_UNDEFINED, &other);
  if (other != MPI_DATATYPE_NULL) {  // as it is in an MPI without Fortran
    MPI_Type_vector(3, 1, 2, other, &type);
    check_and_free(type, 2, random, "a vector of a Fortran real");
  }

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  MPI_Type_get_value_index(MPI_INT16_T, MPI_INT64_T, &other);
  if (other != MPI_DATATYPE_NULL) {
    MPI_Type_vector(3, 1, 2, other, &type);
    check_and_free(type, 2, random, "a vector of a value and an index");
  }
#endif

  // Sizes over 2 GiB: nothing is moved.
  MPI_Type_vector(1 << 20, 1 << 10, 1 << 12, MPI_DOUBLE, &inner);
  const Layout large = from_mpi(inner);
  expect(large.size() == std::int64_t{8} << 30 && large.true_upper_bound() > (std::int64_t{31} << 30), "8 GiB",
         "a large type's numbers are wrong");
  MPI_Type_free(&inner);

  // Dimensions of more than a nest has.
  std::vector<int> sizes(10, 3), sub(10, 2), starts(10, 1);
  MPI_Type_create_subarray(10, sizes.data(), sub.data(), starts.data(), MPI_ORDER_C, MPI_SHORT, &type);
  check_and_free(type, 2, random, "a sub-array of ten dimensions");
}

// Uncommitted types and inner types have layouts too; a null type is an error.
void uncommitted() {
  MPI_Datatype type;
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  expect(from_mpi(type) == Layout::vector(3, 1, 2, Layout::of<int>()), "vector", "an uncommitted type differs");
  MPI_Type_free(&type);
  bool refused = false;
  try {
    from_mpi(MPI_DATATYPE_NULL);
  } catch (const Error&) {
    refused = true;
  }
  expect(refused, "MPI_DATATYPE_NULL", "it has a layout");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long trees = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  regressions(random);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  long checked = 0;
  for (long i = 0; i < trees; ++i) {
    const auto tree = random_types::random_tree(random, random_types::between(random, 1, 4), true);
    if (!tree.derived) continue;
    const int count = random_types::between(random, 0, 3);
    try {
      checked += check(tree.type, count, random,
                       "tree " + std::to_string(i) + ", count " + std::to_string(count) + ": " + tree.text);
    } catch (const Error& error) {
      fail("tree " + std::to_string(i) + ": " + tree.text, error.what());
    }
    auto done = tree;
    done.free();
  }
  expect(checked > trees / 2, std::to_string(checked), "too few trees could be checked");
  uncommitted();
  std::printf("mpi_datatypes: %ld of %ld random types checked, all equal\n", checked, trees);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
