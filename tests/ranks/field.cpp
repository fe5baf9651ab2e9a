// Fields: shape in memory, copies, the user's memory, life, boundary and interior, errors on every rank.
#include "tasuki/field.hpp"

#include <doctest/doctest.h>
#include <mpi.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "fields/field_storage.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

TEST_CASE("a field has its cells, shadow and padding where strides say, zero-filled and shared") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {9, 10, 11});
  const Field<double> u(grid, {.name = "u", .shadow = Width({1, 2, 0}, {0, 1, 3}), .pad = 5});
  const Box own = grid.owned();
  CHECK(u.owned() == own);
  CHECK(u.extents() == Index{own.extent(0) + 1, own.extent(1) + 3, own.extent(2) + 3});
  const std::int64_t row = own.extent(2) + 3 + 5;
  CHECK(u.strides() == Index{(own.extent(1) + 3) * row, row, 1});
  CHECK(u.bytes() == u.extents()[0] * u.strides()[0] * 8);
  CHECK(u.local_owned() == Box{3, {1, 2, 0}, {1 + own.extent(0), 2 + own.extent(1), own.extent(2)}});
  CHECK(reinterpret_cast<std::uintptr_t>(u.raw(0)) % 64 == 0);
  CHECK(runtime_of(ctx).memory().find(u.raw(0), u.bytes()).valid());
  for (std::int64_t i = 0; i < u.bytes() / 8; ++i) CHECK(u.data()[i] == 0);
  CHECK(u.name() == "u");
  CHECK(u.dtype() == DType::f64);
  CHECK(u.element_bytes() == 8);

  std::int64_t cells = 0;
  u.for_each([&](const Index& at, double& value) {
    for (int d = 0; d < 3; ++d) CHECK((at[d] >= own.lo[d] && at[d] < own.hi[d]));
    value += 1;
    ++cells;
  });
  CHECK(cells == own.cells());
  const Box local = u.local_owned();
  std::int64_t touched = 0;
  for (std::int64_t i = 0; i < u.extents()[0]; ++i)
    for (std::int64_t j = 0; j < u.extents()[1]; ++j)
      for (std::int64_t k = 0; k < u.extents()[2] + 5; ++k) {
        const double value = u.data()[i * u.strides()[0] + j * u.strides()[1] + k];
        const bool owned = i >= local.lo[0] && i < local.hi[0] && j >= local.lo[1] && j < local.hi[1] &&
                           k >= local.lo[2] && k < local.hi[2];
        CHECK(value == (owned ? 1 : 0));
        touched += value != 0 ? 1 : 0;
      }
  CHECK(touched == own.cells());
}

TEST_CASE("two copies take turns, and handles share what is current") {
  Context ctx(MPI_COMM_WORLD);
  Field<int> u(Grid(ctx, {32}), {.copies = 2});
  const Field<int> handle = u;
  CHECK(u.copies() == 2);
  CHECK(u.data() == u.data(0));
  CHECK(u.next() == u.data(1));
  CHECK(u.data(0) != u.data(1));
  u.swap();
  CHECK(handle.current() == 1);
  CHECK(handle.data() == u.data(1));
  CHECK(handle.next() == u.data(0));
  u.swap();
  CHECK(u.current() == 0);
  Field<int> single(Grid(ctx, {32}), {.name = "s"});
  CHECK(single.next() == single.data());
  CHECK(error_of([&] { single.swap(); }) ==
        "Field 's': swap() needs two copies, the field has one; make it with copies = 2");
  CHECK(error_of([&] { (void)single.raw(1); }) == "Field 's': argument 'copy' is 1; the field has 1");
  CHECK(error_of([&] { (void)u.raw(-1); }).find("argument 'copy' is -1") != std::string::npos);
}

