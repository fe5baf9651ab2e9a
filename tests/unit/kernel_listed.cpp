// Listed moves of a kernel's group: however they are dealt out, they move exactly the bytes of the plan, each once.
#include "kernels/listed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "gpu_view.hpp"
#include "plan/builder.hpp"
#include "row_view.hpp"

using namespace tasuki;
using namespace gpu_view;

namespace {

constexpr std::uint64_t kEpoch = 7;

// Moves of a part, carried out on the host in the order of warps.
class Carried {
 public:
  explicit Carried(const DealtMoves& dealt) : dealt_(dealt) {}

  void all() const {
    REQUIRE(dealt_.rows <= kMoveRows);
    REQUIRE(dealt_.moves.size() % static_cast<std::size_t>(dealt_.turns) == 0);
    for (const MoveKind kind : {MoveKind::fill, MoveKind::copy, MoveKind::unpack})
      for (std::size_t n = 0; n < dealt_.moves.size(); ++n)
        if (dealt_.moves[n].kind == kind) carry_out(n);
    // A warp does what others wait for first, and waits last.
    for (std::size_t n = 0; n + 1 < dealt_.moves.size(); ++n) {
      if ((n + 1) % static_cast<std::size_t>(dealt_.turns) == 0) continue;
      CHECK(order_of(dealt_.moves[n].kind) <= order_of(dealt_.moves[n + 1].kind));
    }
  }

 private:
  static int order_of(MoveKind kind) {
    return kind == MoveKind::fill ? 0 : kind == MoveKind::copy ? 1 : kind == MoveKind::unpack ? 2 : 3;
  }

  void carry_out(std::size_t n) const {
    const ListedMove& move = dealt_.moves[n];
    CHECK(move.rows >= 1);
    CHECK(move.rows <= dealt_.rows);
    for (int row = 0; row < dealt_.rows; ++row) {
      const RowPlaces* const at =
          dealt_.places.data() + (n * static_cast<std::size_t>(dealt_.rows) + static_cast<std::size_t>(row)) * kLanes;
      const std::ptrdiff_t line = row < move.rows ? move.lines[row] : 0;
      std::byte* const src = base_of(move.src, kEpoch);
      std::byte* const dst = base_of(move.dst, kEpoch);
      if (row >= move.rows) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) CHECK(at[lane].at[0] == kNowhere);
      } else if (move.kind == MoveKind::fill) {
        fill_line(at, src, dst + line);
      } else if (move.kind == MoveKind::unpack) {
        take_line(at, src + line, dst);
      } else {
        copy_row(at, move.log_unit, src, dst);
      }
    }
  }

  const DealtMoves& dealt_;
};

}  // namespace

