// Exchanges of cells: on random graphs over every path and engine, both ways, against plain loops with new data at
// every start; ranks as processes and as threads; made again and again.
#include "tasuki/exchange.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Numbers = std::vector<std::int64_t>;
using Random = std::mt19937;

constexpr std::int64_t kOwned = 30;  // cells of each rank; ghosts have higher numbers
constexpr std::int64_t kCells = 400;

int below(Random& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

// What one rank wants of another: the owner's cells, and where its own ghosts of them are.
struct Wanted {
  int owner, taker;
  Numbers cells, ghosts;
};

// The same on all ranks.
std::vector<Wanted> random_graph(int ranks, Random& random) {
  std::vector<Wanted> all;
  Numbers next(static_cast<std::size_t>(ranks), kOwned);
  for (int message = 0; message < 3 * ranks; ++message) {
    Wanted& one = all.emplace_back(Wanted{below(random, ranks), below(random, ranks), {}, {}});
    const int step = 1 + below(random, 3);  // runs, cells at equal distances
    for (std::int64_t cell = below(random, 5); cell < kOwned && one.cells.size() < 9; cell += step) {
      one.cells.push_back(cell);
      one.ghosts.push_back(next[static_cast<std::size_t>(one.taker)]++);
    }
    std::shuffle(one.ghosts.begin(), one.ghosts.end(), random);
  }
  return all;
}

std::vector<ExchangeEntry> entries_of(const std::vector<Wanted>& graph, int rank) {
  std::vector<ExchangeEntry> entries;
  for (const Wanted& one : graph) {
    if (one.owner == rank) entries.push_back({one.taker, one.cells});
    if (one.taker == rank) entries.push_back({one.owner, {}, one.ghosts});
  }
  return entries;
}

}  // namespace

RANK_TEST("an exchange on a random graph and its reverse, over every path and engine") {
  Random random(47);
  const auto n = static_cast<std::size_t>(ctx.size());
  const auto me = static_cast<std::size_t>(ctx.rank());
  const auto paths = host_paths(ctx);
  for (std::size_t number = 0; number < 2 * paths.size(); ++number) {
    const auto graph = random_graph(ctx.size(), random);
    const auto shared = shared_alloc(ctx, kCells * 3 * static_cast<std::int64_t>(sizeof(double)));
    std::vector<float> own(kCells);
    auto* const levels = reinterpret_cast<double*>(shared.get());
    ExchangeField first(levels, Cells::levels_first(DType::f64, kCells, 3, "first"));
    ExchangeField last(own.data(), kCells);
    ExchangeOptions options;
    options.path = paths[number % paths.size()];
    if (options.path != "auto" && options.path != "mpi") options.path += ",shared:eager";
    options.engine = number % 3 == 1 ? "thread" : "inline";
    Exchange there(ctx, {first, last}, entries_of(graph, ctx.rank()), options);
    check_plan(there);
    options.reverse = true;
    if (options.path.starts_with("shared:put") || options.path.starts_with("shared:read"))
      options.path = "auto";  // which cannot combine
    Exchange back(ctx, {first, last}, entries_of(graph, ctx.rank()), options);
    check_plan(back);
    for (int turn = 0; turn < 3; ++turn) {
      // By rank, of cell and level.
      const auto value = [&](std::size_t rank, std::int64_t cell, int level) {
        return 1.0 / static_cast<double>(1 + rank * 7 + static_cast<std::size_t>(cell * 3 + level + turn));
      };
      std::vector<std::vector<double>> expected(n, std::vector<double>(kCells * 3));
      std::vector<std::vector<float>> singles(n, std::vector<float>(kCells));
      for (std::size_t r = 0; r < n; ++r) {
        for (std::int64_t c = 0; c < kCells; ++c) {
          for (int l = 0; l < 3; ++l) expected[r][static_cast<std::size_t>(l * kCells + c)] = value(r, c, l);
          singles[r][static_cast<std::size_t>(c)] = static_cast<float>(value(r, c, 0));
        }
      }
      std::copy(expected[me].begin(), expected[me].end(), levels);
      std::copy(singles[me].begin(), singles[me].end(), own.begin());
      const auto check = [&] {
        for (std::size_t i = 0; i < static_cast<std::size_t>(kCells); ++i) {
          for (std::size_t l = 0; l < 3; ++l) REQUIRE(levels[l * kCells + i] == expected[me][l * kCells + i]);
          REQUIRE(own[i] == singles[me][i]);
        }
      };
      const auto each = [&](auto&& move) {
        for (const Wanted& one : graph)
          for (std::size_t i = 0; i < one.cells.size(); ++i)
            move(static_cast<std::size_t>(one.owner), static_cast<std::size_t>(one.cells[i]),
                 static_cast<std::size_t>(one.taker), static_cast<std::size_t>(one.ghosts[i]));
      };
      there.start();
      there.wait();
      each([&](std::size_t owner, std::size_t cell, std::size_t taker, std::size_t ghost) {
        for (std::size_t l = 0; l < 3; ++l) expected[taker][l * kCells + ghost] = expected[owner][l * kCells + cell];
        singles[taker][ghost] = singles[owner][cell];
      });
      check();
      back.start();
      back.wait();
      const auto before = expected;
      const auto before_singles = singles;
      each([&](std::size_t owner, std::size_t cell, std::size_t taker, std::size_t ghost) {
        for (std::size_t l = 0; l < 3; ++l) expected[owner][l * kCells + cell] += before[taker][l * kCells + ghost];
        singles[owner][cell] += before_singles[taker][ghost];
      });
      check();
    }
  }
}

