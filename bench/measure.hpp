// Interleaved timing: the peers of a case take turns, so that whatever disturbs the machine disturbs them all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "case.hpp"

namespace bench {

struct Settings {
  int rounds = 11;              ///< samples a peer
  double round_seconds = 0.03;  ///< calibrated length of a round
};

/// µs for one iteration, as percentiles over the rounds; a round's time is that of its slowest rank.
struct Times {
  std::string peer;
  double p10 = 0;
  double median = 0;
  double p90 = 0;
  double init = 0;     ///< once, µs: preparing the operation
  int iterations = 0;  ///< in a round
  std::optional<std::int64_t> memory;
  std::optional<double> predicted;  ///< µs
  std::optional<Overlap> overlap;
};

struct CaseResult {
  std::vector<Times> times;             ///< of the peers that have an answer and a right one
  std::vector<std::string> complaints;  ///< of the verification, a peer each
  double barrier = 0;                   ///< µs, where the times contain one
  double use = 0;                       ///< µs, taken off the times: what the program does with the data by itself
  std::int64_t cache_lines = 0;
  double bound = 0;  ///< µs; 0: not known
};

/// Prepares, verifies and times all peers of `names` (empty: all) on a case. Collective, same result on all ranks.
CaseResult measure(const tasuki::Context& context, const Case& one, const std::vector<std::string>& names,
                   const Settings& settings);

/// The value below which a fraction `p` of the sorted samples lies, interpolated.
double percentile(std::vector<double> samples, double p);

}  // namespace bench
