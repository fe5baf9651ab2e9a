// SavedPlan: an operation made from a plan that was made before, saved, and loaded.
#pragma once

#include <string>
#include <vector>

#include "tasuki/field.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// Memory for one of the user buffers that a plan names.
struct PlanMemory {
  /// A field, for the buffer that has its name: all of its copies.
  PlanMemory(const FieldBase& field);  // NOLINT(google-explicit-constructor)
  /// `size` bytes at `data`, for the buffer called `buffer`.
  PlanMemory(std::string buffer, void* data, std::int64_t size)
      : name(std::move(buffer)), copies{static_cast<std::byte*>(data)}, bytes(size) {}

  std::string name;
  std::vector<std::byte*> copies;
  std::int64_t bytes = 0;        ///< of one copy
  const int* current = nullptr;  ///< the number of a field's current copy; null for other memory
  std::vector<FieldBase> field;  ///< the field, which is kept alive; empty for other memory
};

/// Runs `plan`, which an operation of a context of equally many ranks had: `plan_from_json(...)` of what `to_json`
/// wrote. Every rank gives its own plan, and memory for every user buffer of this rank that the plan names, of the same
/// sizes and kinds as the operation's memory. Before anything moves, the plans of all ranks are verified together and
/// compared with the memory, the ranks and their islands, and a halo's plan cell by cell with the fields that are given
/// for it; if anything does not fit, all ranks throw, naming rank,
/// buffer and reason. `options.path` is ignored: paths are in the plan. Collective over the context.
class SavedPlan : public Operation {
 public:
  SavedPlan(const Context& context, const Plan& plan, const std::vector<PlanMemory>& memory,
            const OperationOptions& options = {});
};

}  // namespace tasuki
