// Profile: measured constants by path, as the profile's file and machine files write them.
#pragma once

#include <map>
#include <string>

#include "tasuki/machine.hpp"

namespace tasuki {

/// The constants of a path by name, in seconds and bytes per second: `latency`, `bandwidth`, `bulk_bandwidth`,
/// `per_run`, the same with `mutual_` before it, and `bulk_from`. A constant that is left out is the default's; a
/// mutual one that is left out is the one-way one; `bulk_bandwidth` that is left out is `bandwidth`.
using CostSection = std::map<std::string, double>;

PathCost cost_of(const CostSection& section);
CostSection section_of(const PathCost& cost);

class Profile {
 public:
  bool has(const std::string& path) const { return sections_.contains(path); }
  void set(const std::string& path, CostSection values) { sections_[path] = std::move(values); }
  const std::map<std::string, CostSection>& sections() const { return sections_; }

  std::string to_json(const std::string& machine) const;
  /// Empty if an earlier version of Tasuki wrote it, to be measured again. Throws `Error` naming `file` and what is
  /// wrong with it: not JSON, wrong shape, not positive finite numbers.
  static Profile from_json(const std::string& text, const std::string& file);

 private:
  std::map<std::string, CostSection> sections_;
};

}  // namespace tasuki
