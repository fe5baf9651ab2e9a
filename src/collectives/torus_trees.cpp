// Torus trees: see torus_trees.hpp.
//
// All trees grow together, a link at a time. A link may be taken if afterwards all trees can still be completed. By
// Edmonds' theorem on disjoint branchings that is so if every point can be reached from all trees at once over links
// that are still free: by as many ways as there are trees, which share no link, one from each tree. These ways are kept
// for every point, and only those that lose a link are looked for again. As the condition holds in the beginning (a
// torus is as connected as it has links a point), there is always a link that may be taken.
#include "collectives/torus_trees.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tasuki {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

struct Arc {
  int from = 0;
  int to = 0;
};

struct Torus {
  explicit Torus(const std::vector<int>& extents) {
    for (const int extent : extents) points *= extent;
    leaving.resize(at(points));
    entering.resize(at(points));
    for (int p = 0; p < points; ++p) {
      int stride = points;
      for (const int extent : extents) {
        stride /= extent;
        const int place = p / stride % extent;
        if (extent > 1) join(p, p + ((place + 1) % extent - place) * stride);
        if (extent > 2) join(p, p + ((place + extent - 1) % extent - place) * stride);
      }
    }
  }
  void join(int from, int to) {
    leaving[at(from)].push_back(static_cast<int>(arcs.size()));
    entering[at(to)].push_back(static_cast<int>(arcs.size()));
    arcs.push_back({from, to});
  }

  int points = 1;
  std::vector<Arc> arcs;
  std::vector<std::vector<int>> leaving, entering;  // per point: numbers of arcs
};

// Ways to a point, one from each tree: the arcs they use, and where each begins.
struct Ways {
  std::vector<char> uses;  // per arc
  std::vector<int> begin;  // per tree; -1: there is none
};

class Growing {
 public:
  Growing(const Torus& torus, int trees, int arity, unsigned seed)
      : torus_(torus),
        trees_(trees),
        arity_(arity),
        seed_(seed),
        free_(torus.arcs.size(), 1),
        member_(at(trees), std::vector<char>(at(torus.points), 0)),
        depth_(at(trees), std::vector<int>(at(torus.points), 0)),
        sends_(at(torus.points), 0),
        ways_(at(torus.points), Ways{std::vector<char>(torus.arcs.size(), 0), std::vector<int>(at(trees), -1)}) {
    grown_.resize(at(trees));
    for (int t = 0; t < trees; ++t) {
      grown_[at(t)].parent.assign(at(torus.points), -1);
      grown_[at(t)].children.resize(at(torus.points));
      member_[at(t)][0] = 1;
    }
    for (int p = 0; p < torus.points; ++p) complete(p);
  }

  std::vector<Tree> run() {
    for (int added = 1; added < torus_.points; ++added)
      for (int t = 0; t < trees_; ++t) add_to(t);
    return std::move(grown_);
  }

 private:
  // The shallowest place first, among points that do not send too much yet.
  void add_to(int t) {
    std::vector<std::tuple<bool, int, int, int, unsigned, int>> candidates;
    for (int arc = 0; arc < static_cast<int>(torus_.arcs.size()); ++arc) {
      const auto [from, to] = torus_.arcs[at(arc)];
      if (free_[at(arc)] == 0 || member_[at(t)][at(from)] == 0 || member_[at(t)][at(to)] != 0) continue;
      const auto children = static_cast<int>(grown_[at(t)].children[at(from)].size());
      const int sends = sends_[at(from)];
      candidates.emplace_back(children >= arity_, std::max(sends + 1 - trees_, 0), depth_[at(t)][at(from)], sends,
                              scattered(arc), arc);
    }
    std::sort(candidates.begin(), candidates.end());
    for (const auto& candidate : candidates)
      if (take(t, std::get<5>(candidate))) return;
  }

  // Which of equals comes first: another one with every seed.
  unsigned scattered(int arc) const {
    return seed_ == 0 ? 0 : (static_cast<unsigned>(arc) + seed_) * 2654435761U >> 7U;
  }

