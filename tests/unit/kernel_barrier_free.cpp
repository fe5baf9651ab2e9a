// Barrier-free groups (kernels/barrier_free.hpp), of two ranks, carried out on the host: whatever the order of the
// blocks, each has what its cells read, and only blocks that answer each other go without barriers.
#include "kernels/barrier_free.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu_view.hpp"
#include "kernels/listed.hpp"
#include "row_view.hpp"
#include "shipped_machine.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;
using namespace gpu_view;

namespace {

constexpr std::uint64_t kEpoch = 5;
constexpr std::int64_t kRows = 40;     // in memory, two of them shadow
constexpr std::int64_t kColumns = 46;  // likewise
constexpr int kWarps = 4;

/// Two ranks beside each other, each with kRows times kColumns cells in memory; the dimension that is not split is
/// periodic.
class TwoRanks {
 public:
  explicit TwoRanks(const std::vector<std::vector<std::int64_t>>& cuts, bool split_rows = true, std::int64_t shadow = 1,
                    std::int64_t element = 4) {
    HaloShape halo;
    const std::int64_t down = split_rows ? 2 : 1;
    const std::int64_t across = split_rows ? 1 : 2;
    const std::int64_t rows = kRows - 2 * shadow;
    const std::int64_t columns = kColumns - 2 * shadow;
    halo.extents = {down * rows, across * columns};
    halo.grid.split = {static_cast<int>(down), static_cast<int>(across)};
    halo.grid.periodic = {!split_rows, split_rows};
    halo.fields.push_back({.name = "u",
                           .element_bytes = element,
                           .dtype = element == 4 ? DType::f32 : DType::none,
                           .shadow = shadow,
                           .width = shadow,
                           .memory = Memory::device});
    halo.cuts = cuts;
    halo.path = "peer:ll";
    const Planned planned = plan(shipped_machine("h200-2"), halo);
    CHECK(verify(planned.plans()).ok());
    for (const Plan& plan : planned.plans()) {
      programs.push_back(bound(plan, [this](const Buffer& buffer) { return memory_of(buffer); }));
      lowered.push_back(lower(programs.back(), 64, true));
    }
    for (int rank = 0; rank < 2; ++rank) {
      FieldCells field{element, {kRows, kColumns}, {}, shadow, shadow};
      field.owned.ndims = 2;
      field.owned.lo = {split_rows ? rank * rows : 0, split_rows ? 0 : rank * columns};
      field.owned.hi = {field.owned.lo[0] + rows, field.owned.lo[1] + columns};
      fields.push_back({field});
      UserBuffer buffer;
      buffer.name = "u";
      buffer.bytes = kRows * kColumns * element;
      buffer.memory = {this->field(rank)};
      buffer.alternating = true;
      buffers.push_back({buffer});
    }
  }

  std::byte* field(int rank) { return memory_.at({rank, "u"})->data(); }
  std::int32_t& cell(int rank, std::int64_t row, std::int64_t column) {
    return reinterpret_cast<std::int32_t*>(field(rank))[(row + 1) * kColumns + column + 1];
  }

  std::vector<Program> programs;
  std::vector<GpuProgram> lowered;
  std::vector<std::vector<FieldCells>> fields;
  std::vector<std::vector<UserBuffer>> buffers;

 private:
  std::byte* memory_of(const Buffer& buffer) {
    auto& found = memory_[{buffer.rank, buffer.label()}];
    const std::int64_t lines = (buffer.bytes + kLLLineData - 1) / kLLLineData;
    const std::int64_t bytes = buffer.home == Home::ll ? lines * kLLLineBytes : buffer.bytes;
    if (!found) found = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes * buffer.ring + 64));
    return found->data();
  }
  std::map<std::pair<int, std::string>, std::shared_ptr<std::vector<std::byte>>> memory_;
};

// Blocks of so many columns of a rank each, those of rank 1 moved by so many.
std::vector<std::vector<Box>> columns_of(const Box& owned, std::int64_t columns, std::int64_t moved) {
  std::vector<std::vector<Box>> cells;
  for (std::int64_t at = -moved; at < owned.hi[1]; at += columns) {
    Box box = owned;
    box.lo[1] = std::max<std::int64_t>(0, at);
    box.hi[1] = std::min(owned.hi[1], at + columns);
    if (!box.empty()) cells.push_back({box});
  }
  return cells;
}

