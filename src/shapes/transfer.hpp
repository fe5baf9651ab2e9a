// Transfer: what the two ranks tell each other of their layouts, and what a transfer between them asks of the planner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shapes/joint.hpp"
#include "shapes/rank_shape.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// One side of a transfer. The layout and the elements are known on its own rank, and by the other rank once it has
/// heard of them.
struct SideOfTransfer {
  int rank = 0;
  Layout layout;
  std::string elements;  ///< what the bytes are; empty: just bytes
};

class TransferOfRank final : public RankShape {
 public:
  TransferOfRank(int rank, SideOfTransfer from, SideOfTransfer to);
  std::string operation() const override { return "Transfer"; }
  std::string name() const override;
  std::optional<std::vector<int>> among() const override;
  Agreed agreed() const override;
  std::string complaint(const Machine& machine) const override;
  std::vector<MemoryUse> memory() const override;
  Layout bytes_of(std::size_t buffer, bool written) const override;
  std::string overlap_in(std::size_t buffer) const override;
  std::string overlapping(std::size_t a, std::size_t b) const override;
  std::string subject() const override { return "Transfer"; }
  void tell(int hearer, Encoder& to) const override;
  void hear(int rank, Decoder& from) override;
  std::string misfit() const override;
  Problem problem(const Machine& machine) const override;

 private:
  int rank_;
  SideOfTransfer from_, to_;
};

/// The transfer among all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const TransferShape& transfer);

}  // namespace tasuki
