// The normal form: equal bytes in equal order are equal layouts, however spelled; the order is never changed.
#include <doctest/doctest.h>

#include "layout_model.hpp"

using tasuki::Block;
using tasuki::Dim;
using tasuki::Layout;
using tasuki::Pattern;
using namespace layout_model;

namespace {

std::vector<Block> blocks_of(const Layout& layout) {
  return {layout.blocks().begin(), layout.blocks().end()};
}

// The same bytes spelled one by one, so that nothing regular is left to see.
Layout byte_by_byte(const Ints& offsets) {
  return Layout::hindexed(Ints(offsets.size(), 1), offsets, Layout::bytes(1));
}

}  // namespace

TEST_CASE("normal form: many spellings of a column are one layout") {
  const Layout cell = Layout::of<double>();
  const Layout column = Layout::vector(5, 1, 7, cell);
  CHECK(blocks_of(column) == std::vector<Block>{{0, 8, {{5, 56}}}});
  CHECK(column == Layout::hvector(5, 1, 56, cell));
  CHECK(column == Layout::hvector(5, 8, 56, Layout::bytes(1)));
  CHECK(column == Layout::indexed(Ints{1, 1, 1, 1, 1}, Ints{0, 7, 14, 21, 28}, cell));
  CHECK(column == Layout::hindexed(Ints{2, 2, 2, 2, 2}, Ints{0, 56, 112, 168, 224}, Layout::of<float>()));
  CHECK(column == Layout::contiguous(5, Layout::resized(cell, 0, 56)));
  CHECK(column == Layout::contiguous(5, Layout::resized(cell, -24, 56)));
  CHECK(column == Layout::subarray(Ints{5, 7}, Ints{5, 1}, Ints{0, 0}, cell));
  CHECK(column == Layout::structure(Ints{1, 4}, Ints{0, 56},
                                    std::vector<Layout>{cell, Layout::resized(Layout::of<float>(2), 0, 56)}));
  CHECK(column == Layout::structure(Ints{1, 1}, Ints{0, 112},
                                    std::vector<Layout>{Layout::vector(2, 1, 7, cell), Layout::vector(3, 1, 7, cell)}));
  CHECK(column == Layout::contiguous(1, Layout::hvector(1, 1, 999, column)));
  CHECK(column == byte_by_byte(expand(column)));
  CHECK(column != Layout::vector(4, 1, 7, cell));
  CHECK(column != Layout::vector(5, 1, 6, cell));
}

TEST_CASE("normal form: many spellings of a face are one layout") {
  const Layout cell = Layout::of<double>();
  const Layout face = Layout::subarray(Ints{6, 7, 8}, Ints{4, 5, 2}, Ints{1, 1, 3}, cell);
  CHECK(blocks_of(face) == std::vector<Block>{{(56 + 8 + 3) * 8, 16, {{4, 448}, {5, 64}}}});
  const auto at = [](std::int64_t offset, const Layout& layout) {
    return Layout::hindexed(Ints{1}, Ints{offset}, layout);
  };
  CHECK(face == at(536, Layout::hvector(4, 1, 448, Layout::hvector(5, 2, 64, cell))));
  CHECK(face == at(536, Layout::hvector(4, 1, 448, Layout::contiguous(5, Layout::resized(Layout::bytes(16), 0, 64)))));
  CHECK(face == byte_by_byte(expand(face)));
}

TEST_CASE("normal form: whole rows and whole planes merge") {
  const Layout cell = Layout::of<float>();
  CHECK(Layout::subarray(Ints{3, 4, 5}, Ints{3, 4, 5}, Ints{0, 0, 0}, cell) == Layout::bytes(240));
  CHECK(blocks_of(Layout::subarray(Ints{3, 4, 5}, Ints{2, 4, 5}, Ints{1, 0, 0}, cell)) ==
        std::vector<Block>{{80, 160, {}}});
  CHECK(blocks_of(Layout::subarray(Ints{3, 4, 5}, Ints{3, 4, 1}, Ints{0, 0, 2}, cell)) ==
        std::vector<Block>{{8, 4, {{12, 20}}}});
  CHECK(blocks_of(Layout::subarray(Ints{3, 4, 5}, Ints{3, 1, 5}, Ints{0, 3, 0}, cell)) ==
        std::vector<Block>{{60, 20, {{3, 80}}}});
}

TEST_CASE("normal form: runs that touch across elements merge") {
  // 0-7, 16-23 | 24-31, 40-47: the end of one element touches the start of the next.
  const Layout twice = Layout::contiguous(2, Layout::vector(2, 1, 2, Layout::of<double>()));
  CHECK(blocks_of(twice) == std::vector<Block>{{0, 8, {}}, {16, 16, {}}, {40, 8, {}}});
  CHECK(twice.runs() == 3);
  CHECK(twice.pattern() == Pattern::list);
  const Layout often = Layout::contiguous(1000, Layout::vector(64, 1, 64, Layout::of<double>()));
  CHECK(often.runs() == 63001);
  CHECK(often.blocks().size() == 1999);
}

TEST_CASE("normal form: the order is never sorted") {
  const Layout cell = Layout::of<double>();
  const Layout forwards = Layout::vector(4, 1, 2, cell);
  const Layout backwards = Layout::hindexed(Ints{1}, Ints{48}, Layout::vector(4, 1, -2, cell));
  CHECK(backwards.true_lower_bound() == forwards.true_lower_bound());
  CHECK(backwards.true_upper_bound() == forwards.true_upper_bound());
  CHECK(forwards != backwards);
  CHECK(blocks_of(backwards) == std::vector<Block>{{48, 8, {{4, -16}}}});
  // A matrix of 3 x 4 cells by columns: the strides stay in the order of the sequence.
  const Layout column = Layout::resized(Layout::vector(3, 1, 4, cell), 0, 8);
  CHECK(blocks_of(Layout::contiguous(4, column)) == std::vector<Block>{{0, 8, {{4, 8}, {3, 32}}}});
  CHECK(expand(Layout::indexed(Ints{1, 1, 1}, Ints{2, 0, 1}, Layout::bytes(1))) == Ints{2, 0, 1});
}