ListedByCells listed_of(TwoRanks& two, int rank, const std::vector<std::vector<Box>>& cells) {
  const auto at = static_cast<std::size_t>(rank);
  const BlockCells owners(two.fields[at], two.buffers[at], cells);
  CHECK(owners.complaint().empty());
  auto made = listed_by_cells(two.programs[at].plan, two.lowered[at], owners, kWarps);
  REQUIRE(std::holds_alternative<ListedByCells>(made));
  return std::get<ListedByCells>(std::move(made));
}

// A block's moves of a kind.
void carry_out(const DealtMoves& dealt, int block, MoveKind kind) {
  const std::size_t each = static_cast<std::size_t>(kWarps) * static_cast<std::size_t>(dealt.turns);
  for (std::size_t n = static_cast<std::size_t>(block) * each; n < (static_cast<std::size_t>(block) + 1) * each; ++n) {
    const ListedMove& move = dealt.moves[n];
    if (move.kind != MoveKind::none) CHECK(n / static_cast<std::size_t>(dealt.turns) % kWarps + 1 < kWarps);
    if (move.kind != kind) continue;
    for (int row = 0; row < move.rows; ++row) {
      std::array<RowPlaces, kLanes> at{};
      std::copy_n(dealt.places.begin() +
                      static_cast<std::ptrdiff_t>(
                          (n * static_cast<std::size_t>(dealt.rows) + static_cast<std::size_t>(row)) * kLanes),
                  kLanes, at.begin());
      std::byte* const src = base_of(move.src, kEpoch);
      std::byte* const dst = base_of(move.dst, kEpoch);
      if (kind == MoveKind::fill) fill_line(at.data(), src, dst + move.lines[row]);
      if (kind == MoveKind::copy) copy_row(at.data(), move.log_unit, src, dst);
      if (kind != MoveKind::unpack) continue;
      for (RowPlaces& lane : at)
        for (std::int32_t& place : lane.at)
          if (place == kOthers) place = kNowhere;
      take_line(at.data(), src + move.lines[row], dst);
    }
  }
}

}  // namespace

TEST_CASE("blocks of a barrier-free group have what their cells read, in any order of the blocks") {
  std::mt19937 random(11);
  for (const std::int64_t columns : {1, 3, 7, 22, 44}) {
    CAPTURE(columns);
    std::vector<std::int64_t> cuts;
    for (std::int64_t at = columns; at < kColumns - 2; at += columns) cuts.push_back(at);
    TwoRanks two({{}, cuts});
    std::vector<ListedByCells> listed;
    std::vector<std::vector<std::vector<Box>>> cells;
    for (int rank = 0; rank < 2; ++rank) {
      cells.push_back(columns_of(two.fields[static_cast<std::size_t>(rank)][0].owned, columns, 0));
      listed.push_back(listed_of(two, rank, cells.back()));
    }
    CHECK(unanswered(listed[0].lines, 0, listed[1].lines, 1).empty());
    CHECK(unanswered(listed[1].lines, 1, listed[0].lines, 0).empty());
    for (int rank = 0; rank < 2; ++rank)
      for (std::int64_t i = -1; i <= kRows - 2; ++i)
        for (std::int64_t j = -1; j <= kColumns - 2; ++j)
          two.cell(rank, i, j) = i >= 0 && i < kRows - 2 && j >= 0 && j < kColumns - 2
                                     ? static_cast<std::int32_t>(rank * 10000 + i * 100 + j)
                                     : -1;
    for (const MoveKind kind : {MoveKind::fill, MoveKind::copy, MoveKind::unpack}) {
      std::vector<std::pair<int, int>> order;
      for (int rank = 0; rank < 2; ++rank)
        for (int b = 0; b < listed[static_cast<std::size_t>(rank)].parts[kRunPart].blocks; ++b)
          order.emplace_back(rank, b);
      std::shuffle(order.begin(), order.end(), random);
      for (const auto& [rank, block] : order)
        carry_out(listed[static_cast<std::size_t>(rank)].parts[kRunPart], block, kind);
    }
    int wrong = 0;
    for (std::int64_t j = -1; j <= kColumns - 2; ++j) {
      const std::int64_t from = (j + kColumns - 2) % (kColumns - 2);
      if (two.cell(0, kRows - 2, j) != 10000 + from) ++wrong;  // what rank 1 has sent, and what it had copied
      if (two.cell(1, -1, j) != (kRows - 3) * 100 + from) ++wrong;
      if (two.cell(0, -1, j) != -1 || two.cell(1, kRows - 2, j) != -1) ++wrong;  // there is nobody
    }
    for (int rank = 0; rank < 2; ++rank)
      for (std::int64_t i = 0; i < kRows - 2; ++i)
        if (two.cell(rank, i, -1) != rank * 10000 + i * 100 + kColumns - 3 ||
            two.cell(rank, i, kColumns - 2) != rank * 10000 + i * 100)
          ++wrong;
    CHECK(wrong == 0);
    // A line is sent by one block, and taken by those whose cells it comes beside.
    std::map<std::int64_t, std::set<int>> sent;
    for (const LineOfBlock& line : listed[0].lines)
      if (line.unpacked == 0) sent[line.at].insert(line.block);
    for (const auto& [at, blocks] : sent) CHECK(blocks.size() == 1);
  }
}

