// Plans without lists, and with what is equal in memory once: see lists.hpp.
#include "plan/lists.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
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

void share(Plan& plan) {
  std::map<std::string_view, Name> names;
  for (Buffer& buffer : plan.buffers) buffer.name = names.try_emplace(buffer.name.view(), buffer.name).first->second;

  const auto before = [](std::span<const CopyDim> a, std::span<const CopyDim> b) {
    return std::ranges::lexicographical_compare(a, b, [](const CopyDim& x, const CopyDim& y) {
      return std::tie(x.count, x.src_stride, x.dst_stride) < std::tie(y.count, y.src_stride, y.dst_stride);
    });
  };
  std::map<std::span<const CopyDim>, CopyDims, decltype(before)> known(before);
  for (StridedCopy& copy : plan.copies) {
    std::span<const CopyDim> dims(std::as_const(copy.dims));
    while (std::ssize(dims) > copy.ndims && dims.back() == CopyDim{}) dims = dims.first(dims.size() - 1);
    const auto entry = known.find(dims);
    if (entry != known.end()) {
      copy.dims = entry->second;
    } else {
      copy.dims = CopyDims(dims);
      known.emplace(std::as_const(copy.dims), copy.dims);
    }
  }
}

}  // namespace tasuki
