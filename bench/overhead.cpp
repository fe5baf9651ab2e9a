// The overhead group: what a start costs the caller before any data can move.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "case.hpp"

namespace bench {

std::vector<Case> overhead_cases(int ranks) {
  std::vector<Case> cases;
  const std::vector<std::int64_t> cells(3, 16);
  const std::vector<int> split = {ranks, 1, 1};
  for (const bool exchange : {true, false}) {
    for (const bool start_only : {true, false}) {
      cases.push_back(
          {"overhead",
           fmt::format("{} of a {}halo, 16^3 w1", start_only ? "start" : "start and wait", exchange ? "" : "width-0 "),
           exchange ? (18 * 18 * 18 - 16 * 16 * 16) * 8 : 0, true, [=](const tasuki::Context& context) {
             Problem problem = halo_problem(context, cells, 1, split, 1, {true, true, true}, exchange);
             problem.cache_lines = 0;
             problem.time_start_only = start_only;
             problem.barrier_between = start_only;  // so that the neighbours are ready
             return problem;
           }});
    }
  }
  return cases;
}

}  // namespace bench
