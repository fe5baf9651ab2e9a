// What all collectives share while they are made.
#pragma once

#include <memory>

#include "operations/state.hpp"
#include "shapes/collective.hpp"
#include "tasuki/collectives.hpp"

namespace tasuki {

/// Collective. Throws on every rank if the arguments of one are wrong, or differ where they must agree. `combine`: of
/// an operator of the user's own, else null.
Description describe(const Context& context, CollectiveCall call, const void* in, void* out,
                     const std::shared_ptr<const Operator::Combine>& combine, const CollectiveOptions& options);

}  // namespace tasuki
