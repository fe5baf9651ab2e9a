// Which rank gets which box, by the mapping that the options name. That by hops looks for the placement whose busiest
// link carries the fewest cells: among all placements of a few boxes, else by exchanging the ranks of two boxes as long
// as that makes it better, from several beginnings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "grid/decompose.hpp"
#include "grid/placement.hpp"
#include "machine/ways.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kExact = 8;                       // boxes of which all placements are tried
constexpr std::int64_t kMostTried = 4'000'000;  // exchanges of two boxes, from all beginnings together
constexpr std::array kMappings{"row", "column", "blocks", "hops", "given"};

// The links between every two ranks, as numbers.
class Links {
 public:
  explicit Links(const Machine& machine) : machine_(machine), ways_(machine), ranks_(machine.size()) {}

  struct Used {
    std::vector<int> links;
    int hops = 0;
  };
  const Used& between(int a, int b) {
    const std::int64_t key = std::int64_t{a} * ranks_ + b;
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    return known_.emplace(key, find(a, b)).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  Used find(int a, int b) {
    const bool outside = !machine_.same_island(a, b);
    const Network& network = outside ? machine_.outside : machine_.inside;
    Used used;
    if (outside && (network.kind == Network::Kind::none || machine_.same_host(a, b))) {
      const int from = machine_.ranks[static_cast<std::size_t>(a)].island;
      const int to = machine_.ranks[static_cast<std::size_t>(b)].island;
      used.links = {number({NetworkLink::Kind::port_out, -2, from, -1}),
                    number({NetworkLink::Kind::port_into, -2, -1, to})};
      used.hops = 1;
      return used;
    }
    const Way way = ways_.between(a, b, outside);
    used.hops = way.hops;
    // All that leaves a host of a torus passes its ports, wherever it goes: its links tell more.
    for (const NetworkLink& link : way.links)
      if (network.kind != Network::Kind::torus || link.kind == NetworkLink::Kind::link)
        used.links.push_back(number(link));
    return used;
  }
  int number(const NetworkLink& link) {
    return numbers_.try_emplace(link, static_cast<int>(numbers_.size())).first->second;
  }

  const Machine& machine_;
  Ways ways_;
  std::int64_t ranks_;
  std::map<NetworkLink, int> numbers_;
  std::map<std::int64_t, Used> known_;
};

// The loads of all links under a placement that changes.
class Loads {
 public:
  Loads(Links& links, const std::vector<Face>& faces, std::vector<int> rank_of_box)
      : links_(links), faces_(faces), ranks_(std::move(rank_of_box)), touching_(ranks_.size()) {
    for (std::size_t f = 0; f < faces.size(); ++f) {
      touching_[at(faces[f].box)].push_back(f);
      if (faces[f].neighbour != faces[f].box) touching_[at(faces[f].neighbour)].push_back(f);
      count(faces[f], +1);
    }
  }

  LinkLoad load() const { return {cells_.empty() ? 0 : *std::max_element(cells_.begin(), cells_.end()), hops_}; }
  // What exchanges are judged by: squares, so that a link counts the more the busier it is.
  std::pair<Wide, Wide> value() const { return {squares_, hops_}; }
  const std::vector<int>& ranks() const { return ranks_; }

  void exchange(int a, int b) {
    count_both(a, b, -1);
    std::swap(ranks_[at(a)], ranks_[at(b)]);
    count_both(a, b, +1);
  }

 private:
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  void count_both(int a, int b, int times) {
    for (const std::size_t f : touching_[at(a)]) count(faces_[f], times);
    for (const std::size_t f : touching_[at(b)])
      if (faces_[f].box != a && faces_[f].neighbour != a) count(faces_[f], times);
  }
  void count(const Face& face, int times) {
    const int a = ranks_[at(face.box)];
    const int b = ranks_[at(face.neighbour)];
    if (a == b) return;
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      const Links::Used& used = links_.between(from, to);
      hops_ += times * used.hops * face.cells;
      for (const int link : used.links) {
        if (at(link) >= cells_.size()) cells_.resize(at(link) + 1, 0);
        Wide& cells = cells_[at(link)];
        squares_ -= cells * cells;
        cells += times * face.cells;
        squares_ += cells * cells;
      }
    }
  }

  Links& links_;
  const std::vector<Face>& faces_;
  std::vector<int> ranks_;                          // of boxes
  std::vector<std::vector<std::size_t>> touching_;  // per box
  std::vector<Wide> cells_;                         // per link
  Wide squares_ = 0;
  Wide hops_ = 0;
};

