// Profile: measured constants by path, in the form of the profile's file and of machine files.
#pragma once

#include <map>
#include <string>

#include "tasuki/machine.hpp"

namespace tasuki {

/// The constants of a path by name, in seconds and bytes per second: `latency`, `bandwidth`, `bulk_bandwidth`,
/// `per_run`, the same with `mutual_` before it, and `bulk_from`. If a mutual constant is missing, it equals the one-
/// way constant; if `bulk_bandwidth` is missing, it equals `bandwidth`; other missing constants have their defaults.
using CostSection = std::map<std::string, double>;

PathCost cost_of(const CostSection& section);
CostSection section_of(const PathCost& cost);

class Profile {
 public:
  bool has(const std::string& path) const { return sections_.contains(path); }
  void set(const std::string& path, CostSection values) { sections_[path] = std::move(values); }
  const std::map<std::string, CostSection>& sections() const { return sections_; }

  std::string to_json(const std::string& machine) const;
  /// Empty if an earlier version of Tasuki wrote it: then all is measured again. Throws `Error` naming `file` and what
  /// is wrong with it: not JSON, wrong shape, numbers that are not positive and finite.
  static Profile from_json(const std::string& text, const std::string& file);

 private:
  std::map<std::string, CostSection> sections_;
};

}  // namespace tasuki
