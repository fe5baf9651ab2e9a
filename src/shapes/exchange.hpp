// Exchange: what a rank tells the ranks in its list of entries, and what it asks of the planner for fields of cells.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layout/cut.hpp"
#include "shapes/blocks.hpp"
#include "shapes/joint.hpp"
#include "shapes/rank_shape.hpp"
#include "tasuki/cells.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// The entries of a rank as blocks: in reverse its ghosts are sent. A field's buffer begins at its first byte, or at
/// the first that an entry names if that lies before.
struct ExchangeBlocks {
  PeerBlocks blocks;
  std::vector<ByteRange> ranges;  ///< of each field: the buffer, relative to the field's first byte
  std::string hint;               ///< for `explain`: what another numbering would gain
};

class ExchangeOfRank final : public RankShape {
 public:
  /// The entries must outlive it.
  ExchangeOfRank(int rank, std::vector<Cells> fields, const std::vector<ExchangeEntry>& entries, bool reverse,
                 ReduceOp op)
      : rank_(rank), fields_(std::move(fields)), entries_(entries), reverse_(reverse), op_(op) {}
  std::string operation() const override { return "Exchange"; }
  std::string name() const override;
  Agreed agreed() const override;
  std::string complaint(const Machine& machine) const override;
  void list() override;
  std::vector<MemoryUse> memory() const override;
  Layout bytes_of(std::size_t buffer, bool written) const override;
  std::string overlapping(std::size_t a, std::size_t b) const override;
  Hearers hearers() const override { return Hearers::named; }
  std::string subject() const override { return "exchange"; }
  std::vector<int> named() const override;
  void tell(int hearer, Encoder& to) const override;
  void hear(int rank, Decoder& from) override;
  std::string misfit() const override;
  Problem problem(const Machine& machine) const override;

 private:
  int rank_;
  std::vector<Cells> fields_;
  const std::vector<ExchangeEntry>& entries_;
  bool reverse_;
  ReduceOp op_;
  ExchangeBlocks own_;
  std::map<int, PeerBlocks> blocks_;  // of this rank, and of others what concerns it
};

/// The exchange of all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const ExchangeShape& exchange);

}  // namespace tasuki
