// Islands: who is in which, and the shares by which all ranks of an island carry what crosses its boundary. What
// hierarchical algorithms have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {

/// Bytes of a whole, from `begin` to before `end`.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t bytes() const { return end - begin; }
};

/// The `which`-th of `of` parts of about equal size; parts end where elements do.
Range part_of(Range whole, int which, int of, std::int64_t element);
/// What both have; empty if nothing.
Range overlap(Range a, Range b);

class Islands {
 public:
  explicit Islands(const Collective& collective);

  int count() const { return static_cast<int>(members_.size()); }
  /// Ranks of an island, ascending. Islands count from 0 in the order of their first ranks.
  const std::vector<int>& members(int island) const { return members_[static_cast<std::size_t>(island)]; }
  int size(int island) const { return static_cast<int>(members(island).size()); }
  int rank(int island, int place) const { return members(island)[static_cast<std::size_t>(place % size(island))]; }
  int of(int rank) const { return island_[static_cast<std::size_t>(rank)]; }
  int place(int rank) const { return place_[static_cast<std::size_t>(rank)]; }  ///< among the island's ranks

  /// Of `whole`, what the rank carries for its island.
  Range share(Range whole, int rank) const { return part_of(whole, place(rank), size(of(rank)), element_); }
  /// `whole`, cut wherever a share of some island ends: each piece is carried by one rank of every island.
  std::vector<Range> pieces(Range whole) const;
  /// The rank of the island whose share of `whole` has the piece.
  int holder(int island, Range whole, Range piece) const;

  std::int64_t element() const { return element_; }
  /// The ranks of the first island come first, then those of the second, and so on.
  bool in_rank_order() const;

 private:
  std::int64_t element_;
  std::vector<std::vector<int>> members_;
  std::vector<int> island_;  // of each rank
  std::vector<int> place_;
};

/// Part of a rank's block that crosses between two islands.
struct Crossing {
  Range range;        ///< of the block
  int owner = 0;      ///< whose block it is
  int forwarder = 0;  ///< the rank of the other island that takes it, or gives it
};
/// What crosses where every rank's block goes to, or comes from, each other island once. An island's blocks, one after
/// the other, are shared out among the ranks of the other one.
std::vector<Crossing> crossings(const Collective& collective, const Islands& islands);

/// Those between other islands and the root's; the forwarders are of the root's.
std::vector<Crossing> crossings_of_root(const Collective& collective, const Islands& islands);
/// What gather and scatter over islands take.
double through_root_seconds(const Collective& collective, const Parameters& parameters, const Price& price);

/// What all hierarchical algorithms register.
Algorithm hierarchical(CollectiveKind kind, decltype(Algorithm::seconds) seconds, decltype(Algorithm::list) list);

/// Whether a hierarchical algorithm is worth a look: several islands, and several ranks in one.
bool has_hierarchy(const Collective& collective);

/// Chunks of the whole that go through the phases one after the other, so that what crosses goes on beside what stays
/// inside: all settings worth trying, and the ranges that one makes of `whole`.
std::vector<Parameters> chunk_settings(const Collective& collective, const Parameters& wanted);
int chunk_count(const Collective& collective, const Parameters& parameters);
std::vector<Range> chunks_of(const Collective& collective, const Parameters& parameters, Range whole);

/// What the costs of hierarchical algorithms are made of.
struct HierarchySizes {
  int islands = 0;
  double members = 0;       ///< of an island, on average
  std::int64_t chunks = 0;  ///< of the whole vector
  double chunk = 0;         ///< bytes
};
HierarchySizes hierarchy_sizes(const Collective& collective, const Parameters& parameters);

/// Seconds of a pipeline whose chunks each take `inside` and then `across` seconds if nothing else is under way.
double pipelined(double inside, double across, std::int64_t chunks);

/// The fewest bytes that any algorithm can send across islands' boundaries, all ranks together; less than 0: not known.
/// An allreduce's are those of a reduce-scatter and an allgather over islands.
std::int64_t least_across(const Collective& collective);

}  // namespace tasuki
