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

/// At every start, moves the bytes of `from.layout` on `from.rank` to those of `to.layout` on `to.rank`. The layouts
/// have equal sizes and any shapes; the two ranks may be the same. Source and destination must not overlap. A layout
/// matters on its own rank only. Memory from `shared_alloc` or a field moves in one pass.
///
/// Making it involves these two ranks only. Other ranks need not call this; if they do, the call is local, and starting
/// the transfer does nothing. Two ranks make the transfers between them in the same order. Paths are chosen by known
/// prices: a transfer does not measure the machine, as halos and broadcasts do. In a program without these,
/// `machine_of(context)` measures.
class Transfer : public Operation {
 public:
  Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
           const OperationOptions& options = {});
};

}  // namespace tasuki
