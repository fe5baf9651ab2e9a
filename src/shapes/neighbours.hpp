// Neighbour collectives: who exchanges blocks with whom, what a rank tells all others of its blocks, and what it asks
// of the planner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grid/placement.hpp"
#include "shapes/joint.hpp"
#include "shapes/rank_shape.hpp"
#include "tasuki/dtype.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// The ranks beside `rank` in its grid of ranks, the lower one first in each dimension; -1: nobody.
std::vector<int> beside(const Placement& placement, int rank);

/// Blocks of so many bytes, one after the other, or all at the same place.
std::vector<Layout> contiguous(const std::vector<std::int64_t>& bytes, bool same_place);

/// What plans call the operation: `neighbour_alltoall`, `neighbour_allgather`.
std::string neighbour_name(bool allgather);

/// The arguments of one rank: a block to each neighbour and from each, as counts of elements that lie one after the
/// other, or as layouts.
struct NeighbourCall {
  bool allgather = false;  ///< all neighbours get the same block
  std::vector<int> to, from;
  bool of_grid = false;  ///< -1 is nobody
  std::vector<std::int64_t> sent = {}, received = {};
  DType type = DType::none;
  bool has_layouts = false;
  std::vector<Layout> in_layouts = {}, out_layouts = {};
  const char* sent_name = "count";  ///< the arguments of the counts
  const char* received_name = "count";
};

class NeighboursOfRank final : public RankShape {
 public:
  NeighboursOfRank(int rank, int ranks, NeighbourCall call) : rank_(rank), ranks_(ranks), call_(std::move(call)) {}
  std::string operation() const override { return call_.allgather ? "NeighbourAllgather" : "NeighbourAlltoall"; }
  std::string name() const override { return neighbour_name(call_.allgather); }
  Agreed agreed() const override;
  std::string complaint(const Machine& machine) const override;
  void list() override;
  std::vector<MemoryUse> memory() const override;
  Layout bytes_of(std::size_t buffer, bool written) const override;
  std::string overlap_in(std::size_t buffer) const override;
  std::string overlapping(std::size_t a, std::size_t b) const override;
  Hearers hearers() const override { return Hearers::all; }
  std::string subject() const override { return "neighbours"; }
  void tell(int hearer, Encoder& to) const override;
  void hear(int rank, Decoder& from) override;
  std::string misfit() const override;
  Problem problem(const Machine& machine) const override;

 private:
  int rank_;
  int ranks_;
  NeighbourCall call_;
  NeighbourBlocks own_;
  std::vector<NeighbourBlocks> all_;  // by rank
};

/// The neighbour collective of all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const NeighbourShape& neighbours);

}  // namespace tasuki
