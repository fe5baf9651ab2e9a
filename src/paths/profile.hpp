// Profile: the machine's constants that costs are made of. Measured once, kept as JSON, the same on every rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "session/runtime.hpp"

namespace tasuki {

/// A section a path, a number a constant, in seconds and bytes per second: `latency`, `bandwidth`, `bulk_bandwidth`,
/// `per_run`, and the same with `mutual_` before it, for where both ranks send. What is above `bulk_from` bytes of a
/// piece costs what it costs in bulk: how soon a path is at full speed and how fast that is are two things.
class Profile {
 public:
  using Section = std::map<std::string, double>;

  bool has(const std::string& section) const { return sections_.contains(section); }
  void set(const std::string& section, Section values) { sections_[section] = std::move(values); }
  /// The measured value, or `fallback` where these ranks could not measure it (one rank alone, say).
  double get(const std::string& section, const std::string& key, double fallback) const;
  const std::map<std::string, Section>& sections() const { return sections_; }

  std::string to_json(const std::string& machine) const;
  /// Empty if an earlier version of Tasuki wrote it, to be measured again. Throws `Error` naming `file` and what is
  /// wrong with it: not JSON, wrong shape, not positive finite numbers.
  static Profile from_json(const std::string& text, const std::string& file);

 private:
  std::map<std::string, Section> sections_;
};

/// The profile's file for this runtime: TASUKI_PROFILE, or profile-<host>-<mpi>.json in $XDG_CACHE_HOME/tasuki or
/// ~/.cache/tasuki. Empty if there is no such folder and none can be made.
std::string profile_file(const Runtime& runtime);
/// Reads on rank 0 and tells all ranks. Collective; every rank throws if the file is corrupt. Empty profile if no file.
Profile load_profile(Runtime& runtime);
/// Rank 0 writes the file (atomically, by renaming). Says so once on stderr if it cannot; that is no error.
void save_profile(Runtime& runtime, const Profile& profile);

}  // namespace tasuki
