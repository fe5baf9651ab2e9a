// Communicators that are kept for later contexts: one is used again only where every rank has it, at its place.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "transports/kept.hpp"

using tasuki::common_id;
using Kept = tasuki::Kept<int>;

TEST_CASE("a kept communicator is offered for its size, place and GPU only, and to one at a time") {
  Kept kept;
  kept.keep({"aa", 2, 0, 0, 1});
  kept.keep({"bb", 3, 0, 0, 2});
  kept.keep({"cc", 2, 1, 0, 3});
  kept.keep({"dd", 2, 0, 1, 4});
  kept.keep({"ee", 2, 0, 0, 5});
  {
    auto offer = kept.offer(2, 0, 0);
    CHECK(offer.ids() == "aaee");
    CHECK(kept.offer(2, 0, 0).ids().empty());
    CHECK(kept.offer(3, 0, 0).ids() == "bb");
    CHECK(offer.take("aa").handle == 1);
  }
  CHECK(kept.offer(2, 0, 0).ids() == "ee");
  CHECK(kept.offer(2, 0, 0).take("ee").handle == 5);
  CHECK(kept.offer(2, 0, 0).ids().empty());
  CHECK(kept.offer(2, 1, 0).ids() == "cc");
  CHECK(kept.offer(2, 0, 1).ids() == "dd");
  kept.keep({"ff", 4, 0, 0, 6});
  CHECK_THROWS_AS(kept.offer(4, 0, 0).take("f"), tasuki::Error);
  CHECK(kept.offer(4, 0, 0).ids() == "ff");
}

TEST_CASE("ranks choose the latest communicator that all of them offer") {
  const std::vector<std::string> offers{"aabbccdd", "ddccaa", "ccaaee"};
  CHECK(common_id(offers, 2) == "cc");
  CHECK(common_id({"aabb", "ccdd"}, 2).empty());
  CHECK(common_id({"", "ccdd"}, 2).empty());
  CHECK(common_id({"ab", "ba"}, 2).empty());
  CHECK(common_id({"aabb", "baab"}, 2).empty());  // "aa" begins within an id of the other
}
