// What ranks tell each other through their context, whatever they are.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
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
  // More than travels at once, of the last rank only.
  const std::size_t many = ctx.rank() + 1 == ctx.size() ? (std::size_t{33} << 20) + 5 : 3;
  std::string long_one(many, 'a');
  for (std::size_t i = 0; i < many; ++i) long_one[i] = static_cast<char>('a' + i % 23);
  const auto long_ones = ctx.allgather(long_one);
  REQUIRE(long_ones.size() == pairs.size());
  CHECK(long_ones.back().size() == (std::size_t{33} << 20) + 5);
  if (ctx.rank() + 1 == ctx.size()) CHECK(long_ones.back() == long_one);
  CHECK(std::string_view(long_ones.back()).substr((std::size_t{32} << 20) + 1, 3) ==
        std::string{static_cast<char>('a' + ((std::size_t{32} << 20) + 1) % 23),
                    static_cast<char>('a' + ((std::size_t{32} << 20) + 2) % 23),
                    static_cast<char>('a' + ((std::size_t{32} << 20) + 3) % 23)});
  for (std::size_t r = 0; r + 1 < long_ones.size(); ++r) CHECK(long_ones[r] == "abc");
  for (int rank = 0; rank < ctx.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    CHECK(pairs[r].number == 1000 + rank);
    CHECK(pairs[r].other == 0.5F);
    CHECK(odd[r] == (rank % 2 == 1));
    CHECK(texts[r].size() == static_cast<std::size_t>(rank % 3 * 70000) + 3);
    CHECK(texts[r].ends_with("end"));
  }
}
