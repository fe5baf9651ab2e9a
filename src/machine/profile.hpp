// Profile: measured constants by path, and corrections of collectives, in the form of the profile's file and of machine
// files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "machine/provenance.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// The constants of a path by name, in seconds and bytes per second: `latency`, `bandwidth`, `bulk_bandwidth`,
/// `per_run`, any number of `per_run_of_<runs>`, `bandwidth_of_<bytes>`, `latency_above_<bytes>` and
/// `bandwidth_above_<bytes>`, the same with `mutual_`, `own_` or `own_mutual_` before it, any number of
/// `reuse_of_<bytes>` and `own_reuse_of_<bytes>`, and `bulk_from`, `descriptors` and `more_descriptors`. If a mutual
/// constant is missing, it equals the one-way constant; if `bulk_bandwidth` is missing, it equals `bandwidth`; if one
/// of the two that are `above` a size is missing, it equals `latency` or `bandwidth`; if none begins with `own_`, a
/// user's own memory costs what shared memory does; other missing constants have their defaults.
using CostSection = std::map<std::string, double>;

/// `mutual_bandwidth_of_4096`
std::string sized_bandwidth(const std::string& prefix, std::int64_t bytes);
/// `mutual_per_run_of_65536`
std::string price_of_runs(const std::string& prefix, std::int64_t runs);
/// `own_reuse_of_4096`
std::string sized_reuse(const std::string& prefix, std::int64_t bytes);
/// Whether the key has a number at its end, as those have, and those of `ProtocolSwitch`.
bool is_sized(const std::string& key);

PathCost cost_of(const CostSection& section);
CostSection section_of(const PathCost& cost);

class Profile {
 public:
  bool has(const std::string& path) const { return sections_.contains(path); }
  void set(const std::string& path, CostSection values) { sections_[path] = std::move(values); }
  void remove(const std::string& path) { sections_.erase(path); }
  const std::map<std::string, CostSection>& sections() const { return sections_; }
  /// They hold for the prices beside them.
  const std::vector<Correction>& corrections() const { return corrections_; }
  void set_corrections(std::vector<Correction> corrections) { corrections_ = std::move(corrections); }

  /// How the prices came about; none in a file that people wrote.
  const std::vector<Provenance>& provenance() const { return provenance_; }
  void set_provenance(std::vector<Provenance> provenance) { provenance_ = std::move(provenance); }

  static int version();  ///< of the file's form
  std::string to_json(const std::string& machine) const;
  /// Empty if an earlier version of Tasuki wrote it: then all is measured again. Without corrections if another version
  /// of the model of collectives wrote these. Throws `Error` that says what is wrong: not JSON, wrong shape, numbers
  /// that are not positive and finite.
  static Profile parsed(const std::string& text);
  /// The same of a file that the user named: the error names it, and says what to do.
  static Profile from_json(const std::string& text, const std::string& file);

 private:
  std::map<std::string, CostSection> sections_;
  std::vector<Correction> corrections_;
  std::vector<Provenance> provenance_;
};

}  // namespace tasuki
