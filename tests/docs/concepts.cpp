// The plans that docs/concepts.md shows are those that planning makes.
#include <fstream>
#include <sstream>
#include <string>

#include "rank_test.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

TEST_CASE("the transfer's plans in the concepts are those that planning makes") {
  std::ifstream file(TASUKI_DOCS "/concepts.md");
  std::stringstream page;
  page << file.rdbuf();
  TransferShape transfer;
  transfer.to = 1;
  transfer.src = transfer.dst = Layout::bytes(4096);
  transfer.path = "shared:put";
  const Planned planned = plan(Machine::uniform(2, 2, 0), transfer);
  const std::string first = to_text(planned.plan(0));
  CHECK(page.str().find("```\n" + first + "```\n") != std::string::npos);
  // Of rank 1 the page shows what differs: its commands and what it expects.
  const std::string second = to_text(planned.plan(1));
  CHECK(page.str().find("```\n" + second.substr(second.find("command 0")) + "```\n") != std::string::npos);
}