RANK_TEST("exchanges that are made again and again, started in any order") {
  Random random(11);
  Random order(12 + static_cast<unsigned>(ctx.rank()));
  std::vector<std::int32_t> a(kCells), b(kCells);
  for (int number = 0; number < 10; ++number) {
    const auto graph = random_graph(ctx.size(), random);
    Exchange one(ctx, {ExchangeField(a.data(), kCells)}, entries_of(graph, ctx.rank()));
    Exchange two(ctx, {ExchangeField(b.data(), kCells)}, entries_of(graph, ctx.rank()));
    for (std::int64_t c = 0; c < kCells; ++c) {
      a[static_cast<std::size_t>(c)] = static_cast<std::int32_t>(1000 * ctx.rank() + c + number);
      b[static_cast<std::size_t>(c)] = -a[static_cast<std::size_t>(c)];
    }
    std::vector<Operation*> both{&one, &two};
    std::shuffle(both.begin(), both.end(), order);
    for (Operation* operation : both) operation->start();
    std::shuffle(both.begin(), both.end(), order);
    for (Operation* operation : both) operation->wait();
    for (const Wanted& wanted : graph) {
      if (wanted.taker != ctx.rank()) continue;
      for (std::size_t i = 0; i < wanted.cells.size(); ++i) {
        const auto ghost = static_cast<std::size_t>(wanted.ghosts[i]);
        REQUIRE(a[ghost] == 1000 * wanted.owner + wanted.cells[i] + number);
        REQUIRE(b[ghost] == -a[ghost]);
      }
    }
  }
}

RANK_TEST("what is wrong with an exchange on the last rank is named on every rank") {
  const int last = ctx.size() - 1;
  const std::string of_last = "Exchange: rank " + std::to_string(last) + ": ";
  std::vector<double> field(10);
  const auto made = [&](const std::vector<ExchangeEntry>& entries, ExchangeField given) {
    return error_of([&] { Exchange(ctx, {given}, ctx.rank() == last ? entries : std::vector<ExchangeEntry>{}); });
  };
  const ExchangeField good(field.data(), 10);
  CHECK(says(made({{0, {10}}}, good), of_last + "entry 0: 'send' names cell 10 (place 0), but field field has 10"));
  CHECK(says(made({{-1, {1}}}, good), of_last + "entry 0 is for rank -1, but there are ranks 0 to"));
  CHECK(
      says(made({{0, {}, {3}}, {0, {}, {3}}}, good), of_last + "cell 3 is received twice: in entry 0 and in entry 1"));
  CHECK(says(made({{0, {3}, {3}}}, good), of_last + "cell 3 is received (entry 0), but also sent (entry 0)"));
  ExchangeEntry both{0, {1}};
  both.send_layouts = {Layout::bytes(8)};
  CHECK(says(made({both}, good), of_last + "entry 0: 'send' has cells and layouts; give one of them"));
  both.send = {};
  both.send_layouts = {Layout::bytes(8), Layout::bytes(8)};
  CHECK(says(made({both}, good), of_last + "entry 0: 'send' has 2 layouts for 1 fields"));
  both.send_layouts = {Layout::bytes(8)};
  both.receive_layouts = {Layout::bytes(12)};
  CHECK(says(made({both}, good), of_last + "bytes of field field are sent and received"));
  CHECK(says(made({{0, {1}}}, ExchangeField(static_cast<double*>(nullptr), 10)), "field field: the memory is null"));
  Cells overlapping = Cells::of(DType::f64, 10, 2);
  overlapping.cell = Layout::resized(overlapping.cell, 0, 8);
  CHECK(says(error_of([&] { Exchange(ctx, {ExchangeField(field.data(), overlapping)}, {}); }), "share bytes"));
}
