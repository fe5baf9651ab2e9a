// Channels between pairs of ranks, and the cutting of a host into ranks that reach each other.
#include "session/channels.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ranks/error_of.hpp"
#include "session/reach.hpp"

using namespace tasuki;

namespace {

std::int64_t next(Channels& channels, int peer) {
  const std::int64_t number = channels.lowest(peer);
  channels.take(peer, number);
  return number;
}

}  // namespace

TEST_CASE("channels count by pairs, and their tags are all different") {
  Channels channels(0, 64 * 10 - 1);
  CHECK(channels.places() == 10);
  for (int i = 0; i < 3; ++i) CHECK(next(channels, 1) == i);
  CHECK(next(channels, 5) == 0);
  CHECK(next(channels, 1) == 3);
  std::set<int> tags;
  for (int channel = 0; channel < 10; ++channel)
    for (int link = 0; link < Channels::kLinks; ++link) tags.insert(channels.tag(channel, link));
  CHECK(tags.size() == 640);
  CHECK(*tags.begin() >= 0);
  CHECK(*tags.rbegin() == 639);
  CHECK(error_of([&] { (void)channels.tag(0, 64); }) == "rank 0: link 64 between two ranks; an operation can have 64");
}

TEST_CASE("a tag is used again only when its channel was given back, never silently") {
  Channels channels(3, 32767);
  const std::int64_t places = channels.places();
  CHECK(places == 512);
  for (std::int64_t i = 0; i < places; ++i) CHECK(next(channels, 7) == i);
  CHECK(error_of([&] { next(channels, 7); }).find("rank 3: the message tags with rank 7 are used up: 512 operations") ==
        0);
  channels.give_back(7, 1);  // not the one whose place is next
  CHECK(error_of([&] { next(channels, 7); }) != "no error");
  channels.give_back(7, 0);
  CHECK(next(channels, 7) == places);
  CHECK(channels.tag(places, 2) == channels.tag(0, 2));
  channels.give_back(7, 0);  // given back before: nothing happens
  CHECK(next(channels, 7) == places + 1);
  CHECK(error_of([&] { next(channels, 7); }) != "no error");
  channels.give_back(8, 0);
  CHECK(next(channels, 8) == 0);
  for (int i = 1; i < 5000; ++i) {  // what is freed in time never ends
    channels.give_back(8, i - 1);
    CHECK(next(channels, 8) == i);
  }
}

TEST_CASE("two ranks agree on a number whatever only one of them has taken") {
  Channels here(0, 32767);
  Channels there(1, 32767);
  next(here, 1);  // of an operation that failed on the other rank before it took one
  here.give_back(1, 0);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t number = std::max(here.lowest(1), there.lowest(0));
    CHECK(number == 1 + i);
    here.take(1, number);
    there.take(0, number);
  }
  CHECK(error_of([&] { here.take(1, 2); }) ==
        "rank 0: number 2 with rank 1 has been taken before (a defect in Tasuki)");
}

TEST_CASE("a host is cut into groups of which all reach each other") {
  using Rows = std::vector<std::vector<bool>>;
  const Rows all(4, std::vector<bool>(4, true));
  CHECK(groups_of(all) == std::vector<std::size_t>{0, 0, 0, 0});
  Rows two = {{1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 0, 1}};
  CHECK(groups_of(two) == std::vector<std::size_t>{0, 1, 0, 1});
  Rows one_way = all;
  one_way[2][0] = false;  // 2 does not reach 0, though 0 reaches 2
  CHECK(groups_of(one_way) == std::vector<std::size_t>{0, 0, 2, 0});
  Rows chain = {{1, 1, 0}, {1, 1, 1}, {0, 1, 1}};
  CHECK(groups_of(chain) == std::vector<std::size_t>{0, 0, 2});
  CHECK(groups_of({}).empty());
}
