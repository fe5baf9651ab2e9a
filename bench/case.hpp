// A case: one problem of given sizes, which any peer of its kind may try to solve.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "overlap.hpp"
#include "peer.hpp"

namespace bench {

/// A case whose memory has been allocated. All functions are collective.
struct Problem {
  std::function<RunnerPtr(const Peer&)> make;  ///< null if the peer has no answer to this kind of case
  /// Runs the operation with data that change every time and says on all ranks what went wrong; empty: nothing.
  std::function<std::string(const Peer&, Runner&)> verify;
  double iterations_per_run = 1;  ///< what a start and a wait count as (2 for there and back)
  /// What a program does with the data around each exchange, if that belongs to the case: before each start, after each
  /// wait. The same without any exchange is timed too and taken off, so that cache misses count which an exchange
  /// causes.
  std::function<void()> before;
  std::function<void()> after;
  /// What a program computes before each exchange. Then ranks are brought together, and only the exchange is timed.
  std::function<void()> compute;
  bool time_start_only = false;
  /// The runner beside a computation, too, with so many iterations a sample and so many samples; empty: not asked.
  std::function<Overlap(Runner&, int iterations, int rounds)> overlap;
  bool barrier_between = false;  ///< ranks are brought together before each start
  std::int64_t cache_lines = 0;  ///< lines of 64 bytes that the received bytes lie in; 0: not asked
  double bound = 0;              ///< seconds that no algorithm can fall below, by the prices of paths; 0: not known
};

struct Case {
  std::string group;
  std::string name;
  std::int64_t bytes = 0;  ///< received by one rank in one iteration
  bool quick = false;      ///< part of a quick run
  std::function<Problem(const tasuki::Context&)> make;
};

std::vector<Case> halo_cases(int ranks);
std::vector<Case> transfer_cases(int ranks);
std::vector<Case> broadcast_cases(int ranks);
std::vector<Case> collective_cases(int ranks);
std::vector<Case> transpose_cases(int ranks);
std::vector<Case> mesh_cases(int ranks);
std::vector<Case> overhead_cases(int ranks);

/// The same text on all ranks: that of the lowest rank which has one. Collective.
std::string agree(const tasuki::Context& context, const std::string& complaint);

/// `Problem::bound` of a collective on host memory: of `count` numbers of this type, in the vector or in every block,
/// from or to rank 0.
double bound_of_collective(const tasuki::Context& context, tasuki::CollectiveKind kind, std::int64_t count,
                           tasuki::DType type);

/// Used by the halo and the overhead group.
Problem halo_problem(const tasuki::Context& context, const std::vector<std::int64_t>& cells, int fields,
                     const std::vector<int>& split, const tasuki::Width& shadow, const std::vector<bool>& periodic,
                     bool exchange = true, bool in_use = false);

}  // namespace bench
