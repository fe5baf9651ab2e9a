// Corrections: what of a machine's measurements (tasuki/machine.hpp) says something of the candidates for a collective.
#pragma once

#include <string>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {

class Corrections {
 public:
  /// Those for the collective on as many ranks in as many islands, in the same kind of memory, which on hosts is shared
  /// or is not; of the measured sizes the one that is nearest on a scale of powers of two.
  Corrections(const Machine& machine, const Collective& collective);

  bool any() const { return !found_.empty(); }
  /// What the model's time is multiplied by.
  struct Factor {
    double factor = 1;
    bool measured = false;  ///< this very candidate was measured
  };
  /// Of a candidate that was not measured: that of the same algorithm with the nearest parameters; of an algorithm that
  /// was not measured the median of all factors, for the model is not wrong about those alone that were looked at.
  Factor of(const Algorithm& algorithm, const Parameters& parameters, const std::string& path) const;
  /// Paths by name with which this candidate was measured.
  std::vector<std::string> paths(const Algorithm& algorithm, const Parameters& parameters) const;

 private:
  std::vector<Correction> found_;
};

}  // namespace tasuki
