// Orders of starts in streams that ranks have in common: unlike ones are found whoever starts, tells or looks first.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "session/start_orders.hpp"

using tasuki::StartOrders;

namespace {

// Tells this rank's starts and the other's, one after the other as `turns` says (true: this rank's).
std::optional<StartOrders::Conflict> told(const std::vector<StartOrders::Start>& mine,
                                          const std::vector<StartOrders::Start>& theirs,
                                          const std::vector<bool>& turns) {
  StartOrders orders;
  std::size_t m = 0;
  std::size_t t = 0;
  std::optional<StartOrders::Conflict> first;
  for (const bool own : turns) {
    const auto conflict = own ? orders.mine(mine[m++]) : orders.theirs(7, theirs[t++]);
    if (conflict && !first) first = conflict;
  }
  return first;
}

// Calls `f` with every order in which so many starts of two ranks can be told.
template <class F>
void each_order(std::size_t mine, std::size_t theirs, F&& f) {
  std::vector<bool> turns(mine + theirs);
  std::fill(turns.begin() + static_cast<std::ptrdiff_t>(theirs), turns.end(), true);
  do f(turns);
  while (std::next_permutation(turns.begin(), turns.end()));
}

}  // namespace

TEST_CASE("two operations that ranks start in unlike orders in one stream are found, in whatever order that is told") {
  const std::vector<StartOrders::Start> mine{{1, 4, 10, 1}, {2, 9, 10, 2}, {3, 1, 10, 3}};
  const std::vector<StartOrders::Start> theirs{{2, 9, 55, 21}, {1, 4, 55, 22}};
  each_order(3, 2, [&](const std::vector<bool>& turns) {
    const auto conflict = told(mine, theirs, turns);
    REQUIRE(conflict);
    CHECK(conflict->first == 1);
    CHECK(conflict->second == 2);
    CHECK(conflict->rank == 7);
  });
}

TEST_CASE("like orders, streams of their own on one side and other epochs are no conflict") {
  const std::vector<StartOrders::Start> one_stream{{1, 1, 10, 1}, {2, 1, 10, 2}, {1, 2, 10, 3}, {2, 2, 10, 4}};
  const std::vector<StartOrders::Start> alike{{1, 1, 5, 1}, {9, 1, 5, 2}, {2, 1, 5, 3}, {1, 2, 5, 4}};
  const std::vector<StartOrders::Start> apart{{2, 1, 5, 1}, {1, 1, 6, 2}, {1, 2, 5, 3}, {2, 2, 6, 4}};
  for (const auto& theirs : {alike, apart})
    each_order(4, 4, [&](const std::vector<bool>& turns) { CHECK(!told(one_stream, theirs, turns)); });
}

TEST_CASE("what was started long ago is forgotten, and unlike orders are found after it") {
  StartOrders orders;
  std::uint64_t number = 0;
  for (std::uint64_t epoch = 1; epoch < 5000; ++epoch) {
    for (const std::uint64_t operation : {1, 2}) {
      ++number;
      CHECK(!orders.mine({operation, epoch, 3, number}));
      CHECK(!orders.theirs(1, {operation, epoch, 8, number}));
    }
  }
  CHECK(!orders.mine({1, 5000, 3, number + 1}));
  CHECK(!orders.mine({2, 5000, 3, number + 2}));
  CHECK(!orders.theirs(1, {2, 5000, 8, number + 1}));
  CHECK(orders.theirs(1, {1, 5000, 8, number + 2}));
}