TEST_CASE("listed moves of any group move exactly the bytes of random plans") {
  std::mt19937 random(21);
  for (int round = 0; round < 100; ++round) {
    // A block and a scattered box go through a LL ring, another box is copied.
    StridedCopy whole;
    whole.block = 4 * static_cast<std::int64_t>(1 + random() % 900);
    StridedCopy box;
    box.src_offset = 4000;
    box.block = std::array<std::int64_t, 5>{4, 8, 12, 16, 48}[random() % 5];
    box.ndims = 1;
    box.dims[0] = {static_cast<std::int64_t>(1 + random() % 70),
                   box.block + 4 * static_cast<std::int64_t>(random() % 3), box.block};
    box.dst_offset = (whole.block + kLLLineData - 1) / kLLLineData * kLLLineData;
    StridedCopy local;
    local.block = std::array<std::int64_t, 5>{1, 2, 4, 16, 24}[random() % 5];
    local.ndims = 1;
    local.dims[0] = {static_cast<std::int64_t>(1 + random() % 300), local.block + local.block % 3, local.block};
    constexpr std::size_t kBytes = 16384;
    std::vector<std::byte> from(kBytes);
    for (auto& byte : from) byte = static_cast<std::byte>(random());
    std::vector<std::byte> ring(2 * kBytes);
    std::vector<std::byte> to(kBytes);
    std::vector<std::byte> beside(kBytes);

    Builder builder("test", 0, 2);
    builder.set_path("peer:ll");
    const std::int64_t bytes = box.dst_offset + box.dims[0].count * box.block;
    const int a = builder.buffer("a", 0, Role::input, kBytes);
    const int b = builder.buffer("b", 0, Role::output, kBytes);
    const int c = builder.buffer("c", 0, Role::output, kBytes);
    const int out = builder.buffer("out", 1, Role::scratch, bytes, 2, Home::ll);
    const int in = builder.buffer("in", 0, Role::scratch, bytes, 2, Home::ll);
    builder.begin_lane();
    builder.put(1, a, out, std::array{whole, box}, 0, 0);
    builder.signal(1, builder.counter("filled<0", 1, Home::ll));
    builder.begin_lane();
    builder.copy(0, a, c, std::array{local}, 0, 0);
    builder.begin_lane();
    builder.wait(1, builder.counter("filled<1", 0, Home::ll));
    std::array back{whole, box};
    for (auto& copy : back) std::swap(copy.src_offset, copy.dst_offset);
    std::swap(back[1].dims[0].src_stride, back[1].dims[0].dst_stride);
    builder.copy(1, in, b, back, 0, 0);
    const Program program = bound(builder.finish(), [&](const Buffer& buffer) {
      return buffer.name == "a"   ? from.data()
             : buffer.name == "b" ? to.data()
             : buffer.name == "c" ? beside.data()
                                  : ring.data();
    });
    const int blocks = std::array{1, 2, 5, 64}[random() % 4];
    const int warps = 1 + static_cast<int>(random() % 16);
    const GpuProgram lowered = lower(program, blocks, true);
    const auto listed = listed_of(lowered, blocks, warps);
    REQUIRE(listed);

    std::vector<std::byte> expected_to(kBytes);
    for (const auto& copy : {whole, box}) {
      for (std::int64_t row = 0; row < (copy.ndims == 0 ? 1 : copy.dims[0].count); ++row) {
        const std::int64_t at = copy.src_offset + row * copy.dims[0].src_stride * copy.ndims;
        std::memcpy(expected_to.data() + at, from.data() + at, static_cast<std::size_t>(copy.block));
      }
    }
    std::vector<std::byte> expected_beside(kBytes);
    select_copy(local)(local, from.data(), expected_beside.data());
    INFO("round ", round, ", ", blocks, " blocks of ", warps, " warps");
    Carried((*listed)[kRunPart]).all();
    CHECK(to == expected_to);
    CHECK(beside == expected_beside);
    std::fill(to.begin(), to.end(), std::byte{});
    std::fill(beside.begin(), beside.end(), std::byte{});
    Carried((*listed)[kStartPart]).all();
    Carried((*listed)[kWaitPart]).all();
    CHECK(to == expected_to);
    CHECK(beside == expected_beside);
    for (const DealtMoves& dealt : *listed) {
      CHECK(dealt.blocks <= blocks);
      CHECK(dealt.moves.size() == static_cast<std::size_t>(dealt.blocks * warps * dealt.turns));
    }
  }
}

TEST_CASE("a long list is not made, nor one of a plan that does more than move") {
  std::vector<std::byte> memory(std::size_t{8} << 20);
  for (const std::int64_t bytes : {64 << 10, 4 << 20}) {
    Builder builder("test", 0, 1);
    builder.set_path("self");
    const int a = builder.buffer("a", 0, Role::inout, 8 << 20);
    StridedCopy copy;
    copy.block = 4;
    copy.ndims = 1;
    copy.dims[0] = {bytes / 8, 8, 8};
    copy.dst_offset = 4;
    builder.begin_lane();
    builder.copy(0, a, a, std::array{copy}, 0, 0);
    const Program program = bound(builder.finish(), memory.data());
    CHECK(listed_of(lower(program, 4, true), 4, 8).has_value() == (bytes == 64 << 10));
  }
  Builder builder("test", 0, 2);
  builder.set_path("peer:put");
  builder.begin_lane();
  builder.signal(1, builder.counter("ready<0", 1, Home::device));
  const Program program = bound(builder.finish(), memory.data());
  CHECK(!listed_of(lower(program, 4, true), 4, 8));
}
