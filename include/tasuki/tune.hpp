// Tuning: measures the candidates among which the algorithm of a collective is chosen, and keeps how far the model is
// from what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasuki/context.hpp"
#include "tasuki/machine.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

struct TuneOptions {
  std::vector<CollectiveKind> kinds;  ///< empty: all
  std::vector<std::int64_t> sizes;    ///< bytes, of the vector or of all blocks of a rank; empty: 8 B to 16 MiB
  Memory memory = Memory::host;       ///< of the host: memory that ranks share, and memory that they do not
  int rounds = 11;                    ///< measurements of a candidate; that counts than which a quarter are shorter
  double round_seconds = 0.002;       ///< length of each, about
};

/// A candidate's times, in seconds: of an epoch of ranks that start it together, on the slowest rank.
struct TunedCandidate {
  Correction correction;  ///< which it is, and measured / predicted
  std::string name;       ///< as `explain` calls it
  double predicted = 0;   ///< by the model alone
  double measured = 0;    ///< what the correction was made from
  double again = 0;       ///< measured once more, afterwards: by this the choice is judged
};

struct TunedCase {
  CollectiveKind kind{};
  std::int64_t bytes = 0;  ///< of the vector, or of all blocks
  bool shared = true;      ///< it lies where other ranks can reach it
  double bound = 0;        ///< seconds: no candidate can take less, by the prices of the paths
  std::vector<TunedCandidate> candidates;
  int by_model = 0;  ///< the candidate that is chosen without corrections
  int picked = 0;    ///< the one that is chosen with them
  int best = 0;      ///< the fastest when measured again
  /// Of a candidate to the best, when measured again; at least 1.
  double ratio(int candidate) const;
};

struct Tuned {
  std::vector<TunedCase> cases;
  bool kept = false;  ///< in the profile; not with more ranks on a host than hardware threads, or on a part of them
  /// The share of cases whose choice takes at most 10 % longer than the best: with corrections, and by the model alone.
  double within(double tolerance = 0.1) const;
  double within_by_model(double tolerance = 0.1) const;
  /// All of it, times in µs, for programs.
  std::string to_json() const;
};

/// Measures on the ranks of the context, without anything else running there. The corrections replace those of the same
/// collectives on as many ranks, take effect for what is made from now on, and are kept in the machine profile. All
/// ranks must give the same options; every rank gets the same result. Collective. Throws `Error` on every rank for
/// options that cannot be, on one rank, and while TASUKI_PATH or TASUKI_ALGORITHM decide instead.
Tuned tune_collectives(const Context& context, const TuneOptions& options = {});

}  // namespace tasuki
