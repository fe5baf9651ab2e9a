// Transfer: a layout of one rank's memory to a layout of another's, in one pass where the path can.
#pragma once

#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// One side of a transfer: `layout` relative to `base`. Only the rank of that side gives a base; others pass anything.
struct TransferSide {
  int rank = 0;
  void* base = nullptr;
  Layout layout;
};

/// Moves the bytes of `from.layout` on `from.rank` to those of `to.layout` on `to.rank` (equal sizes, any shapes) at
/// every start; the two ranks may be the same. Collective over the context; ranks that are neither side take part in
/// making it and may start it, which does nothing. Layouts only matter on their own rank.
/// Source and destination must not overlap. Memory from `shared_alloc` or a field moves in one pass.
class Transfer : public Operation {
 public:
  Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
           const OperationOptions& options = {});
};

}  // namespace tasuki
