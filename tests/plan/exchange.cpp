// Exchanges off line: random lists are sound on every path and both ways, large ones by neighbourhoods, and lists that
// do not fit are named.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

using Numbers = std::vector<std::int64_t>;

ExchangeShape random_exchange(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  ExchangeShape shape;
  shape.fields = {Cells::of(DType::f64, 200, 3, "u"), Cells::levels_first(DType::i16, 200, 2, "v")};
  shape.entries.resize(static_cast<std::size_t>(ranks));
  Numbers next(static_cast<std::size_t>(ranks), 20);
  for (int message = 0; message < 4 * ranks; ++message) {
    const auto owner = static_cast<std::size_t>(below(ranks));
    const auto taker = static_cast<std::size_t>(below(ranks));
    Numbers cells, ghosts;
    for (std::int64_t cell = below(4); cell < 20 && next[taker] < 200; cell += 1 + below(3)) {
      cells.push_back(cell);
      ghosts.push_back(next[taker]++);
    }
    std::shuffle(cells.begin(), cells.end(), random);
    shape.entries[owner].push_back({static_cast<int>(taker), cells});
    shape.entries[taker].push_back({static_cast<int>(owner), {}, ghosts});
  }
  return shape;
}

// Every rank has as many neighbours as in a grid of boxes, at distances that no grid has.
ExchangeShape far_neighbours(int ranks, int peers) {
  ExchangeShape shape;
  shape.fields = {Cells::of(DType::f64, -1, 4)};
  shape.entries.resize(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    for (int k = 1; k <= peers / 2; ++k) {
      for (const int away : {k * k, -k * k}) {
        const std::int64_t begin = 100 + 20 * (2 * k + (away > 0 ? 0 : 1));
        ExchangeEntry& entry = shape.entries[static_cast<std::size_t>(rank)].emplace_back();
        entry.peer = (rank + away + ranks) % ranks;
        for (std::int64_t i = 0; i < 10; ++i) {
          entry.send.push_back((k % 2 == 0 ? 5 : 1) * i);  // as some sides of a box are contiguous
          entry.receive.push_back(begin + i);
        }
      }
    }
  }
  return shape;
}

// Cells that follow no rule, for 26 peers.
ExchangeShape scattered_neighbours(std::int64_t cells) {
  constexpr int kRanks = 27;
  ExchangeShape shape;
  shape.fields = {Cells::of(DType::f64, -1)};
  shape.entries.resize(kRanks);
  std::mt19937 random(5);
  for (int rank = 0; rank < kRanks; ++rank) {
    Numbers owned(5000), ghosts(2000);
    std::iota(owned.begin(), owned.end(), 0);
    std::iota(ghosts.begin(), ghosts.end(), 5000);
    for (Numbers* list : {&owned, &ghosts}) std::shuffle(list->begin(), list->end(), random);
    const auto next = [&](Numbers& from) {
      const Numbers taken(from.end() - cells, from.end());
      from.resize(from.size() - taken.size());
      return taken;
    };
    for (int peer = 0; peer < kRanks; ++peer)
      if (peer != rank) shape.entries[static_cast<std::size_t>(rank)].push_back({peer, next(owned), next(ghosts)});
  }
  return shape;
}

