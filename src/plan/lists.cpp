// Plans without lists: see lists.hpp.
#include "plan/lists.hpp"

#include <algorithm>
#include <vector>

#include "layout/lists.hpp"

namespace tasuki {

bool has_lists(const Plan& plan) {
  return std::any_of(plan.copies.begin(), plan.copies.end(), [](const StridedCopy& copy) { return copy.listed(); });
}

Plan without_lists(const Plan& plan) {
  Plan all = plan;
  all.copies.clear();
  std::vector<std::int32_t> first;  // of the steps of each copy, and the end
  for (const StridedCopy& copy : plan.copies) {
    first.push_back(static_cast<std::int32_t>(all.copies.size()));
    if (copy.listed())
      append_steps(copy, all.copies);
    else
      all.copies.push_back(copy);
  }
  first.push_back(static_cast<std::int32_t>(all.copies.size()));
  const auto renumber = [&](auto& record) {
    const auto begin = static_cast<std::size_t>(record.first_copy);
    const std::int32_t end = first[begin + static_cast<std::size_t>(record.copy_count)];
    record.first_copy = first[begin];
    record.copy_count = end - record.first_copy;
  };
  for (Command& command : all.commands)
    if (command.copy_count > 0) renumber(command);
  for (Expect& expect : all.expects) renumber(expect);
  return all;
}

}  // namespace tasuki
