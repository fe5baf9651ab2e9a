// Messages: what lies in memory as it travels is neither packed nor unpacked, however many moves it is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

std::int64_t commands(const Plan& plan, Verb verb) {
  return std::ranges::count_if(plan.commands, [&](const Command& c) { return c.verb == verb; });
}

// Over path `mpi`, from rank 0 to rank 1.
Planned sent(const Layout& from, const Layout& to) {
  TransferShape shape;
  shape.to = 1;
  shape.src = from;
  shape.dst = to;
  shape.path = "mpi";
  Planned planned = plan(Machine::uniform(2, 2, 0), shape);
  CHECK(verify(planned.plans()).ok());
  return planned;
}

}  // namespace

TEST_CASE("a contiguous transfer is one message from memory to memory") {
  const Layout whole = Layout::bytes(8 << 20);  // large enough to be planned in parts
  const Planned planned = sent(whole, whole);
  CHECK(planned.plan(0).commands.size() == 1);
  CHECK(commands(planned.plan(0), Verb::send) == 1);
  CHECK(planned.plan(1).commands.size() == 1);
  CHECK(commands(planned.plan(1), Verb::recv) == 1);
}

TEST_CASE("only the side that is scattered is packed") {
  const Layout whole = Layout::bytes(1 << 20);
  const Layout rows = Layout::hvector(1 << 10, 1, 4 << 10, Layout::bytes(1 << 10));
  const Planned gathered = sent(rows, whole);
  CHECK(commands(gathered.plan(0), Verb::copy) > 0);
  CHECK(commands(gathered.plan(1), Verb::copy) == 0);
  const Planned scattered = sent(whole, rows);
  CHECK(commands(scattered.plan(0), Verb::copy) == 0);
  CHECK(commands(scattered.plan(1), Verb::copy) > 0);
  const Planned both = sent(rows, rows);
  CHECK(commands(both.plan(0), Verb::copy) > 0);
  CHECK(commands(both.plan(1), Verb::copy) > 0);
}

TEST_CASE("bytes that travel in another order than they lie in are packed") {
  const Layout whole = Layout::bytes(1 << 20);
  const Layout half = Layout::bytes(1 << 19);
  const Layout swapped = Layout::hvector(2, 1, -(1 << 19), half);  // in front of its address
  const Planned planned = sent(swapped, whole);
  CHECK(commands(planned.plan(0), Verb::copy) > 0);
  CHECK(commands(planned.plan(1), Verb::copy) == 0);
}
