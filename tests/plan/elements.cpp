// Lists of cells in their compact form: they name the bytes that layouts of the same cells name, zip to the same
// copies, and arrive as they are told.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "layout/elements.hpp"
#include "layout/lists.hpp"
#include "layout/sequence.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;

namespace {

using Numbers = std::vector<std::int64_t>;

// Cells without rule, in runs of random lengths, or in steps; `far`: their numbers take more than 32 bits.
Numbers random_cells(std::mt19937& random, int kind, std::size_t count, bool far) {
  Numbers cells;
  for (std::int64_t cell = 0; cells.size() < count; ++cell) {
    if (kind == 0 || random() % 16 == 0) cell += random() % 3;
    if (kind == 2) cell += 2;
    cells.push_back(cell + (far && cells.size() > count / 2 ? std::int64_t{1} << 33 : 0));
  }
  if (kind == 0) std::shuffle(cells.begin(), cells.end(), random);
  if (kind == 3) std::ranges::reverse(cells);
  return cells;
}

// Cells of 24 bytes.
std::vector<Layout> kinds_of_cells() {
  const Layout number = Layout::bytes(8);
  return {Layout::bytes(24),                                                             // numbers side by side
          Layout::resized(Layout::hvector(3, 1, 1 << 20, number), 0, 8),                 // levels first
          Layout::resized(Layout::bytes(24), 0, 40),                                     // with gaps
          Layout::resized(Layout::bytes(24), 0, -24),                                    // backwards
          Layout::hindexed(Numbers{1, 2}, Numbers{16, 0}, Layout::bytes(8)),             // the last number first
          Layout::resized(Layout::hvector(6, 1, 16, Layout::bytes(4)), 0, 4 * 96 + 4)};  // smaller numbers
}

Layout layout_of(const Layout& cell, const Numbers& cells) {
  return Layout::indexed(Numbers(cells.size(), 1), cells, cell);
}

bool same(const Elements& a, const Elements& b) {
  return a.listed() == b.listed() && a.layout() == b.layout() && a.range() == b.range() &&
         a.element().extent() == b.element().extent();
}

}  // namespace

TEST_CASE("listed elements name the bytes of their layout") {
  std::mt19937 random(3);
  for (const bool far : {false, true})
    for (const int kind : {0, 1, 2, 3})
      for (const std::size_t count : {0, 1, 2, 3, 100})
        for (const Layout& cell : kinds_of_cells()) {
          CAPTURE(far);
          CAPTURE(kind);
          CAPTURE(count);
          CAPTURE(cell.describe());
          const Numbers cells = random_cells(random, kind, count, far);
          const Layout layout = layout_of(cell, cells);
          const Elements listed(cell, CellList(cells));
          CHECK(listed.layout() == layout);
          CHECK(listed.size() == layout.size());
          CHECK(listed.runs() == layout.runs());
          CHECK(listed.range() == ByteRange{layout.true_lower_bound(), layout.true_upper_bound()});
          CHECK(listed.moved(-64).layout() == moved(layout, -64));
          CHECK(Elements(layout).moved(32).layout() == moved(layout, 32));
          CHECK(CellList(cells).size() == std::ssize(cells));
        }
}

TEST_CASE("listed elements zip as their layouts do") {
  std::mt19937 random(4);
  const std::vector<Layout> kinds = kinds_of_cells();
  for (int turn = 0; turn < 200; ++turn) {
    CAPTURE(turn);
    const bool far = turn % 5 == 0;
    const std::size_t count = 1 + random() % 300;
    const auto pick = [&](std::uint32_t n) { return static_cast<int>(random() % n); };
    const Layout& from = kinds[random() % kinds.size()];
    const Layout& to = kinds[random() % kinds.size()];
    Numbers sent = random_cells(random, pick(4), count, far);
    if (count > 2) sent[1] = sent[0];  // a source may name a cell twice
    const Numbers received = random_cells(random, pick(4), count, far);
    const Elements src = Elements(from, CellList(sent)).moved(-8);
    const Elements dst = Elements(to, CellList(received)).moved(24);
    CHECK(zip(src, dst) == zip(src.layout(), dst.layout()));
    CHECK(zip_with_lists(src, dst) == with_lists(zip(src.layout(), dst.layout())));
    const Elements whole(dst.layout());
    CHECK(zip_with_lists(src, whole) == zip_with_lists(src, dst));
    CHECK(zip(whole, dst) == zip(dst.layout(), dst.layout()));
  }
  const Elements three(Layout::bytes(8), CellList(Numbers{1, 2, 5}));
  CHECK_THROWS_AS((void)zip(three, Elements(Layout::bytes(8), CellList(Numbers{1, 2}))), Error);
}

TEST_CASE("listed elements arrive as they are told") {
  std::mt19937 random(5);
  for (const bool far : {false, true})
    for (const int kind : {0, 1, 2, 3}) {
      const CellList cells(random_cells(random, kind, 1000, far));
      std::vector<Elements> parts;
      for (const Layout& cell : kinds_of_cells()) parts.push_back(Elements(cell, cells).moved(std::ssize(parts)));
      parts.emplace_back(Layout::bytes(80));
      parts.emplace_back(Layout::bytes(8), CellList());
      parts.emplace_back(Layout::bytes(8), CellList(Numbers{7}));
      Encoder to;
      tell(parts, to);
      CHECK(to.bytes().size() < (far ? 9 : 5) * 1000 + 2000);  // a list that parts share is told once
      Decoder from(to.bytes());
      const std::vector<Elements> heard = hear_elements(from, parts.size());
      from.end();
      REQUIRE(heard.size() == parts.size());
      for (std::size_t p = 0; p < parts.size(); ++p) CHECK(same(heard[p], parts[p]));
      for (std::size_t p = 1; p < kinds_of_cells().size(); ++p)
        CHECK(heard[p].cells().identity() == heard[0].cells().identity());
    }
  Decoder nothing("");
  CHECK_THROWS_AS((void)hear_elements(nothing, 1), Malformed);
}

TEST_CASE("elements beyond 64 bits are refused") {
  const std::string said = [] {
    try {
      Elements(Layout::bytes(1 << 20), CellList(Numbers{0, std::int64_t{1} << 50}));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  CHECK(said ==
        "a list of cells: a cell is 1125899906842624, which takes a size or byte offset out of 64 bits; make it "
        "smaller");
}
