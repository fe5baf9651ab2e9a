// What Python calls an operation: the core's, and the Python objects that it must keep alive.
#pragma once

#include <utility>
#include <vector>

#include "field.hpp"
#include "memory.hpp"
#include "owner.hpp"
#include "tasuki/operation.hpp"

namespace tasuki::python {

/// The core's handle, made empty and filled later.
class AnyOperation : public Operation {
 public:
  AnyOperation() = default;
  AnyOperation(const Operation& operation) : Operation(operation) {}  // NOLINT(google-explicit-constructor)
};

/// The operation goes before what it uses.
struct OperationCore {
  std::vector<nb::object> fields;
  std::vector<Array> arrays;
  AnyOperation operation;
};

class PyOperation : public Held<OperationCore> {
 public:
  PyOperation(std::shared_ptr<Owner> owner, OperationCore core);
  Operation& operation() const { return core().operation; }
  void start() const;
  void wait() const { operation().wait(); }
  void free();
  std::string in_use() const override;

 private:
  std::vector<std::pair<Array, std::string>> watched_;  ///< arrays of the user's, which could move
};

class PyHalo : public PyOperation {
  using PyOperation::PyOperation;
};
class PyTransfer : public PyOperation {
  using PyOperation::PyOperation;
};
class PyBroadcast : public PyOperation {
  using PyOperation::PyOperation;
};

}  // namespace tasuki::python
