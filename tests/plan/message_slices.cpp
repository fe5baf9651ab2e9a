// Links that go as several messages: the slices hold every byte once and in order; the plans verify, in chunk loops
// too.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>

#include "sliced_links.hpp"

using namespace tasuki;
using namespace sliced_links;

namespace {

const Constants constants;

}  // namespace

TEST_CASE("slices hold every byte of the moves once, in order, and are no larger than asked") {
  std::mt19937 random(31);
  const auto from = noise(random);
  for (int round = 0; round < 300; ++round) {
    const auto moves = random_moves(random, 1, DType::none);
    const Link link = link_of(constants, moves, 1, 0, 1);
    const auto most = static_cast<std::int64_t>(1 + random() % (round % 2 == 0 ? 400 : 40000));
    std::vector<std::byte> packed(static_cast<std::size_t>(link.bytes()));
    std::int64_t at = 0;
    for (const Move& move : moves) {
      for (const auto& copy : pack_side(move.copies, at)) select_copy(copy)(copy, from.data(), packed.data());
      at += move.bytes();
    }
    std::vector<std::byte> got(packed.size());
    std::int64_t begin = 0;
    for (const Slice& slice : slices(link, most)) {
      CHECK(slice.begin == begin);
      CHECK(slice.bytes > 0);
      CHECK(slice.bytes <= std::max<std::int64_t>(most, 64));
      for (const auto& part : slice.parts) {
        CHECK(part.begin == begin);
        for (const auto& copy : pack_side(part.copies, part.begin)) {
          select_copy(copy)(copy, from.data(), got.data());
          begin += copy.bytes();
        }
      }
      CHECK(slice.begin + slice.bytes == begin);
    }
    CHECK(begin == link.bytes());
    CHECK(std::equal(got.begin(), got.end(), packed.begin()));
    CHECK(slices(link, link.bytes()).size() == 1);
  }
}

TEST_CASE("large pieces are cut evenly: a face of equal rows goes in sixteen equal slices") {
  Move face;
  StridedCopy copy;
  copy.block = 8;
  copy.ndims = 2;
  copy.dims[0] = {1024, 1 << 20, 8192};
  copy.dims[1] = {1024, 1024, 8};
  face.copies = {copy};
  const auto all = slices(link_of(constants, {face}, 1, 0, 1), copy.bytes() / 16);
  CHECK(all.size() == 16);
  for (const Slice& slice : all) CHECK(slice.bytes == copy.bytes() / 16);
}

TEST_CASE("a link larger than MPI's largest message goes in several, from where it lies or packed") {
  Move move;
  StridedCopy copy;
  copy.block = std::int64_t{5} << 30;
  move.copies = {copy};
  constexpr std::int64_t kMost = 0x7fffffff;
  const auto plain = slices(link_of(constants, {move}, 1, 0, 1), kMost);
  CHECK(plain.size() == 3);
  for (const Slice& slice : plain) CHECK(slice.bytes <= kMost);
}

TEST_CASE("plans of sliced links verify, packed or as they lie, also in chunk loops") {
  std::mt19937 random(32);
  for (int round = 0; round < 12; ++round) {
    // The first as they lie: both sides in one run.
    std::array<std::vector<Move>, 2> sent;
    for (auto& moves : sent) {
      moves = random_moves(random, 8, round % 3 == 0 ? DType::f64 : DType::none);
      if (round > 3) continue;
      moves.resize(1);
      StridedCopy whole;
      whole.block = 5000 + 8 * round;
      moves[0].copies = {whole};
    }
    const Sliced sliced(Home::own, 1000);
    const std::int64_t rounds = round % 3 == 1 ? 2 : 1;  // what is added has no loops
    const std::vector<Plan> plans{plan_of(sliced, 0, sent, rounds), plan_of(sliced, 1, sent, rounds)};
    const auto sends = std::count_if(plans[0].commands.begin(), plans[0].commands.end(),
                                     [](const Command& c) { return c.verb == Verb::send; });
    std::int64_t bytes = 0;
    for (const Move& move : sent[0]) bytes += move.bytes();
    CHECK(sends >= bytes / 1000);
    const VerifyReport report = verify(plans);
    INFO(report.text());
    CHECK(report.ok());
  }
}
