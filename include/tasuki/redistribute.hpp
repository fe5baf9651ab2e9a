// Redistribute: moves arrays from one distribution over ranks to another one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tasuki/distribution.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// An array that moves, and this rank's memory of it: the local array before, and the one after. Memory may be any of
/// the host's, or any of GPUs': one kind in a call, on all ranks. It is free to move only once the operation is gone. A
/// rank that has no cells of a side gives null there.
struct RedistributeArray : MovedArray {
  RedistributeArray() = default;
  RedistributeArray(MovedArray how, const void* before, void* after)
      : MovedArray(std::move(how)), from(before), to(after) {}
  /// Local arrays in C order.
  template <class T>
  RedistributeArray(const T* before, T* after, std::string called = "array") : from(before), to(after) {
    name = std::move(called);
    source.cell = target.cell = Layout::of<T>();
  }
  /// The same of containers, whose sizes are checked.
  template <class T>
  RedistributeArray(const std::vector<T>& before, std::vector<T>& after, std::string called = "array")
      : RedistributeArray(before.data(), after.data(), std::move(called)) {
    source.bytes = static_cast<std::int64_t>(before.size() * sizeof(T));
    target.bytes = static_cast<std::int64_t>(after.size() * sizeof(T));
  }
  const void* from = nullptr;
  void* to = nullptr;
};

struct RedistributeOptions : OperationOptions {
  /// Bytes that Tasuki may allocate on a rank to pack or stage what moves; 0: as many as the paths like. With less,
  /// pieces travel in slices that use the same memory in turn, or over paths that need none. Throws `Error` where that
  /// is not enough, with what is. The same on all ranks.
  std::int64_t scratch = 0;
};

/// Moves every cell of the source's array, or section, to its place in the target's. `from` and `to` say how the arrays
/// lie on ranks: in any process grids, over any ranks of the context. Once axes are permuted both sides have equal
/// extents: dimension d of the target is dimension axes[d] of the source, as in numpy.transpose; empty: d. Where the
/// source is replicated, a rank that has a cell takes it from its own memory; a replicated target gets all replicas.
/// Cells of the target outside its section keep their values.
///
/// Each two ranks that have cells in common exchange them in one pass from memory to memory, in whatever order these
/// lie. Which these are is found by arithmetic, and time and memory are in proportion to what a rank has. The way back
/// is a second operation.
///
/// Collective over the context, also for ranks that have no cells. All ranks give the same `from`, `to` and `axes`, and
/// arrays of the same number, names and bytes of a cell. A target may lie where a source does: a rank whose source
/// would be overwritten copies it into scratch first, which `scratch` must allow. Targets may not overlap each other.
/// Throws `Error` on every rank for what is wrong on one.
class Redistribute : public Operation {
 public:
  Redistribute(const Context& context, const ArraySide& from, const ArraySide& to,
               const std::vector<RedistributeArray>& arrays, const std::vector<int>& axes = {},
               const RedistributeOptions& options = {});
};

}  // namespace tasuki
