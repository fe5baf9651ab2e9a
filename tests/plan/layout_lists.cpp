// Copies with lists: they move the bytes of the copies that they stand for, whole, cut and packed, and plans keep them.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "layout/cut.hpp"
#include "layout/elements.hpp"
#include "layout/lists.hpp"
#include "plan/share.hpp"
#include "planner/parts.hpp"
#include "protocols/protocol.hpp"
#include "tasuki/error.hpp"
#include "tasuki/plan.hpp"

using namespace tasuki;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t kRoom = 1 << 16;

Bytes numbered() {
  Bytes bytes(kRoom);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 37 + i / 251) & 255);
  return bytes;
}

Bytes moved_by(const std::vector<StridedCopy>& copies, CopyHint hint = CopyHint::cached) {
  const Bytes from = numbered();
  Bytes to(kRoom);
  for (const StridedCopy& copy : copies) select_copy(copy, hint)(copy, from.data(), to.data());
  return to;
}

// Cells of `bytes` bytes in any order, some of which follow each other; `levels` of them lie 4096 bytes apart.
std::vector<StridedCopy> scattered(std::int64_t bytes, std::int64_t levels, bool far, unsigned seed, bool gather) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> cells(static_cast<std::size_t>((levels > 1 ? 4096 : kRoom) / bytes / 3));
  std::iota(cells.begin(), cells.end(), 0);
  for (std::size_t i = 0; i + 3 < cells.size(); i += 1 + random() % 3)
    std::swap(cells[i], cells[random() % cells.size()]);
  const Layout cell = levels == 1 ? Layout::bytes(bytes)
                                  : Layout::resized(Layout::hvector(levels, 1, 4096, Layout::bytes(bytes)), 0, bytes);
  std::vector<std::int64_t> shown(cells);
  std::shuffle(shown.begin(), shown.end(), random);
  const auto layout = [&](const std::vector<std::int64_t>& list) {
    std::vector<std::int64_t> places;
    for (const std::int64_t one : list) places.push_back(one * bytes);
    return Layout::hindexed(std::vector<std::int64_t>(list.size(), 1), places, cell);
  };
  std::vector<std::int64_t> dense(cells.size());
  std::iota(dense.begin(), dense.end(), 0);
  const Layout a = layout(cells);
  std::vector<StridedCopy> copies = zip(a, far ? layout(shown) : layout(dense));
  for (StridedCopy& copy : copies) {
    if (gather) continue;
    std::swap(copy.src_offset, copy.dst_offset);
    for (auto& dim : copy.dims) std::swap(dim.src_stride, dim.dst_stride);
  }
  return copies;
}

}  // namespace

TEST_CASE("a list that two networks carry is cut between its steps") {
  std::mt19937 random(5);
  std::vector<std::int64_t> places(kRoom / 16);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = 16 * static_cast<std::int64_t>(i);
  std::shuffle(places.begin(), places.end(), random);
  Move move;
  move.dst_rank = 1;
  move.copies = zip_with_lists(Layout::hindexed(std::vector<std::int64_t>(places.size(), 1), places, Layout::bytes(16)),
                               Layout::bytes(kRoom));
  REQUIRE(may_be_cut(move));
  REQUIRE(move.copies.front().listed());
  Problem problem;
  problem.moves = {move};
  for (int share = 1; share < kShares; ++share) {
    const std::optional<Problem> parts = in_parts(problem, std::array{share});
    REQUIRE(parts.has_value());
    REQUIRE(parts->moves.size() == 2);
    std::vector<StridedCopy> both = parts->moves[0].copies;
    both.insert(both.end(), parts->moves[1].copies.begin(), parts->moves[1].copies.end());
    CHECK(moved_by(both) == moved_by(move.copies));
    CHECK(parts->moves[0].bytes() == kRoom * share / kShares);
  }
}

TEST_CASE("lists that are made in parts are those of the whole") {
  std::mt19937 random(11);
  for (const std::int64_t bytes : {2, 8, 24})
    for (const bool both : {false, true}) {
      std::vector<std::int64_t> cells(20000);
      std::iota(cells.begin(), cells.end(), 0);
      std::shuffle(cells.begin(), cells.begin() + 9000, random);  // what follows is one run
      std::shuffle(cells.begin() + 11000, cells.end(), random);
      std::vector<std::int64_t> places;
      for (const std::int64_t cell : cells) places.push_back(cell * bytes);
      const Layout scattered =
          Layout::hindexed(std::vector<std::int64_t>(cells.size(), 1), places, Layout::bytes(bytes));
      std::ranges::reverse(places);
      const Layout other =
          both ? Layout::hindexed(std::vector<std::int64_t>(cells.size(), 1), places, Layout::bytes(bytes))
               : Layout::bytes(20000 * bytes);
      for (const auto& [src, dst] : {std::pair{&scattered, &other}, std::pair{&other, &scattered}}) {
        const std::vector<StridedCopy> lists = zip_with_lists(*src, *dst);
        CHECK(lists == with_lists(zip(*src, *dst)));
        CHECK(lists.size() < 20);
        CHECK(std::ranges::any_of(lists, &StridedCopy::listed));
      }
    }
}