TEST_CASE("the user's memory is used as it is") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {8, 8});
  const Box own = grid.owned();
  std::vector<float> a(static_cast<std::size_t>((own.extent(0) + 2) * (own.extent(1) + 2)), 7);
  std::vector<float> b = a;
  Field<float> u(grid, {a.data(), b.data()}, {.copies = 2});
  CHECK(u.bytes() == static_cast<std::int64_t>(a.size() * sizeof(float)));
  const Box last = grid.owned(ctx.size() - 1);
  const std::string bytes = std::to_string((last.extent(0) + 2) * (last.extent(1) + 2) * 4);
  CHECK(u.data() == a.data());
  u.swap();
  CHECK(u.data() == b.data());
  CHECK(a[0] == 7);

  const bool odd = ctx.rank() == ctx.size() - 1;
  const std::string who = "Field 'field': rank " + std::to_string(ctx.size() - 1) + ": ";
  CHECK(error_of([&] { Field<float>(grid, {odd ? nullptr : a.data()}); }) ==
        who + "memory[0] is null; it must point to " + bytes + " bytes");
  CHECK(error_of([&] {
          Field<float>(grid, {a.data(), odd ? a.data() + 1 : b.data()}, {.copies = 2});
        }) == who + "memory[0] and memory[1] overlap: they are 4 bytes apart, and a copy has " + bytes);
  CHECK(error_of([&] {
          Field<float>(grid, {a.data(), b.data()});
        }) == "Field 'field': rank 0: argument 'memory' has 2 pointers; 1 copies need one each");
}

TEST_CASE("a field in use cannot be freed, a free one cannot be used, and its memory comes back") {
  Context ctx(MPI_COMM_WORLD);
  SharedMemory& memory = runtime_of(ctx).memory();
  Field<double> u(Grid(ctx, {ctx.size(), 100000}, {.split = {ctx.size(), 1}}), {.name = "p", .copies = 2});
  const int regions = memory.regions();
  FieldAccess::storage(u)->users = 2;
  CHECK(error_of([&] { u.free(); }) == "Field 'p': free() was called while 2 operations use it; free those first");
  FieldAccess::storage(u)->users = 1;
  CHECK(error_of([&] { u.free(); }) == "Field 'p': free() was called while 1 operation uses it; free that first");
  FieldAccess::storage(u)->users = 0;
  CHECK(u.data() != nullptr);
  u.free();
  CHECK(error_of([&] { (void)u.data(); }) == "Field 'p': its memory was asked for after free()");
  CHECK(error_of([&] { u.swap(); }) == "Field 'p': swap() was called after free()");
  u.free();  // nothing more to free
  const auto collects = memory.allocate(64);
  CHECK(memory.regions() == regions - 2);
}

TEST_CASE("fields keep their context, and go in any order") {
  std::vector<Field<double>> fields;
  {
    Context ctx(MPI_COMM_WORLD);
    for (int i = 0; i < 5; ++i) fields.emplace_back(Grid(ctx, {100 + i, 1000}));
  }
  for (auto& field : fields) field.for_each([](const Index&, double& value) { value = 1; });
  while (!fields.empty()) {
    std::swap(fields[static_cast<std::size_t>(fields[0].grid().context().rank()) % fields.size()], fields.back());
    fields.pop_back();  // which one differs between ranks
  }
}

TEST_CASE("ranks without cells still have their shadow") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {1, 5}, {.split = {ctx.size(), 1}});
  const Field<std::int16_t> u(grid, {.shadow = 2});
  CHECK(u.extents() == Index{(ctx.is_root() ? 1 : 0) + 4, 9});
  const Field<std::int16_t> bare(grid, {.shadow = 0});
  CHECK(bare.bytes() == (ctx.is_root() ? 10 : 0));
  CHECK(bare.raw(0) != nullptr);
  std::int64_t cells = 0;
  bare.for_each([&](const Index&, std::int16_t&) { ++cells; });
  CHECK(cells == (ctx.is_root() ? 5 : 0));
  CHECK(u.boundary(1).size() == (ctx.is_root() ? 1U : 0U));
  CHECK(u.interior(1).empty());
}