// Calls f(block, first byte of the source, first byte of the destination, bytes) for every unit that is copied within
// the rank.
template <class F>
void for_each_copy(const DealtMoves& dealt, const F& f) {
  const std::size_t each = static_cast<std::size_t>(kWarps) * static_cast<std::size_t>(dealt.turns);
  for (std::size_t n = 0; n < dealt.moves.size(); ++n) {
    const ListedMove& move = dealt.moves[n];
    if (move.kind != MoveKind::copy) continue;
    const std::int64_t unit = std::int64_t{1} << move.log_unit;
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(dealt.rows) * kLanes; ++lane) {
      const RowPlaces& at = dealt.places[n * static_cast<std::size_t>(dealt.rows) * kLanes + lane];
      for (const int k : {0, 2})
        if (at.at[k] != kNowhere)
          f(static_cast<int>(n / each), move.src.base + at.at[k] * unit, move.dst.base + at.at[k + 1] * unit, unit);
    }
  }
}

TEST_CASE(
    "each block of a barrier-free group copies its own cells within the rank, and none in a unit with another's") {
  std::set<std::int64_t> units;
  for (const std::int64_t element : {4, 6, 12, 24}) {
    for (const std::int64_t shadow : {1, 2}) {
      if (shadow * element % 4 != 0) continue;  // lines have words of 4 bytes
      const std::int64_t across = kColumns - 2 * shadow;
      for (const std::int64_t columns : {1, 2, 3, 4, 5, 8, 11, 12, 16, 22, 42, 44}) {
        if (columns < shadow) continue;  // then cells of two blocks are sent in one line
        CAPTURE(element);
        CAPTURE(shadow);
        CAPTURE(columns);
        TwoRanks two({}, false, shadow, element);
        const auto cells = columns_of(two.fields[0][0].owned, columns, 0);
        const BlockCells owners(two.fields[0], two.buffers[0], cells);
        const auto made = listed_by_cells(two.programs[0].plan, two.lowered[0], owners, kWarps);
        // A unit is the largest power of two that divides the bytes of the shadow. With a shadow of two cells it has
        // bytes of two.
        CHECK(std::holds_alternative<ListedByCells>(made) == (columns % shadow == 0 || columns >= across));
        if (const auto* const why = std::get_if<std::string>(&made)) {
          CHECK(why->find("are copied within the rank in one unit of ") != std::string::npos);
          continue;
        }
        std::int64_t copied = 0;
        for_each_copy(std::get<ListedByCells>(made).parts[kRunPart],
                      [&](int block, const std::byte* src, const std::byte*, std::int64_t unit) {
                        units.insert(unit);
                        copied += unit;
                        for (std::int64_t byte = 0; byte < unit; ++byte) {
                          const auto cell = owners.find(src + byte);
                          REQUIRE(cell);
                          CHECK(owners.owner(*cell) == block);
                        }
                      });
        CHECK(copied == 2 * shadow * across * element);  // the first rows and the last ones
      }
    }
  }
  CHECK(units == std::set<std::int64_t>{4, 8, 16});
}