TEST_CASE("lists move what the copies moved that they stand for") {
  for (const std::int64_t bytes : {1, 2, 4, 6, 8, 12, 16, 24, 32, 64, 100, 480})
    for (const std::int64_t levels : {1, 2, 12})
      for (const bool far : {false, true})
        for (const bool gather : {false, true}) {
          CAPTURE(bytes);
          CAPTURE(levels);
          CAPTURE(far);
          CAPTURE(gather);
          const auto copies = scattered(bytes, levels, far, static_cast<unsigned>(bytes + levels), gather);
          const auto lists = with_lists(copies);
          if (copies.size() > 40 && bytes > 1) CHECK(lists.size() < copies.size() / 4);
          const Bytes expected = moved_by(copies);
          CHECK(moved_by(lists) == expected);
          CHECK(moved_by(lists, CopyHint::streaming) == expected);
          std::vector<StridedCopy> pieces, steps;
          for (const StridedCopy& copy : lists) cut_by_bytes(copy, 200, pieces);
          CHECK(moved_by(pieces) == expected);
          std::int64_t sum = 0;
          for (const StridedCopy& copy : lists) {
            sum += copy.bytes();
            if (copy.listed())
              append_steps(copy, steps);
            else
              steps.push_back(copy);
            const ByteRange range = written_range(copy);
            CHECK(range.begin >= 0);
            CHECK(range.end <= kRoom);
            if (copy.listed()) CHECK(std::max(copy.src_pattern(), copy.dst_pattern()) == Pattern::list);
          }
          CHECK(sum == packed_bytes(copies));
          CHECK(moved_by(steps) == expected);
          // By way of packed memory.
          const Bytes from = numbered();
          Bytes packed(kRoom), to(kRoom);
          for (const StridedCopy& copy : pack_side(lists, 8)) select_copy(copy)(copy, from.data(), packed.data());
          for (const StridedCopy& copy : unpack_side(lists, 8)) select_copy(copy)(copy, packed.data(), to.data());
          CHECK(to == expected);
        }
}

TEST_CASE("lists combine what the copies combined that they stand for") {
  for (const std::int64_t bytes : {8, 16, 480})
    for (const std::int64_t levels : {1, 12}) {
      const auto copies = scattered(bytes, levels, true, 5, true);
      const auto combined = [&](const std::vector<StridedCopy>& all) {
        const Bytes from = numbered();
        Bytes to = numbered();
        std::reverse(to.begin(), to.end());
        for (const StridedCopy& copy : all)
          select_reduce(copy, DType::i64, ReduceOp::sum)(copy, from.data(), to.data());
        return to;
      };
      CHECK(combined(with_lists(copies)) == combined(copies));
    }
}

TEST_CASE("offsets of lists take 32 bits where they fit, and copies share them") {
  const std::vector<std::int64_t> near{0, 96, -8}, wide{0, std::int64_t{1} << 40, 8};
  const OffsetList a(near), b(wide);
  CHECK(a.narrow() != nullptr);
  CHECK(a.wide() == nullptr);
  CHECK(b.narrow() == nullptr);
  CHECK(b[1] == std::int64_t{1} << 40);
  CHECK(a.least() == -8);
  CHECK(b.most() == std::int64_t{1} << 40);
  const OffsetList c = a;
  CHECK(c.identity() == a.identity());
  CHECK(OffsetList(near) == a);
  CHECK_FALSE(b == a);
  CHECK(a.part(1, 3) == OffsetList(std::vector<std::int64_t>{96, -8}));
  CHECK(OffsetList(std::vector<std::int64_t>{}).empty());

  StridedCopy copy;
  copy.block = 8;
  copy.ndims = 1;
  copy.dims[0] = {3, 0, 8};
  copy.src_list = b;
  const Bytes from(1);
  Bytes to(24);
  std::vector<std::int64_t> numbers(3, 7);
  copy.src_list = OffsetList(std::vector<std::int64_t>{0, 16, 8});
  numbers = {1, 2, 3};
  select_copy(copy)(copy, reinterpret_cast<const std::byte*>(numbers.data()), to.data());
  CHECK(reinterpret_cast<const std::int64_t*>(to.data())[1] == 3);
}