TEST_CASE("boundary boxes and the interior are disjoint and together all owned cells, for any width") {
  Context ctx(MPI_COMM_WORLD);
  std::mt19937 random(11);
  const auto up_to = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n + 1)); };
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::int64_t> extents;
    for (int d = 0; d < 1 + trial % 3; ++d) extents.push_back(1 + up_to(12));
    const Field<char> u(Grid(ctx, extents), {.shadow = up_to(2)});
    Width width;
    for (int d = 0; d < kMaxDims; ++d) {
      width.lo[d] = up_to(4);
      width.hi[d] = up_to(4);
    }
    if (trial % 10 == 9) width.lo[0] = std::numeric_limits<std::int64_t>::max();
    const Box all = u.local_owned();
    const Box inner = u.interior(width);
    std::int64_t cells = inner.cells();
    std::vector<Box> boxes = u.boundary(width);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      cells += boxes[i].cells();
      CHECK_FALSE(boxes[i].empty());
      CHECK(intersect(boxes[i], all) == boxes[i]);
      CHECK(intersect(boxes[i], inner).empty());
      for (std::size_t j = 0; j < i; ++j) CHECK(intersect(boxes[i], boxes[j]).empty());
    }
    CHECK(cells == all.cells());
    if (!inner.empty())
      for (int d = 0; d < all.ndims; ++d) {
        CHECK(inner.lo[d] == all.lo[d] + width.lo[d]);
        CHECK(inner.hi[d] == all.hi[d] - width.hi[d]);
      }
  }
  const Field<char> u(Grid(ctx, {8}), {.name = "u"});
  CHECK(error_of([&] { (void)u.interior(-1); }) ==
        "Field 'u': argument 'width' is -1 below and -1 above in dimension 0; a width must be 0 or more");
}

TEST_CASE("bad arguments on one rank are an error on all, and differences are named") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {8, 8});
  const int last = ctx.size() - 1;
  const bool odd = ctx.rank() == last;
  const std::string who = "Field 'u': rank " + std::to_string(last) + ": ";
  const auto make = [&](const FieldOptions& options) { return error_of([&] { const Field<float> u(grid, options); }); };
  CHECK(make({.name = "u", .shadow = Width({1, odd ? -1 : 1}, {1, 1})}) ==
        who + "argument 'shadow' has width -1 below and 1 above in dimension 1; a width must be 0 or more");
  CHECK(make({.name = "u", .copies = odd ? 3 : 1}) == who + "argument 'copies' is 3; it must be 1 or 2");
  CHECK(make({.name = "u", .copies = odd ? 0 : 1}) == who + "argument 'copies' is 0; it must be 1 or 2");
  CHECK(make({.name = "u", .pad = odd ? -1 : 0}) == who + "argument 'pad' is -1; it must be 0 or more");
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (const Width& huge : {Width(kHuge), Width(kHuge / 4), Width({1LL << 32, 1LL << 32}, {0, 0})})
    CHECK(make({.name = "u", .shadow = odd ? huge : Width(1)}).find(who) == 0);
  CHECK(make({.name = "u", .pad = odd ? kHuge : 0}).find(who) == 0);
  if (ctx.size() > 1) {
    const std::string differs = " differs between ranks: rank 0 has ";
    const std::string and_last = ", rank " + std::to_string(last) + " has ";
    CHECK(make({.name = "u", .copies = odd ? 2 : 1}) ==
          "Field 'u': argument 'copies'" + differs + "1" + and_last + "2");
    CHECK(make({.name = "u", .shadow = odd ? 2 : 1}) ==
          "Field 'u': argument 'shadow.lo'" + differs + "1, 1" + and_last + "2, 2");
    CHECK(make({.name = odd ? "v" : "u"})
              .find("rank 0 makes Field 'u', rank " + std::to_string(last) + " makes Field 'v'") != std::string::npos);
  }
  CHECK(make({.name = "u"}) == "no error");
}

TEST_CASE("a field that does not fit into memory is an error with sizes on every rank") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {std::int64_t{1} << 20, std::int64_t{1} << 30});
  const std::string error = error_of([&] { const Field<double> u(grid); });
  CHECK(error.find("Field 'field': rank 0: SharedMemory: rank 0 could not get ") == 0);
  CHECK(error.find(" TiB") != std::string::npos);
}

TEST_CASE("widths are made from lists of equal length") {
  CHECK(Width({1, 2}, {3, 4}).hi[1] == 4);
  CHECK(Width({1}, {1}) != Width(1));
  CHECK(error_of([] {
          Width({1, 2}, {3});
        }) == "Width: argument 'below' has 2 entries and 'above' 1; both need the same number, at most 7");
  const std::vector<std::int64_t> eight(8, 1);
  CHECK(error_of([&] { Width(eight, eight); }).find("at most 7") != std::string::npos);
}

