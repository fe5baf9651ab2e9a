// Exchange: what a rank asks of the planner for fields of cells, from its list of entries.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layout/cut.hpp"
#include "planner/planner.hpp"
#include "shapes/blocks.hpp"
#include "shapes/joint.hpp"
#include "tasuki/cells.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// What plans call the operation: `exchange u,v`.
std::string exchange_name(const std::vector<Cells>& fields, bool reverse);

/// What is wrong with the fields and entries of a rank by themselves; empty: nothing.
std::string complaint_about(const std::vector<Cells>& fields, const std::vector<ExchangeEntry>& entries, bool reverse,
                            ReduceOp op, int ranks);

/// The entries of a rank as blocks: in reverse its ghosts are sent. A field's buffer begins at its first byte, or at
/// the first that an entry names if that lies before.
struct ExchangeBlocks {
  PeerBlocks blocks;
  std::vector<ByteRange> ranges;  ///< of each field: the buffer, relative to the field's first byte
  std::string hint;               ///< for `explain`: what another numbering would gain
};
/// Of entries about which there is no complaint.
ExchangeBlocks exchange_blocks(const std::vector<Cells>& fields, const std::vector<ExchangeEntry>& entries,
                               bool reverse);

/// Says how the entries of two ranks do not fit together.
std::string shown(const BlockMisfit& misfit, const std::vector<Cells>& fields, bool reverse);

/// The problem of a rank; the blocks of the ranks that it names fit to its own.
Problem exchange_problem(const std::vector<Cells>& fields, bool reverse, ReduceOp op, int rank, const std::string& hint,
                         const std::function<const PeerBlocks&(int rank)>& blocks_of);

/// The exchange of all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const ExchangeShape& exchange);

}  // namespace tasuki
