// Collectives on GPU memory, planned for GPUs that are not there: every algorithm is verified, on every path; what work
// of a stream cannot carry is not given to it; the choice is by price.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collective_shapes.hpp"
#include "collectives/algorithm.hpp"
#include "paths/path.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

CollectiveShape random_gpu_shape(CollectiveKind kind, int ranks, Random& random) {
  CollectiveShape shape = random_shape(kind, ranks, random);
  shape.memory = Memory::device;
  shape.shared = below(random, 4) != 0;
  return shape;
}

// A stream has all its messages at once: none may need what arrives, none may be in a loop, and between two of a lane
// nothing is done with what the first one brought for the second one.
void check_messages(const std::vector<Plan>& plans) {
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.commands.size(); ++i) {
      const Command& c = plan.commands[i];
      const Path& path = path_named(plan.paths[static_cast<std::size_t>(c.path)]);
      if (!path.carries(c.verb)) continue;
      CHECK(c.loop < 0);
      if (path.in_background || c.verb == Verb::recv) continue;
      // Everything before it in its lane, and what that depends on, is this rank's own or a permission.
      std::set<std::int32_t> seen, open{static_cast<std::int32_t>(i)};
      while (!open.empty()) {
        const std::int32_t at = *open.begin();
        open.erase(open.begin());
        if (!seen.insert(at).second) continue;
        const Command& before = plan.commands[static_cast<std::size_t>(at)];
        CHECK(before.verb != Verb::recv);
        if (before.verb == Verb::wait) {
          const Purpose purpose = plan.buffers[static_cast<std::size_t>(before.src)].purpose;
          CHECK((purpose == Purpose::ready || purpose == Purpose::credit));
        }
        for (auto d = before.first_dep; d < before.first_dep + before.dep_count; ++d)
          open.insert(plan.deps[static_cast<std::size_t>(d)]);
        if (at > 0 && plan.commands[static_cast<std::size_t>(at) - 1].lane == before.lane) open.insert(at - 1);
      }
    }
  }
}

// Checks the plans, and returns whether there was a path for everything.
bool carries(const Machine& machine, const CollectiveShape& shape) {
  INFO(described(shape, machine.size()));
  std::vector<Plan> plans;
  try {
    plans = plan(machine, shape).plans();
  } catch (const PathUnusable&) {
    return false;
  } catch (const Error& error) {
    FAIL_CHECK(std::string(error.what()));
    return true;
  }
  const VerifyReport report = verify(plans);
  INFO(report.text());
  CHECK(report.ok());
  check_messages(plans);
  return true;
}

Machine gpus(int ranks, int per_island = 0) {
  return Machine::uniform(ranks, ranks, per_island, true);
}

}  // namespace

TEST_CASE("GPUs: every algorithm of every collective is sound, whatever the counts") {
  Random random(31);
  for (const CollectiveKind kind : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (const int ranks : {2, 3, 4, 5, 7, 8, 16}) {
        CollectiveShape shape = random_gpu_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        if (ranks > 8) shape.count = std::min<std::int64_t>(shape.count, ranks);
        CHECK(carries(gpus(ranks), shape));
      }
    }
  }
}

TEST_CASE("GPUs: small collectives are sound on every path that can carry them, in parts and chunks, across islands") {
  Random random(32);
  const std::vector<std::string> paths{"auto",
                                       "peer:put,peer:eager",
                                       "peer:put,peer:ll",
                                       "peer:copy,peer:eager",
                                       "peer:eager",
                                       "peer:ll,peer:eager",
                                       "peer:pull,peer:eager",
                                       "peer:pull,peer:copy,peer:ll,peer:eager",
                                       "mpi",
                                       "nccl"};
  int carried = 0;
  int all = 0;
  for (const CollectiveKind kind : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (int i = 0; i < 60; ++i) {
        const int ranks = 1 + static_cast<int>(below(random, 6));
        CollectiveShape shape = random_gpu_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        shape.path = paths[static_cast<std::size_t>(below(random, std::ssize(paths)))];
        if (algorithm->settings != nullptr && below(random, 2) == 0) shape.chunk = 1 + below(random, 300);
        if (algorithm->over_trees && below(random, 2) == 0) shape.arity = static_cast<int>(below(random, 4));
        const bool islands = ranks > 2 && below(random, 4) == 0;
        ++all;
        const bool has = carries(gpus(ranks, islands ? 2 : 0), shape);
        carried += has ? 1 : 0;
        // Chunks of a loop are for GPUs that reach each other; so are the paths of peers, and NCCL cannot be told to
        // wait.
        const bool any = shape.path == "auto" || shape.path == "mpi";
        INFO(described(shape, ranks));
        if (!has) CHECK((!any || shape.chunk > 0));
      }
    }
  }
  CHECK(carried > all / 2);
}

TEST_CASE("GPUs: an algorithm is chosen that the paths can carry") {
  for (const CollectiveKind kind : all_collectives()) {
    for (const std::string path : {"auto", "mpi", "nccl"}) {
      for (const std::int64_t count : {16, 100000}) {
        CollectiveShape shape;
        shape.kind = kind;
        shape.memory = Memory::device;
        shape.shared = true;
        shape.type = DType::f32;
        shape.count = kind == CollectiveKind::barrier ? 0 : count;
        shape.path = path;
        INFO(described(shape, 4));
        const Machine machine = gpus(4, path == "auto" ? 2 : 0);
        // Scans and barriers send on what arrives, which no order of NCCL's can know.
        const bool relays =
            kind == CollectiveKind::scan || kind == CollectiveKind::exscan || kind == CollectiveKind::barrier;
        if (path == "nccl" && relays) {
          CHECK_THROWS_AS(plan(machine, shape), PathUnusable);
          continue;
        }
        CHECK_NOTHROW(plan(machine, shape).plans());
      }
    }
  }
}

TEST_CASE("GPUs: ranks without one are refused") {
  CollectiveShape shape;
  shape.memory = Memory::device;
  shape.type = DType::f32;
  shape.count = 4;
  CHECK_THROWS_WITH_AS(plan(Machine::uniform(2, 2, 0), shape),
                       "machine machine: device memory was asked for, but rank 0 has no GPU", Error);
}
