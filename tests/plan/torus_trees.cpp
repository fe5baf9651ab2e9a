// Trees over tori: no link is used twice, everybody is reached once, and broadcasts and reductions along them are
// sound.
#include "collectives/torus_trees.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/torus_parts.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

using Hop = std::pair<int, int>;

int points_of(const std::vector<int>& extents) {
  int points = 1;
  for (const int extent : extents) points *= extent;
  return points;
}

// Neighbours: one step in one dimension, round the end.
bool is_link(const std::vector<int>& extents, int from, int to) {
  int stride = points_of(extents);
  int steps = 0;
  for (const int extent : extents) {
    stride /= extent;
    const int far = (to / stride % extent - from / stride % extent + extent) % extent;
    if (far != 0) steps += far == 1 || far == extent - 1 ? 1 : 2;
  }
  return steps == 1;
}

Machine torus_machine(const std::vector<int>& extents, int per_host = 1) {
  Machine machine = Machine::uniform(points_of(extents) * per_host, per_host, 0);
  machine.name = "torus";
  machine.outside = {Network::Kind::torus, extents, 3, 12.5e9, 1e-6};
  machine.costs["mpi"].one_way = machine.costs["mpi"].mutual = {2e-6, 12.5e9, 12.5e9, 2e-9};
  return machine;
}

}  // namespace

TEST_CASE("trees over a torus use links only, each once, and reach everybody") {
  const std::vector<std::vector<int>> tori{{3, 2, 6}, {4, 4, 4}, {8, 8}, {5, 7},      {2, 2},
                                           {6},       {2},       {1, 5}, {3, 3, 2, 2}};
  for (const auto& extents : tori) {
    const int points = points_of(extents);
    for (int trees = 1; trees <= torus_links(extents); ++trees) {
      for (const int root : {0, points - 1, points / 2}) {
        for (const int arity : {1, 2, 3}) {
          CAPTURE(points);
          CAPTURE(trees);
          CAPTURE(root);
          CAPTURE(arity);
          const std::vector<Tree> all = torus_trees(extents, root, trees, arity);
          REQUIRE(std::ssize(all) == trees);
          std::set<Hop> used;
          for (const Tree& tree : all) {
            int reached = 0;
            std::vector<int> front{root};
            while (!front.empty()) {
              const int from = front.back();
              front.pop_back();
              ++reached;
              for (const int to : tree.children[static_cast<std::size_t>(from)]) {
                CHECK(is_link(extents, from, to));
                CHECK(used.emplace(from, to).second);
                CHECK(tree.parent[static_cast<std::size_t>(to)] == from);
                front.push_back(to);
              }
            }
            CHECK(reached == points);
            CHECK(tree.parent[static_cast<std::size_t>(root)] == -1);
          }
        }
      }
    }
  }
}

TEST_CASE("three ternary trees over a torus are shallow, and nobody sends more often than the root") {
  for (const auto& extents : std::vector<std::vector<int>>{{3, 2, 6}, {4, 4, 4}, {8, 8}, {5, 7}}) {
    const std::vector<Tree> all = torus_trees(extents, 0, 3, 3);
    std::vector<std::size_t> sends(all[0].parent.size(), 0);
    int farthest = 0;
    for (const int extent : extents) farthest += extent / 2;
    for (const Tree& tree : all) {
      CHECK(tree.children[0].size() == 1);
      CHECK(tree.depth() <= 3 * farthest);
      for (std::size_t p = 0; p < sends.size(); ++p) {
        CHECK(tree.children[p].size() <= 3);
        sends[p] += tree.children[p].size();
      }
    }
    CHECK(*std::max_element(sends.begin(), sends.end()) <= 4);
  }
}

