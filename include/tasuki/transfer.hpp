// Transfer: a layout of one rank's memory to a layout of another's, in one pass where the path can.
#pragma once

#include <string>

#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// One side of a transfer: `layout` relative to `base`. Only the rank of that side gives a base; others pass anything.
struct TransferSide {
  int rank = 0;
  void* base = nullptr;
  Layout layout;
  /// What the bytes are, in any words, such as `float64 2 x 3`. Where both sides say it they must say the same;
  /// nothing: bytes, which may become anything.
  std::string elements = {};
};

/// Moves the bytes of `from.layout` on `from.rank` to those of `to.layout` on `to.rank` (equal sizes, any shapes) at
/// every start; the two ranks may be the same. Making it involves these two ranks and nobody else: other ranks need not
/// call this; if they do, it is local, and starting it does nothing. Two ranks make the transfers between them in the
/// same order. Layouts only matter on their own rank. Paths are chosen by the prices that are known: where nothing was
/// measured yet (a first run that makes no halo or broadcast), `machine_of(context)` measures.
/// Source and destination must not overlap. Memory from `shared_alloc` or a field moves in one pass.
class Transfer : public Operation {
 public:
  Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
           const OperationOptions& options = {});
};

}  // namespace tasuki
