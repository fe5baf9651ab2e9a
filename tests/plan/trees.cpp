// Broadcast trees: every rank once, islands entered once, inner nodes spread over the trees.
#include "collectives/trees.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace tasuki;

TEST_CASE("every rank has one parent and hangs under the root, for every shape") {
  for (const int ranks : {1, 2, 3, 7, 16}) {
    for (const int island_size : {1, 3, 4, 16}) {
      std::vector<int> island;
      for (int r = 0; r < ranks; ++r) island.push_back(r / island_size);
      for (int root = 0; root < ranks; ++root) {
        for (const int arity : {1, 2, 3}) {
          for (int which = 0; which < 3; ++which) {
            const Tree tree = make_tree(island, root, arity, which, 3);
            int reached = 0;
            std::vector<int> front{root};
            while (!front.empty()) {
              const auto at = static_cast<std::size_t>(front.back());
              front.pop_back();
              ++reached;
              for (const int child : tree.children[at]) {
                CHECK(tree.parent[static_cast<std::size_t>(child)] == static_cast<int>(at));
                front.push_back(child);
              }
            }
            CHECK(reached == ranks);
            CHECK(tree.parent[static_cast<std::size_t>(root)] == -1);
            int entries = 0;
            for (int r = 0; r < ranks; ++r) {
              const int parent = tree.parent[static_cast<std::size_t>(r)];
              if (parent >= 0 && island[static_cast<std::size_t>(parent)] != island[static_cast<std::size_t>(r)])
                ++entries;
            }
            CHECK(entries == island.back());  // islands other than the root's
          }
        }
      }
    }
  }
}

TEST_CASE("a chain is as deep as it is long, and three trees have three different second ranks") {
  const std::vector<int> island(7, 0);
  CHECK(make_tree(island, 0, 1, 0, 1).depth() == 6);
  CHECK(make_tree(island, 0, 6, 0, 1).depth() == 1);
  std::vector<int> second;
  for (int which = 0; which < 3; ++which) second.push_back(make_tree(island, 2, 2, which, 3).children[2].front());
  std::sort(second.begin(), second.end());
  CHECK(std::unique(second.begin(), second.end()) == second.end());
}