TEST_CASE("normal form: bytes named again and again stay") {
  const Layout again = Layout::contiguous(1000, Layout::resized(Layout::vector(3, 1, 2, Layout::bytes(4)), 0, 0));
  CHECK(blocks_of(again) == std::vector<Block>{{0, 4, {{1000, 0}, {3, 8}}}});
  CHECK(again.overlaps());
}

TEST_CASE("normal form: random layouts fold as the definition says, and as their bytes one by one do") {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const Pair pair = random.layout(static_cast<int>(random.number(1, 5)), 1500);
    CAPTURE(i);
    CAPTURE(pair.layout.describe());
    CHECK(blocks_of(pair.layout) == fold(pair.model.offsets));
    CHECK(pair.layout == byte_by_byte(pair.model.offsets));
  }
}

TEST_CASE("normal form: nests are folded without expansion to the same result as with it") {
  // Counts around those at which a repetition is recognised; strides that merge, collide and touch by accident.
  Random random(11);
  for (int i = 0; i < 3000; ++i) {
    Layout layout = Layout::bytes(random.number(1, 4));
    Model model = model_bytes(layout.size());
    const std::int64_t ndims = random.number(1, 4);
    for (std::int64_t dim = 0; dim < ndims && model.offsets.size() < 400; ++dim) {
      const std::int64_t count = random.number(1, 11);
      std::int64_t stride = random.number(-30, 30);
      const std::int64_t last = model.offsets.back() + 1;
      if (random.number(0, 2) == 0) stride = last;  // the next one touches the end of this one
      if (random.number(0, 3) == 0) stride = model.extent();
      layout = Layout::hvector(count, 1, stride, layout);
      model = model_hvector(count, 1, stride, model);
    }
    if (random.number(0, 1) == 0) {  // something before it and after it
      const Ints lengths{1, 1, 1},
          displacements{random.number(-20, 20), random.number(-20, 20), random.number(-20, 20)};
      const Model before = model_bytes(2);
      const std::vector<Layout> parts{Layout::bytes(2), layout, layout};
      model = model_structure({{displacements[0], &before}, {displacements[1], &model}, {displacements[2], &model}});
      layout = Layout::structure(lengths, displacements, parts);
    }
    CAPTURE(i);
    CHECK(blocks_of(layout) == fold(model.offsets));
  }
}

TEST_CASE("normal form: a 7-D box, its dimensions placed in random orders") {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const Ints sizes = random.numbers(7, 2, 4);
    Ints strides(7, 1);
    for (std::size_t dim = 6; dim-- > 0;) strides[dim] = strides[dim + 1] * (sizes[dim + 1] + 1);
    const Ints order = random.permutation(7);
    Layout layout = Layout::bytes(2);
    Model model = model_bytes(2);
    std::vector<Dim> dims;
    for (const std::int64_t dim : order) {
      const auto d = static_cast<std::size_t>(dim);
      const std::int64_t stride = strides[d] * (random.number(0, 4) == 0 ? -3 : 3);
      const std::int64_t count = std::min<std::int64_t>(sizes[d], 3);
      layout = Layout::hvector(count, 1, stride, layout);
      model = model_hvector(count, 1, stride, model);
    }
    CAPTURE(i);
    CHECK(expand(layout) == model.offsets);
    CHECK(blocks_of(layout) == fold(model.offsets));
    CHECK(!layout.overlaps());
  }
}

TEST_CASE("patterns: contiguous, block stride, stride and list are told apart") {
  const Layout cell = Layout::of<double>();
  CHECK(Layout::contiguous(9, cell).pattern() == Pattern::contiguous);
  CHECK(Layout::vector(9, 4, 9, cell).pattern() == Pattern::block_stride);
  CHECK(Layout::subarray(Ints{9, 9, 9}, Ints{4, 4, 4}, Ints{1, 1, 1}, cell).pattern() == Pattern::block_stride);
  CHECK(Layout::vector(9, 1, 9, cell).pattern() == Pattern::stride);
  CHECK(Layout::vector(9, 2, 9, cell).pattern() == Pattern::stride);  // 16 bytes: one complex number
  CHECK(Layout::subarray(Ints{9, 9, 9}, Ints{4, 4, 1}, Ints{1, 1, 0}, cell).pattern() == Pattern::stride);
  CHECK(Layout::indexed(Ints{1, 2}, Ints{0, 3}, cell).pattern() == Pattern::list);
  CHECK(to_string(Pattern::block_stride) == "block stride");
}

TEST_CASE("describe says what a layout is in one line") {
  const Layout cell = Layout::of<double>();
  CHECK(Layout().describe() == "empty");
  CHECK(Layout::bytes(64).describe() == "64 B");
  CHECK(Layout::hvector(3, 1, 96, Layout::hvector(4, 1, 16, cell)).describe() == "3 x 4 x 8 B, strides 96 16");
  CHECK(Layout::indexed(Ints{1}, Ints{3}, cell).describe() == "8 B, offset 24");
  CHECK(Layout::indexed(Ints{1, 2}, Ints{0, 3}, cell).describe() == "list of 2 blocks, 2 runs, 24 B");
}
