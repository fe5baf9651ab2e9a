// What Python calls an operation: the core's, and the Python objects that it must keep alive.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "field.hpp"
#include "memory.hpp"
#include "owner.hpp"
#include "stream.hpp"
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
  std::optional<Fork> fork;  ///< On GPUs: where `overlap` puts the exchange.
  bool idle = false;         ///< Others run the operation: this rank does nothing, in any stream.
  AnyOperation operation;
};

class PyOperation : public Held<OperationCore> {
 public:
  PyOperation(std::shared_ptr<Owner> owner, OperationCore core);
  Operation& operation() const { return core().operation; }
  bool on_gpu() const { return core().fork.has_value(); }
  void start(nb::handle stream) const;
  void wait(nb::handle stream) const;
  void run(nb::handle stream) const;
  Stream begin_overlap(nb::handle stream) const;  ///< Returns what `end_overlap` must be given.
  void end_overlap(Stream stream) const;
  void free();
  std::string in_use() const override;
  std::string text() const { return shown_as(text_); }  ///< Of its `repr`.
  void check_unmoved() const;                           ///< Throws `Error` if an array of the user's has moved.

 private:
  void refuse_stream(nb::handle stream, const char* call) const;
  Stream stream_of(nb::handle stream) const;

  std::vector<std::pair<Array, std::string>> watched_;  ///< arrays of the user's, which could move
  std::string text_;
  Library library_ = Library::none;  ///< of the user's arrays
  bool empty_on_gpu_ = false;        ///< its arrays are on a GPU, but no rank has an element: there is nothing to do
};

}  // namespace tasuki::python