namespace {

// The halo of a field whose local cell (i, j) is at data + i * rows + j * columns bytes.
void check_halo_of(Context& ctx, const Grid& grid, std::byte* first, std::int64_t rows, std::int64_t columns) {
  Field<float> u(grid, {reinterpret_cast<float*>(first)}, {.name = "u", .strides = {rows, columns}});
  CHECK(u.byte_strides()[0] == rows);
  CHECK(u.raw(0) == first);
  Halo halo(HaloField(u), {});
  CHECK(verify(halo).ok());
  for (int step = 0; step < 3; ++step) {
    const auto value = [&](std::int64_t i, std::int64_t j) {
      const std::int64_t rows_in_all = grid.extent(0);
      const std::int64_t columns_in_all = grid.extent(1);
      i = (i + rows_in_all) % rows_in_all;
      j = (j + columns_in_all) % columns_in_all;
      return static_cast<float>(step * 1000 + i * columns_in_all + j);
    };
    u.for_each([&](const Index& at, float& cell) { cell = value(at[0], at[1]); });
    halo.start();
    halo.wait();
    const Box own = grid.owned();
    for (std::int64_t i = 0; i < u.extents()[0]; ++i)
      for (std::int64_t j = 0; j < u.extents()[1]; ++j) {
        float cell = 0;
        std::memcpy(&cell, first + i * rows + j * columns, sizeof cell);
        CHECK(cell == value(own.lo[0] + i - 1, own.lo[1] + j - 1));
      }
  }
  CHECK(ctx.size() == u.grid().context().size());
}

}  // namespace

TEST_CASE("fields lie in the user's memory in any order that strides say") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {3 * ctx.size() + 1, 5}, {.split = {ctx.size(), 1}, .periodic = {true, true}});
  const std::int64_t rows = grid.owned().extent(0) + 2;
  const std::int64_t columns = grid.owned().extent(1) + 2;
  std::vector<std::byte> memory(static_cast<std::size_t>(4 * rows * columns * 8 + 64));
  std::byte* const first = memory.data();
  SUBCASE("C") {
    check_halo_of(ctx, grid, first, columns * 4, 4);
  }
  SUBCASE("Fortran") {
    check_halo_of(ctx, grid, first, 4, rows * 4);
  }
  SUBCASE("every other, backwards") {
    check_halo_of(ctx, grid, first + (rows - 1) * columns * 8 + (columns - 1) * 8, -columns * 8, -8);
  }
  SUBCASE("no whole number of elements apart") {
    check_halo_of(ctx, grid, first, columns * 6, 6);
  }
  SUBCASE("an order of each rank's own") {
    const bool odd = ctx.rank() % 2 == 1;
    check_halo_of(ctx, grid, first, odd ? 4 : columns * 4, odd ? rows * 4 : 4);
  }
}

TEST_CASE("strides that cannot be are refused on every rank") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {4 * ctx.size(), 5}, {.split = {ctx.size(), 1}});
  std::vector<float> memory(1000);
  const int last = ctx.size() - 1;
  const auto with = [&](std::vector<std::int64_t> strides, std::int64_t pad = 0) {
    return error_of(
        [&] { Field<float>(grid, {memory.data()}, {.name = "u", .pad = pad, .strides = std::move(strides)}); });
  };
  const std::string who = "Field 'u': rank " + std::to_string(last) + ": ";
  const bool odd = ctx.rank() == last;
  CHECK(with(odd ? std::vector<std::int64_t>{4, 4} : std::vector<std::int64_t>{28, 4}) ==
        who + "argument 'strides' is (4, 4): cells of an array of (6, 7) elements of 4 bytes would share bytes");
  CHECK(with(odd ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{28, 4}) ==
        who + "argument 'strides' is (4); a grid of 2 dimensions needs 2");
  CHECK(with({28, 4}, 3) ==
        "Field 'u': rank 0: argument 'pad' is 3, but 'strides' were given, which say it: leave 'pad' out");
  CHECK(error_of([&] {
          Field<float>(grid, {.name = "u", .strides = {28, 4}});
        }).find("is for memory of the user's") != std::string::npos);
  const Field<float> u(grid, {memory.data()}, {.name = "u", .strides = {42, 6}});
  CHECK(error_of([&] { (void)u.strides(); }).find("42 bytes apart in dimension 0, no whole number") !=
        std::string::npos);
  CHECK(error_of([&] { u.upload(memory.data()); }).find("the field is not in C order") != std::string::npos);
  const Field<float> plain(grid, {memory.data()}, {.name = "v", .strides = {36, 4}});
  CHECK(plain.strides() == Index{9, 1});
  CHECK(plain.bytes() == 6 * 36);
}
