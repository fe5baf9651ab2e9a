// Exchange: fills the ghost cells of fields on any mesh or graph from the ranks that own the cells, or combines ghosts
// into their owners.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tasuki/cells.hpp"
#include "tasuki/field.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// A field of an exchange: memory of this rank, and how its cells lie in it. The memory may be any of the host's, or
/// any of GPUs': one kind in a call, on all ranks. It is free to move only once the operation is gone.
struct ExchangeField : Cells {
  ExchangeField() = default;
  ExchangeField(void* field, Cells how) : Cells(std::move(how)), base(field) {}
  /// `numbers` numbers a cell, one after the other.
  template <class T>
  ExchangeField(T* field, std::int64_t cells, std::int64_t numbers = 1)
      : Cells(Cells::of(dtype_of<T>(), cells, numbers)), base(field) {}
  void* base = nullptr;
};

struct ExchangeOptions : OperationOptions {
  /// Combine every ghost into the cell's owner instead (the adjoint of an exchange: assembly). Ghosts keep their
  /// values. An owner takes the contributions to a cell in the order of its entries, whatever the path and the engine,
  /// so equal runs give equal bits.
  bool reverse = false;
  /// How `reverse` combines: dtype.hpp says which types it is for.
  ReduceOp op = ReduceOp::sum;
};

/// Exchanges cells of any number of fields in one operation. Made collectively: every rank gives its own fields, equal
/// in number, in types and in the bytes of a cell, and its own list of entries, which may be empty. What is wrong on a
/// rank, or does not fit together, throws `Error` on every rank. Making it takes messages to the ranks in the list
/// only, and memory for these. Starts may come in any order on different ranks, several operations may be active.
class Exchange : public Operation {
 public:
  Exchange(const Context& context, const std::vector<ExchangeField>& fields, const std::vector<ExchangeEntry>& entries,
           const ExchangeOptions& options = {});
};

/// The entries of this rank where every cell has a number that is the same on all ranks: `owned` are the numbers of the
/// cells 0, 1, ... here, `ghosts` those of the cells that follow them, in the order in which the caller wants them. Any
/// numbers from 0 on, of 64 bits; a ghost may be named twice, and may be owned here. All ghosts that come from one rank
/// are in one entry.
///
/// Who owns what is found out through a directory that is spread over the ranks: memory and messages are in proportion
/// to what a rank has. Collective. Throws `Error` on every rank for a cell that is owned twice, and for a ghost that
/// nobody owns.
std::vector<ExchangeEntry> find_entries(const Context& context, std::span<const std::int64_t> owned,
                                        std::span<const std::int64_t> ghosts);

}  // namespace tasuki
