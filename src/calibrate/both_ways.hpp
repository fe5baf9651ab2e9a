// BothWays: two ranks that send each other the same layout at the same time, as neighbours in a halo do. For measuring.
#pragma once

#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// Moves the bytes of `layout` at `from` on each of the ranks `a` and `b` to those at `to` on the other. Made by
/// these two; on other ranks it is local, and starting it does nothing. `layout` must not begin below its base, and
/// what is at `from` and at `to` must not overlap; all memory is of one kind.
class BothWays : public Operation {
 public:
  BothWays(const Context& context, int a, int b, std::byte* from, std::byte* to, const Layout& layout,
           const OperationOptions& options);
};

}  // namespace tasuki