TEST_CASE("copies share their dimensions until one of them is changed") {
  const std::array<CopyDim, 2> two{CopyDim{3, 100, 8}, CopyDim{4, 8, 24}};
  const CopyDims dims(two);
  CHECK(dims.kept() == 2);
  CHECK(dims[1] == two[1]);
  CHECK(dims[2] == CopyDim{});
  CHECK(dims[kMaxDims - 1] == CopyDim{});
  CopyDims other = dims;
  CHECK(other.identity() == dims.identity());
  other[2].count = 5;
  CHECK(other.identity() != dims.identity());
  CHECK(dims[2].count == 1);
  CHECK_FALSE(other == dims);
  other[2].count = 1;
  CHECK(other == dims);  // whatever it keeps
  const CopyDim* const at = &std::as_const(other)[0];
  other[0].count = 9;  // nobody else has them
  CHECK(&std::as_const(other)[0] == at);
  CHECK(dims[0] == two[0]);
  CHECK(CopyDims().identity() == nullptr);
  CHECK(CopyDims() == CopyDims(std::array<CopyDim, 1>{}));
}

TEST_CASE("a plan has equal dimensions and names once, however it came to be") {
  Plan plan;
  plan.operation = "alike";
  plan.paths = {"self"};
  for (int i = 0; i < 40; ++i) {
    StridedCopy copy;
    copy.src_offset = 1000 * i;
    copy.block = 8;
    copy.ndims = 2;
    copy.dims[0] = {3, 80, 80};
    copy.dims[1] = {2, 16, 16 + i % 2};
    plan.copies.push_back(copy);
    Buffer buffer;
    buffer.name = "a name longer than a pointer";
    buffer.rank = i;
    plan.buffers.push_back(buffer);
  }
  for (const Plan& read : {plan_from_text(to_text(plan)), plan_from_json(to_json(plan))}) {
    CHECK(read == plan);
    std::set<const void*> dims, names;
    for (const StridedCopy& copy : read.copies) {
      CHECK(copy.dims.kept() == 2);
      dims.insert(copy.dims.identity());
    }
    for (const Buffer& buffer : read.buffers) names.insert(buffer.name.identity());
    CHECK(dims.size() == 2);
    CHECK(names.size() == 1);
    CHECK(read.memory() < plan.memory() / 3);
  }
}

TEST_CASE("plans keep lists in their written forms, count them once, and say what is wrong with them") {
  Plan plan;
  plan.operation = "lists";
  plan.paths = {"self"};
  Buffer buffer;
  buffer.name = "u";
  buffer.role = Role::inout;
  buffer.bytes = 4096;
  plan.buffers = {buffer, buffer};
  plan.buffers[1].name = "v";
  StridedCopy copy;
  copy.block = 8;
  copy.ndims = 1;
  copy.dims[0] = {4, 0, 8};
  copy.src_offset = 64;
  copy.src_list = OffsetList(std::vector<std::int64_t>{0, 80, -64, 800});
  plan.copies = {copy};
  Command command;
  command.src = 0;
  command.dst = 1;
  command.copy_count = 1;
  command.bytes = 32;
  plan.commands = {command};
  const auto none = plan.complaints();
  INFO((none.empty() ? std::string() : none.front()));
  REQUIRE(none.empty());
  CHECK(plan_from_text(to_text(plan)) == plan);
  CHECK(plan_from_json(to_json(plan)) == plan);
  CHECK(to_text(plan).find("src_list 0,80,-64,800") != std::string::npos);
  CHECK(describe(copy).find("listed") != std::string::npos);
  const std::int64_t before = plan.memory();
  plan.copies.push_back(copy);
  CHECK(plan.memory() == before + static_cast<std::int64_t>(sizeof(StridedCopy)));
  plan.copies.pop_back();

  const auto complains = [&](auto&& change, const char* of) {
    Plan other = plan;
    change(other);
    const auto found = other.complaints();
    CAPTURE(of);
    REQUIRE_FALSE(found.empty());
    INFO(found.front());
    CHECK(found.front().find(of) != std::string::npos);
  };
  complains([](Plan& p) { p.copies[0].src_offset = 56; }, "bytes -8 to");
  complains([](Plan& p) { p.copies[0].src_offset = 3290; }, "which leaves");
  complains([](Plan& p) { p.copies[0].dims[0].count = 3, p.commands[0].bytes = 24; },
            "4 offsets in src_list for 3 steps");
  complains([](Plan& p) { p.copies[0].dims[0].src_stride = 8; }, "no stride");
  CHECK_THROWS_AS(plan_from_text("plan format 2\ncopy 0 block 8 dims 2:0:8 src_list 1,x\nend\n"), Error);
}