std::string said(const ExchangeShape& shape) {
  try {
    (void)plan(Machine::uniform(static_cast<int>(shape.entries.size()), 2, 2), shape);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("random exchanges are sound on every path, both ways") {
  for (unsigned seed = 0; seed < 6; ++seed)
    for (const bool reverse : {false, true})
      for (const char* path : {"auto", "mpi", "shared:eager,mpi", "shared:pull,mpi", "shared:put,shared:eager,mpi"}) {
        CAPTURE(seed);
        CAPTURE(reverse);
        CAPTURE(path);
        ExchangeShape shape = random_exchange(5, seed);
        shape.reverse = reverse;
        shape.op = seed % 2 == 0 ? ReduceOp::sum : ReduceOp::max;
        shape.shared = seed % 3 != 0;
        shape.path = path;
        const Planned planned = plan(Machine::uniform(5, 3, 3), shape);
        const auto plans = planned.plans();
        const VerifyReport report = verify(plans);
        INFO(report.text());
        CHECK(report.ok());
        for (const Plan& one : plans) {
          CHECK(one.operation == (reverse ? "reverse exchange u,v" : "exchange u,v"));
          CHECK(plan_from_json(to_json(one)) == one);
          for (const Command& c : one.commands)
            if (c.verb == Verb::reduce) CHECK(c.op == shape.op);
        }
      }
}

TEST_CASE("an exchange of 1000 ranks with 26 peers each is small, sound by neighbourhoods, and predicted") {
  ExchangeShape shape = far_neighbours(1000, 26);
  shape.shared = true;
  const Planned planned = plan(Machine::uniform(1000, 8, 8), shape);
  const auto plans = planned.plans();
  std::int64_t most = 0;
  for (const Plan& one : plans) most = std::max(most, one.memory());
  CHECK(most <= 24 << 10);
  const NeighbourhoodReport report = verify_neighbourhoods(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(planned.predict().seconds > 0);
}

TEST_CASE("plans of scattered cells for 26 peers each are small, too") {
  for (const int island : {1, 4}) {
    CAPTURE(island);
    const auto plans = plan(Machine::uniform(27, island, island), scattered_neighbours(16)).plans();
    for (const Plan& one : plans) CHECK(one.memory() <= 24 << 10);
    const VerifyReport report = verify(plans);
    INFO(report.text());
    CHECK(report.ok());
  }
}

TEST_CASE("plans of scattered cells take no more memory than three times the lists of cells") {
  constexpr std::int64_t kListed = 300;
  std::mt19937 random(8);
  for (const bool levels_first : {false, true})
    for (const bool reverse : {false, true}) {
      CAPTURE(levels_first);
      CAPTURE(reverse);
      ExchangeShape shape;
      shape.fields = {levels_first ? Cells::levels_first(DType::f32, 4 * kListed, 9, "u")
                                   : Cells::of(DType::f64, 4 * kListed, 1, "u")};
      shape.reverse = reverse;
      shape.shared = true;
      for (int rank = 0; rank < 2; ++rank) {
        Numbers cells(3 * kListed), ghosts(kListed);
        std::iota(cells.begin(), cells.end(), 0);
        std::iota(ghosts.begin(), ghosts.end(), 3 * kListed);
        for (Numbers* list : {&cells, &ghosts}) std::shuffle(list->begin(), list->end(), random);
        cells.resize(kListed);
        shape.entries.push_back({{1 - rank, cells, ghosts}});
      }
      const Planned planned = plan(Machine::uniform(2, 2, 2), shape);
      const auto plans = planned.plans();
      for (const Plan& one : plans) {
        CHECK(one.memory() <= 3 * 2 * kListed * static_cast<std::int64_t>(sizeof(std::int64_t)));
        CHECK(plan_from_text(to_text(one)) == one);
        CHECK(plan_from_json(to_json(one)) == one);
      }
      CHECK(verify(plans).ok());
      CHECK(verify_neighbourhoods(plans).ok());
      CHECK(planned.predict().seconds > 0);
      CHECK(planned.explain(0).find("list") != std::string::npos);
      auto damaged = plans;
      for (Command& c : damaged[1].commands)
        if (c.copy_count > 0) damaged[1].copies[static_cast<std::size_t>(c.first_copy)].src_list = {};
      CHECK_FALSE(verify(damaged).ok());
    }
}

TEST_CASE("lists off line that are wrong, or do not fit, are named") {
  ExchangeShape shape;
  shape.fields = {Cells::of(DType::f64, 10, 1, "u")};
  shape.entries = {{{1, {0, 1}, {5}}}, {{0, {3}, {6, 7}}}};
  CHECK(said(shape) == "nothing");
  const auto changed = [&](auto&& change) {
    ExchangeShape other = shape;
    change(other);
    return said(other);
  };
  CHECK(
      changed([](auto& s) { s.entries[0][0].send.push_back(2); }) ==
      "Exchange: rank 0 sends 3 cells of field u to rank 1 (its entry 0), which receives 2 from it (its entry 0); they "
      "must be equal");
  const std::string backwards = changed([](auto& s) {
    s.entries[0][0].send.push_back(2);
    s.reverse = true;
  });
  CHECK(
      backwards ==
      "Exchange: rank 0 sends 3 cells of field u to rank 1 (its entry 0), which receives 2 from it (its entry 0); they "
      "must be equal");
  CHECK(changed([](auto& s) { s.entries[1].clear(); }) ==
        "Exchange: rank 0 sends to rank 1 in 1 of its entries, but rank 1 receives from rank 0 in 0 of its own; they "
        "must be equal");
  CHECK(changed([](auto& s) { s.entries[1][0].send = {10}; }) ==
        "Exchange: rank 1: entry 0: 'send' names cell 10 (place 0), but field u has 10 cells, from 0");
  CHECK(changed([](auto& s) { s.entries[1][0].peer = 2; }) ==
        "Exchange: rank 1: entry 0 is for rank 2, but there are ranks 0 to 1");
  CHECK(changed([](auto& s) { s.entries.pop_back(); }).find("but the machine has") == std::string::npos);
  CHECK(changed([](auto& s) {
          s.entries[0][0].send = {1, 1};
          s.reverse = true;
        }).find("rank 0: entry 0: 'send' names cell 1 twice, which reverse would combine twice") != std::string::npos);
  CHECK(changed([](auto& s) {
          s.op = ReduceOp::band;
          s.reverse = true;
        }).find("argument 'op' is 'band', which reverse cannot do with elements of f64 (field u)") !=
        std::string::npos);
}

TEST_CASE("cells that follow each other become runs, and equal distances one nest") {
  ExchangeShape shape;
  shape.fields = {Cells::of(DType::f64, 100, 4)};
  shape.entries = {{{1, {0, 1, 2, 3, 10, 12, 14, 16}, {}}}, {{0, {}, {50, 51, 52, 53, 54, 55, 56, 57}}}};
  shape.shared = true;
  shape.path = "shared:put";
  const Plan sender = plan(Machine::uniform(2, 2, 2), shape).plan(0);
  const auto put = std::ranges::find(sender.commands, Verb::put, &Command::verb);
  REQUIRE(put != sender.commands.end());
  CHECK(put->copy_count == 2);  // one run of four cells, four cells two apart
}