std::vector<int> in_order(int boxes) {
  std::vector<int> ranks(static_cast<std::size_t>(boxes));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int> column(const Decomposition& cut) {
  std::vector<int> ranks(static_cast<std::size_t>(cut.boxes()));
  for (int box = 0; box < cut.boxes(); ++box) {
    const auto at = cut.coords(box);
    int rank = 0;
    for (int d = cut.ndims() - 1; d >= 0; --d) rank = rank * cut.split[d] + at[d];
    ranks[static_cast<std::size_t>(box)] = rank;
  }
  return ranks;
}

// Row by row, every second one backwards: neighbours in rank order are neighbours in the grid.
std::vector<int> snake(const Decomposition& cut, bool first_is_fastest) {
  std::vector<int> ranks(static_cast<std::size_t>(cut.boxes()));
  for (int box = 0; box < cut.boxes(); ++box) {
    const auto at = cut.coords(box);
    int rank = 0;
    for (int i = 0; i < cut.ndims(); ++i) {
      const int d = first_is_fastest ? cut.ndims() - 1 - i : i;
      rank = rank * cut.split[d] + (rank % 2 == 0 ? at[d] : cut.split[d] - 1 - at[d]);
    }
    ranks[static_cast<std::size_t>(box)] = rank;
  }
  return ranks;
}

std::vector<int> islands_of(const Machine& machine) {
  std::vector<int> islands;
  for (const auto& rank : machine.ranks) islands.push_back(rank.island);
  return islands;
}

// Whether the machine has networks whose links are known. Else only islands are.
bool has_links(const Machine& machine) {
  return machine.inside.kind != Network::Kind::none || machine.outside.kind != Network::Kind::none;
}

// Of all placements, each made from the one before by one exchange (Heap's algorithm).
std::vector<int> exactly(Loads loads) {
  LinkLoad least = loads.load();
  std::vector<int> best = loads.ranks();
  std::vector<int> times(best.size(), 0);
  for (std::size_t i = 1; i < times.size();) {
    if (times[i] == static_cast<int>(i)) {
      times[i++] = 0;
      continue;
    }
    loads.exchange(i % 2 == 0 ? 0 : times[i], static_cast<int>(i));
    const LinkLoad load = loads.load();
    if (load < least) {
      least = load;
      best = loads.ranks();
    }
    ++times[i];
    i = 1;
  }
  return best;
}

// Exchanges the ranks of two boxes as long as that makes it better.
void improve(Loads& loads, int boxes, std::int64_t& left) {
  bool better = true;
  while (better && left > 0) {
    better = false;
    for (int a = 0; a < boxes; ++a) {
      for (int b = a + 1; b < boxes && left > 0; ++b, --left) {
        const auto before = loads.value();
        loads.exchange(a, b);
        if (loads.value() < before) {
          better = true;
        } else {
          loads.exchange(a, b);
        }
      }
    }
  }
}

std::vector<int> by_hops(const Decomposition& cut, const Machine& machine) {
  std::vector<int> blocks = place(cut, islands_of(machine));
  if (!has_links(machine)) return blocks;
  const int boxes = cut.boxes();
  const std::vector<Face> faces = faces_of(cut);
  Links links(machine);
  std::vector<int> best = in_order(boxes);
  LinkLoad least = Loads(links, faces, best).load();
  const auto keep_less = [&](const Loads& loads) {
    const LinkLoad load = loads.load();
    if (!(load < least)) return;
    least = load;
    best = loads.ranks();
  };
  const std::vector<std::vector<int>> starts{best, blocks, column(cut), snake(cut, false), snake(cut, true)};
  for (const auto& start : starts) keep_less(Loads(links, faces, start));
  if (boxes <= kExact) return exactly(Loads(links, faces, best));
  std::int64_t left = kMostTried;
  for (const auto& start : starts) {
    Loads loads(links, faces, start);
    improve(loads, boxes, left);
    keep_less(loads);
  }
  return best;
}

void check_given(const std::vector<int>& given, int boxes) {
  if (std::ssize(given) != boxes)
    throw Error(fmt::format("option 'given' has {} entries, but the grid has {} boxes; give the rank of each box",
                            given.size(), boxes));
  std::vector<int> box_of(given.size(), -1);
  for (int box = 0; box < boxes; ++box) {
    const int rank = given[static_cast<std::size_t>(box)];
    if (rank < 0 || rank >= boxes)
      throw Error(
          fmt::format("option 'given' names rank {} for box {}; there are ranks 0 to {}", rank, box, boxes - 1));
    int& taken = box_of[static_cast<std::size_t>(rank)];
    if (taken >= 0)
      throw Error(fmt::format("option 'given' names rank {} for box {} and for box {}; every rank has one box", rank,
                              taken, box));
    taken = box;
  }
}

std::vector<int> mapped(const Decomposition& cut, const GridOptions& options, const Machine& machine) {
  const std::string& name = options.mapping;
  const auto said = [&](const char* what) { return name == what; };
  if (!name.empty() && std::none_of(kMappings.begin(), kMappings.end(), said))
    throw Error(fmt::format("option 'mapping' is '{}'; it is row, column, blocks, hops or given", name));
  if (options.reorder && !name.empty() && name != "hops")
    throw Error(fmt::format("option 'mapping' is '{}', but option 'reorder' asks for 'hops'; give one of them", name));
  if (!options.given.empty() && name != "given")
    throw Error(fmt::format("option 'given' is for mapping 'given', but option 'mapping' is '{}'",
                            name.empty() ? "row" : name));
  if (name == "given") {
    check_given(options.given, cut.boxes());
    return options.given;
  }
  if (name == "hops" || options.reorder) return by_hops(cut, machine);
  if (name == "blocks") return place(cut, islands_of(machine));
  return name == "column" ? column(cut) : in_order(cut.boxes());
}

}  // namespace

LinkLoad link_load(const Decomposition& cut, std::span<const int> rank_of_box, const Machine& machine) {
  Links links(machine);
  const std::vector<Face> faces = faces_of(cut);
  return Loads(links, faces, {rank_of_box.begin(), rank_of_box.end()}).load();
}

Placement placed(std::span<const std::int64_t> extents, const GridOptions& options, const Machine& machine) {
  Placement placement;
  placement.cut = decompose(extents, options, machine.size());
  placement.rank_of_box = mapped(placement.cut, options, machine);
  placement.box_of_rank.resize(static_cast<std::size_t>(machine.size()));
  for (int box = 0; box < placement.cut.boxes(); ++box)
    placement.box_of_rank[static_cast<std::size_t>(placement.rank_of_box[static_cast<std::size_t>(box)])] = box;
  return placement;
}

}  // namespace tasuki
