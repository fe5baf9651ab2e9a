// Redistributions in place on GPU memory without a GPU: what is overwritten has been copied before, in any order in
// which blocks and ranks go on, over every path.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu_ranks.hpp"
#include "planner/planner.hpp"
#include "shapes/joint.hpp"
#include "shapes/redistribute.hpp"

using namespace gpu_ranks;

namespace {

// An array by blocks becomes one that is dealt out, in the same memory.
std::vector<Plan> plans_in_place(const Machine& machine, std::int64_t each, const std::string& path) {
  const int ranks = machine.size();
  const ArrayDistribution blocks{{each * ranks}, {DimDistribution::block(ranks)}};
  const ArrayDistribution dealt{{each * ranks}, {DimDistribution::cyclic(ranks)}};
  const RedistributeSides sides({blocks, {}}, {dealt, {}}, {});
  const Layout cell = Layout::bytes(8);
  const auto cells_of = [&](int rank) {
    RedistributeCells cells{LocalCells::c_order(blocks.local(rank), cell), LocalCells::c_order(dealt.local(rank), cell),
                            true};
    return std::vector{cells};
  };
  std::vector<Problem> problems;
  Facts facts;
  std::vector<std::vector<Decision>> decisions;
  for (int rank = 0; rank < ranks; ++rank) {
    problems.push_back(redistribute_problem(sides, {"array"}, rank, 0, true, cells_of));
    problems.back().wanted = path;
    const BufferFact fact = allocated(8 * each, Memory::device, true);
    facts.set(rank, std::make_shared<const std::vector<BufferFact>>(std::vector{fact, fact, fact}));
  }
  for (const Problem& problem : problems) decisions.push_back(choose(machine, problem, facts));
  std::vector<Plan> plans;
  for (const Problem& problem : problems) {
    const DecisionsOf decided = [&](int rank) {
      std::span<const Decision> all(decisions[static_cast<std::size_t>(rank)]);
      if (rank == problem.rank) return all;
      const auto first = std::ranges::lower_bound(all, problem.rank, {}, &Decision::dst_rank);
      return std::span<const Decision>(first, std::ranges::upper_bound(all, problem.rank, {}, &Decision::dst_rank));
    };
    plans.push_back(emit(machine, problem, facts, settle(problem, decided)));
  }
  return plans;
}

}  // namespace

TEST_CASE("a redistribution in place on GPUs sends what was there before, over every path") {
  Random random(17);
  int ran = 0;
  for (const std::string path : {"peer:put", "peer:eager", "peer:ll", "peer:pull", "peer:copy", "mpi:staged"})
    for (const int ranks : {2, 3})
      for (const Pieces pieces : {Pieces::one, Pieces::two, Pieces::either})
        for (int i = 0; i < 8; ++i) {
          CAPTURE(path);
          CAPTURE(ranks);
          CAPTURE(static_cast<int>(pieces));
          World world;
          world.same_as = {{"target", "source"}};
          std::vector<std::unique_ptr<Rank>> all;
          for (const Plan& plan : plans_in_place(Machine::uniform(ranks, ranks, 0, true), 60 * ranks, path))
            all.push_back(std::make_unique<Rank>(world, plan, i % 2 == 0 ? 132 : 3, pieces, i % 4 < 2));
          int idle = 0;
          while (idle < 200 && !std::ranges::all_of(all, [](const auto& rank) { return rank->done(); }))
            idle = all[random() % all.size()]->advance(random) ? 0 : idle + 1;
          CHECK_MESSAGE(idle < 200, "nobody can go on");
          ++ran;
        }
  CHECK(ran == 6 * 2 * 3 * 8);
}
