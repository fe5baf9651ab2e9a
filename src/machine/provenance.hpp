// Provenance: how the prices of a machine came about, for people who wonder whether to trust them. Part of the
// profile's file.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tasuki {

/// One measurement of some paths.
struct Provenance {
  std::string date;     ///< `2026-11-24T17:24:05Z`
  std::string host;     ///< of rank 0
  std::string version;  ///< of Tasuki
  int ranks = 0;        ///< of the host
  int cores = 0;        ///< hardware threads of the host; 0: not known
  int attempts = 1;     ///< how often these paths have been measured, because they were uncertain before
  double seconds = 0;   ///< that measuring took
  double load = -1;     ///< the host's load of the last minute when it began; below 0: not known
  double others = -1;   ///< cores that other processes used meanwhile; below 0: not known
  double switches = 0;  ///< how often a second a measuring rank had to give up its core
  std::map<std::string, double> spread;        ///< by path: share by which its two best turns differ, at most
  std::map<std::string, std::string> derived;  ///< paths whose times could not be true, and what was wrong with them

  bool busy() const;       ///< other processes used cores that the ranks needed
  double widest() const;   ///< the largest spread
  bool uncertain() const;  ///< the prices may be wrong
  /// Whether measuring again, where other processes use `others_now` cores (below 0: not known), may make it surer.
  bool may_improve(double others_now) const;
  /// Whether the price of `path`, which both have measured, is better known than from `other`.
  bool surer(const Provenance& other, const std::string& path) const;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// Of the paths that `newer` has measured again: those whose prices are surer as they are in `known`. They leave
/// `newer`.
std::vector<std::string> keep_surer(std::vector<Provenance>& known, Provenance& newer);

/// Removes what newer measurements have replaced, and adds `newer`.
void add_provenance(std::vector<Provenance>& all, Provenance newer);

/// `measured 2026-11-24 17:24 UTC on host7, within 4 %; ...`: what is shown beside prices.
std::string described(const std::vector<Provenance>& all);

nlohmann::json json_of(const std::vector<Provenance>& all);
/// Calls `fail(place, what)`, which throws, for what is no such list.
std::vector<Provenance> provenance_of(
    const nlohmann::json& json, const std::string& place,
    const std::function<void(const std::string& place, const std::string& what)>& fail);

}  // namespace tasuki