TEST_CASE("cells that no block computes are copied by those that read the copy, or by a block that they wait for") {
  constexpr std::int64_t kShadow = 2;
  for (const std::int64_t gap : {1, 2, 4, 5, 12}) {
    for (const std::int64_t first : {10, 11}) {  // columns of block 0; the gap follows, then block 1
      CAPTURE(gap);
      CAPTURE(first);
      TwoRanks two({}, false, kShadow);
      const Box owned = two.fields[0][0].owned;
      Box left = owned;
      Box right = owned;
      left.hi[1] = first;
      right.lo[1] = first + gap;
      const std::vector<std::vector<Box>> cells{{left}, {right}};
      const BlockCells owners(two.fields[0], two.buffers[0], cells);
      const auto made = listed_by_cells(two.programs[0].plan, two.lowered[0], owners, kWarps);
      if (std::holds_alternative<std::string>(made)) {
        CHECK(std::get<std::string>(made).find("cells of") != std::string::npos);
        continue;
      }
      std::map<const std::byte*, std::set<int>> copied;  // by byte of the destination
      for_each_copy(std::get<ListedByCells>(made).parts[kRunPart],
                    [&](int block, const std::byte* src, const std::byte* dst, std::int64_t unit) {
                      for (std::int64_t byte = 0; byte < unit; ++byte) {
                        copied[dst + byte].insert(block);
                        const auto owner = owners.owner(*owners.find(src + byte));
                        CHECK(owner.value_or(block) == block);
                      }
                    });
      int missing = 0;
      for (const auto& [byte, blocks] : copied) {
        for (const int block : {0, 1}) {
          if (!owners.reads(block, *owners.find(byte)) || blocks.contains(block)) continue;
          // Then it waits for the one that copies: their cells are neighbours.
          if (gap > 2 * kShadow) ++missing;
        }
      }
      CHECK(missing == 0);
    }
  }
}

TEST_CASE("a group needs barriers if a line has cells of two of them, or if nobody answers") {
  TwoRanks whole({});
  const Box owned = whole.fields[0][0].owned;
  const auto halves = columns_of(owned, 22, 0);
  const BlockCells owners(whole.fields[0], whole.buffers[0], halves);
  const auto made = listed_by_cells(whole.programs[0].plan, whole.lowered[0], owners, kWarps);
  REQUIRE(std::holds_alternative<std::string>(made));
  CHECK(std::get<std::string>(made).find("cells of blocks 0 and 1 are sent in one line: cut the halo") !=
        std::string::npos);

  whole.buffers[0][0].alternating = false;
  const auto one_copy = listed_by_cells(whole.programs[0].plan, whole.lowered[0], owners, kWarps);
  REQUIRE(std::holds_alternative<std::string>(one_copy));
  CHECK(std::get<std::string>(one_copy).find("a field has one copy") == 0);

  // Four columns a block on both sides, but not the same four.
  std::vector<std::int64_t> cuts(43);
  std::iota(cuts.begin(), cuts.end(), 1);
  TwoRanks two({{}, cuts});
  const ListedByCells first = listed_of(two, 0, columns_of(two.fields[0][0].owned, 4, 0));
  const ListedByCells same = listed_of(two, 1, columns_of(two.fields[1][0].owned, 4, 0));
  CHECK(unanswered(first.lines, 0, same.lines, 1).empty());
  // One block of the other side does all the sending: the rest takes without an answer.
  auto lines = same.lines;
  for (LineOfBlock& line : lines)
    if (line.unpacked == 0) line.block = 0;
  CHECK(unanswered(first.lines, 0, lines, 1).find("which sends nothing back") != std::string::npos);
}