TEST_CASE("the plans of a broadcast and a reduction over a torus use no link twice, and are sound") {
  for (const auto& extents : std::vector<std::vector<int>>{{3, 2, 6}, {4, 4}, {5, 7}, {3}}) {
    for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
      for (const int trees : {0, 1, 2, 3}) {
        if (trees > torus_links(extents)) continue;
        const Machine machine = torus_machine(extents);
        CollectiveShape shape;
        shape.kind = kind;
        shape.root = machine.size() / 3;
        shape.type = kind == CollectiveKind::reduce ? DType::i32 : DType::u8;
        shape.count = 331;
        shape.algorithm = "torus";
        shape.trees = trees;
        shape.chunk = 44;
        const std::vector<Plan> plans = plan(machine, shape).plans();
        const CollectivePlan layout(machine, shape);
        const bool up = kind == CollectiveKind::reduce;
        std::map<Hop, std::string> tree_of;  // the tree that uses a link
        for (const TreePart& part : torus_parts(layout.collective(), layout.parameters())) {
          for (int r = 0; r < machine.size(); ++r) {
            const int parent = part.tree.parent[static_cast<std::size_t>(r)];
            if (parent < 0) continue;
            const std::string tree = part.name.substr(0, part.name.find(','));
            CHECK(tree_of.try_emplace(up ? Hop(r, parent) : Hop(parent, r), tree).first->second == tree);
          }
        }
        std::map<Hop, std::int64_t> bytes;
        for (const Plan& one : plans)
          for (const Command& c : one.commands)
            if (c.verb == Verb::send)
              bytes[{one.rank, c.peer}] +=
                  c.bytes * (c.loop < 0 ? 1 : one.loops[static_cast<std::size_t>(c.loop)].count);
        CHECK(bytes.size() == tree_of.size());
        for (const auto& [link, sum] : bytes) {
          CHECK(is_link(extents, link.first, link.second));
          CHECK(tree_of.contains(link));
          CHECK(sum < 331 * (kind == CollectiveKind::reduce ? 4 : 1) / layout.parameters().trees + 130);
        }
        const VerifyReport report = verify(plans);
        INFO(report.text());
        CHECK(report.ok());
      }
    }
  }
}

TEST_CASE("hosts of several ranks on a torus: between hosts only links, and every host is entered once a tree") {
  const std::vector<int> extents{3, 4};
  const Machine machine = torus_machine(extents, 3);
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.root = 7;
  shape.count = 1000;
  shape.algorithm = "torus";
  shape.trees = 4;
  const CollectivePlan layout(machine, shape);
  std::map<Hop, std::string> used;
  for (const TreePart& part : torus_parts(layout.collective(), layout.parameters())) {
    for (int r = 0; r < machine.size(); ++r) {
      const int parent = part.tree.parent[static_cast<std::size_t>(r)];
      if (parent < 0 || parent / 3 == r / 3) continue;
      CHECK(is_link(extents, parent / 3, r / 3));
      const std::string tree = part.name.substr(0, part.name.find(','));
      CHECK(used.try_emplace(Hop(parent / 3, r / 3), tree).first->second == tree);
    }
  }
  CHECK(used.size() == 4 * 11);
  const VerifyReport report = verify(plan(machine, shape).plans());
  INFO(report.text());
  CHECK(report.ok());
}

TEST_CASE("a large broadcast on a torus is laid over it, over several links at once, and beats one link") {
  const Machine machine = torus_machine({3, 2, 6});
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.count = 64 << 20;
  const CollectivePlan layout(machine, shape);
  CHECK(layout.algorithm().name == "torus");
  CHECK(layout.parameters().trees >= 3);
  const Planned planned = plan(machine, shape);
  const double one_link = static_cast<double>(shape.count) / 12.5e9;
  CHECK(planned.predict().seconds < 0.6 * one_link);
  CHECK(planned.predict().seconds > one_link / 3);
  CHECK(planned.explain(0).find("bound of the hardware, by the prices: ") != std::string::npos);
}

TEST_CASE("algorithm 'torus' is refused where there is no torus, and so are more trees than links") {
  const auto says = [](const Machine& machine, int trees) {
    CollectiveShape shape;
    shape.kind = CollectiveKind::broadcast;
    shape.count = 100;
    shape.algorithm = "torus";
    shape.trees = trees;
    try {
      plan(machine, shape);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(
      says(Machine::uniform(4, 1, 0), 0).starts_with("broadcast with algorithm 'torus': the machine's hosts are not"));
  CHECK(says(torus_machine({4}), 3) ==
        "broadcast with algorithm 'torus': option 'trees' is 3, but 2 links leave a host of this torus, and so many "
        "trees share none");
  CHECK(says(torus_machine({4}), 2) == "none");
  Machine partial = torus_machine({3, 3});
  partial.ranks.pop_back();
  CHECK(says(partial, 0).find("a host at every point") != std::string::npos);
}

TEST_CASE("trees over a torus of 1024 hosts") {
  const std::vector<int> extents{8, 8, 16};
  std::set<Hop> used;
  for (const Tree& tree : torus_trees(extents, 5, 3, 3)) {
    for (int p = 0; p < 1024; ++p)
      for (const int to : tree.children[static_cast<std::size_t>(p)])
        CHECK((used.emplace(p, to).second && is_link(extents, p, to)));
  }
  CHECK(used.size() == 3 * 1023);
}