  // Gives the arc to the tree, unless some point would be cut off.
  bool take(int t, int arc) {
    const auto [from, to] = torus_.arcs[at(arc)];
    free_[at(arc)] = 0;
    member_[at(t)][at(to)] = 1;
    std::vector<std::pair<int, Ways>> before;
    bool good = true;
    for (int p = 0; p < torus_.points && good; ++p) {
      if (ways_[at(p)].uses[at(arc)] == 0) continue;
      before.emplace_back(p, ways_[at(p)]);
      drop(p, arc);
      good = complete(p);
    }
    if (!good) {
      for (auto& [p, ways] : before) ways_[at(p)] = std::move(ways);
      free_[at(arc)] = 1;
      member_[at(t)][at(to)] = 0;
      return false;
    }
    grown_[at(t)].parent[at(to)] = from;
    grown_[at(t)].children[at(from)].push_back(to);
    depth_[at(t)][at(to)] = depth_[at(t)][at(from)] + 1;
    ++sends_[at(from)];
    return true;
  }

  // Forgets the way to point `p` that uses the arc: back to where it begins, and on to the point. Or the circle that
  // the arc is part of: what searches turn can leave such.
  void drop(int p, int arc) {
    Ways& ways = ways_[at(p)];
    ways.uses[at(arc)] = 0;
    const auto [from, to] = torus_.arcs[at(arc)];
    int here = from;
    for (;;) {
      if (here == to) return;
      const auto begins = std::find(ways.begin.begin(), ways.begin.end(), here);
      if (begins != ways.begin.end()) {
        *begins = -1;
        break;
      }
      for (const int back : torus_.entering[at(here)]) {
        if (ways.uses[at(back)] == 0) continue;
        ways.uses[at(back)] = 0;
        here = torus_.arcs[at(back)].from;
        break;
      }
    }
    here = to;
    while (here != p) {
      for (const int on : torus_.leaving[at(here)]) {
        if (ways.uses[at(on)] == 0) continue;
        ways.uses[at(on)] = 0;
        here = torus_.arcs[at(on)].to;
        break;
      }
    }
  }

  // Finds the ways to point `p` that are missing. False if there are not enough.
  bool complete(int p) {
    for (int t = 0; t < trees_; ++t)
      if (ways_[at(p)].begin[at(t)] < 0 && !one_more(p)) return false;
    return true;
  }

  // One more way, by a search that may also turn others: breadth first over points, and trees, numbered behind them.
  bool one_more(int p) {
    Ways& ways = ways_[at(p)];
    const int nodes = torus_.points + trees_;
    constexpr int kUnseen = -3, kStart = -2, kTree = -1;  // else the arc over which it was reached
    std::vector<int> over(at(nodes), kUnseen), before(at(nodes), -1), queue;
    const auto reach = [&](int node, int arc, int from) {
      if (over[at(node)] != kUnseen) return;
      over[at(node)] = arc;
      before[at(node)] = from;
      queue.push_back(node);
    };
    for (int t = 0; t < trees_; ++t)
      if (ways.begin[at(t)] < 0) reach(torus_.points + t, kStart, -1);
    for (std::size_t next = 0; next < queue.size() && over[at(p)] == kUnseen; ++next) {
      const int node = queue[next];
      if (node >= torus_.points) {
        const auto& members = member_[at(node - torus_.points)];
        if (members[at(p)] != 0) reach(p, kTree, node);
        for (int q = 0; q < torus_.points; ++q)
          if (members[at(q)] != 0) reach(q, kTree, node);
        continue;
      }
      for (const int arc : torus_.leaving[at(node)])
        if (free_[at(arc)] != 0 && ways.uses[at(arc)] == 0) reach(torus_.arcs[at(arc)].to, arc, node);
      for (const int arc : torus_.entering[at(node)])
        if (ways.uses[at(arc)] != 0) reach(torus_.arcs[at(arc)].from, arc, node);
      for (int t = 0; t < trees_; ++t)
        if (ways.begin[at(t)] == node) reach(torus_.points + t, kTree, node);
    }
    if (over[at(p)] == kUnseen) return false;
    for (int node = p; over[at(node)] != kStart; node = before[at(node)]) {
      const int arc = over[at(node)];
      if (arc >= 0) {
        ways.uses[at(arc)] = ways.uses[at(arc)] != 0 ? 0 : 1;
      } else if (node < torus_.points) {
        ways.begin[at(before[at(node)] - torus_.points)] = node;
      }
    }
    return true;
  }

