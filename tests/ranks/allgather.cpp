// What ranks tell each other through their context, whatever they are.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rank_test.hpp"
#include "tasuki/context.hpp"

RANK_TEST("allgather brings what every rank gives, in the order of ranks") {
  struct Pair {
    std::int64_t number;
    float other;
  };
  const auto pairs = ctx.allgather(Pair{1000 + ctx.rank(), 0.5F});
  const auto odd = ctx.allgather(ctx.rank() % 2 == 1);
  // Of different length, some of none, one that is no text.
  const auto texts = ctx.allgather(std::string(static_cast<std::size_t>(ctx.rank() % 3 * 70000), '\0') + "end");
  REQUIRE(pairs.size() == static_cast<std::size_t>(ctx.size()));
  REQUIRE(odd.size() == pairs.size());
  REQUIRE(texts.size() == pairs.size());
  for (int rank = 0; rank < ctx.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    CHECK(pairs[r].number == 1000 + rank);
    CHECK(pairs[r].other == 0.5F);
    CHECK(odd[r] == (rank % 2 == 1));
    CHECK(texts[r].size() == static_cast<std::size_t>(rank % 3 * 70000) + 3);
    CHECK(texts[r].ends_with("end"));
  }
}
