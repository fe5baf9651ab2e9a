// Making operations from Python's arguments: what the classes that are written from bindings/operations.py call.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "collective_arguments.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/exchange.hpp"
#include "tasuki/halo.hpp"
#include "tasuki/redistribute.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki::python {

/// One Python class for each operation.
template <int>
class Made : public PyOperation {
  using PyOperation::PyOperation;
};

/// An operation that was made, and whose it is.
struct NewOperation {
  std::shared_ptr<Owner> owner;
  OperationCore core;
};

/// Makes a collective of two buffers from what was read of them. All of these are collective, but for a transfer.
using MakeCollective = std::function<AnyOperation(const Context& ranks, const Asked& asked)>;
NewOperation made_collective(const ContextHandle& context, const Shape& shape, const Given& given,
                             const MakeCollective& make);
/// Throws `Error` if an array has layouts beside it or is not contiguous: of operations that have no such form.
void refuse_layouts(const Shape& shape, const Asked& asked);
NewOperation made_barrier(const ContextHandle& context, const std::string& where, const CollectiveOptions& options);
NewOperation made_broadcast(const ContextHandle& context, int root, nb::handle array, const BroadcastOptions& options);
NewOperation made_transfer(const ContextHandle& context, nb::handle source, nb::handle target,
                           const OperationOptions& options);
NewOperation made_halo(nb::handle fields, nb::handle width, const HaloOptions& options);
NewOperation made_exchange(const ContextHandle& context, nb::handle fields, nb::handle entries, const std::string& op,
                           ExchangeOptions options);
NewOperation made_redistribute(const ContextHandle& context, nb::handle source, nb::handle target, nb::handle axes,
                               const RedistributeOptions& options);

template <class Py, class Make>
void construct(Py* self, Names names, Make&& make) {
  NewOperation made = with_names(names, make);
  new (self) Py(std::move(made.owner), std::move(made.core));
}

}  // namespace tasuki::python