  const Torus& torus_;
  int trees_;
  int arity_;
  unsigned seed_;
  std::vector<char> free_;                 // per arc: in no tree yet
  std::vector<std::vector<char>> member_;  // per tree and point
  std::vector<std::vector<int>> depth_;    // the same
  std::vector<int> sends_;                 // per point: children in all trees
  std::vector<Ways> ways_;                 // per point
  std::vector<Tree> grown_;
};

// How often the root sends, how often the busiest point does, and how deep the deepest tree is: the less the better.
std::tuple<std::size_t, std::size_t, int> judged(const std::vector<Tree>& trees) {
  std::vector<std::size_t> sends(trees[0].parent.size(), 0);
  int depth = 0;
  for (const Tree& tree : trees) {
    depth = std::max(depth, tree.depth());
    for (std::size_t p = 0; p < sends.size(); ++p) sends[p] += tree.children[p].size();
  }
  return {sends[0], *std::max_element(sends.begin(), sends.end()), depth};
}

// The best of some trials.
std::vector<Tree> grown(const std::vector<int>& extents, int trees, int arity) {
  const Torus torus(extents);
  std::vector<Tree> best;
  const int trials = std::clamp(600 / torus.points, 1, 12);
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<Tree> all = Growing(torus, trees, arity, static_cast<unsigned>(trial)).run();
    if (best.empty() || judged(all) < judged(best)) best = std::move(all);
  }
  return best;
}

// The point so many steps further in every dimension as `by` is from 0.
int shifted(const std::vector<int>& extents, int point, int by) {
  int stride = 1;
  for (const int extent : extents) stride *= extent;
  int found = 0;
  for (const int extent : extents) {
    stride /= extent;
    found += (point / stride % extent + by / stride % extent) % extent * stride;
  }
  return found;
}

// Collectives are made again and again, and every rank's steps are listed.
struct Known {
  std::vector<int> extents;
  int trees = 0;
  int arity = 0;
  std::vector<Tree> from_zero;
};
constexpr std::size_t kKnown = 16;
thread_local std::vector<Known> known;
thread_local std::size_t next_known = 0;

const std::vector<Tree>& trees_from_zero(const std::vector<int>& extents, int trees, int arity) {
  for (const Known& one : known)
    if (one.extents == extents && one.trees == trees && one.arity == arity) return one.from_zero;
  Known one{extents, trees, arity, grown(extents, trees, arity)};
  if (known.size() < kKnown) return known.emplace_back(std::move(one)).from_zero;
  return (known[next_known++ % kKnown] = std::move(one)).from_zero;
}

}  // namespace

int torus_links(const std::vector<int>& extents) {
  int links = 0;
  for (const int extent : extents) links += std::min(extent - 1, 2);
  return links;
}

std::vector<Tree> torus_trees(const std::vector<int>& extents, int root, int trees, int arity) {
  std::vector<Tree> all;
  for (const Tree& tree : trees_from_zero(extents, trees, arity)) {
    Tree& moved = all.emplace_back();
    moved.parent.assign(tree.parent.size(), -1);
    moved.children.resize(tree.parent.size());
    for (int p = 0; p < static_cast<int>(tree.parent.size()); ++p) {
      const int to = shifted(extents, p, root);
      if (tree.parent[at(p)] >= 0) moved.parent[at(to)] = shifted(extents, tree.parent[at(p)], root);
      for (const int child : tree.children[at(p)]) moved.children[at(to)].push_back(shifted(extents, child, root));
    }
  }
  return all;
}

}  // namespace tasuki
