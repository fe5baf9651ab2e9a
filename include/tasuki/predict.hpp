// Prediction: how long an epoch takes, from the plans of all ranks and a machine's prices. Nothing runs. What is
// modelled and what is not: docs/planning.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

/// How long an epoch takes. A value. Times are seconds; those of an epoch count from its start.
struct Prediction {
  struct Span {
    double begin = 0;  ///< when the lane reached the command, in its first round
    double end = 0;    ///< when its last round ended
    friend bool operator==(const Span&, const Span&) = default;
  };
  struct Busy {
    std::string resource;  ///< `core of rank 3`, `host 2 out`, `link 4 -> 5 outside`
    double seconds = 0;    ///< busy; a resource that serves several at once has the sum of all of them
    friend bool operator==(const Busy&, const Busy&) = default;
  };
  struct Step {
    std::int32_t rank = 0;
    std::int32_t command = 0;
    std::string what;  ///< `rank 2 #7 put -> 3`
    Span span;
    friend bool operator==(const Step&, const Step&) = default;
  };
  double seconds = 0;                       ///< of the slowest rank, when all start together
  double back_to_back = 0;                  ///< an epoch, when every rank starts the next as soon as one has ended
  std::vector<double> ranks;                ///< per rank, when all start together
  std::vector<Busy> busy;                   ///< resources that were used, busiest first
  std::vector<std::vector<Span>> commands;  ///< [rank][command of its plan]
  std::vector<Step> critical;        ///< from the command that ends last back to the first: each waited for the next
  std::int64_t between_islands = 0;  ///< bytes that cross from island to island
  std::vector<std::string> guessed;  ///< paths of the plans whose prices were not measured
  bool extrapolated = false;         ///< long chunk loops were walked in part and extrapolated

  /// The total, the three busiest resources and the critical path, for people.
  std::string text() const;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

/// Walks the plans of all ranks (index = rank) through some epochs, with the prices of the paths that their commands
/// name, and reports the last one: a steady state, in which earlier epochs have given their permissions. Chunk loops of
/// more than 64 rounds are walked in part and extrapolated. Pure, local, deterministic: every rank gets the same
/// result. Throws `Error` for plans that are not sound, name paths that cannot join their ranks on this machine, or
/// wait for each other for ever (`verify` says more), and for a machine with fewer ranks than there are plans.
Prediction predict(std::span<const Plan> plans, const Machine& machine);

/// Which engine pays beside a computation: what an iteration takes that starts an operation, computes, and waits. A
/// value. Times are seconds, of the slowest rank.
struct Advice {
  struct Way {
    std::string engine;  ///< `inline`, `thread`, `stream`; how, where there are several ways: `stream, beside`
    double seconds = 0;  ///< of an iteration
    double exposed = 0;  ///< of these, what the computation does not hide
    std::string how;     ///< what the number is made of, in words
    friend bool operator==(const Way&, const Way&) = default;
  };
  double computation = 0;  ///< seconds of it by itself
  std::vector<Way> ways;   ///< the simplest first; never empty
  std::size_t best = 0;    ///< index of the way that pays: the fastest, or what is simpler and less than 3 % slower

  /// A table, and a line that says what pays.
  std::string text() const;
  friend bool operator==(const Advice&, const Advice&) = default;
};

/// For the plans of all ranks, in host memory or on GPUs, beside a computation of so many seconds on every rank's core,
/// or GPU. `by_copies`, on GPUs: the plans of the same operation whose bytes the copy engines move, if there are such.
/// What is assumed of each engine is said in docs/planning.md. Pure, local. Throws `Error` as `predict` does, and for
/// a time that is negative or not finite.
Advice advise(std::span<const Plan> plans, const Machine& machine, double computation,
              std::span<const Plan> by_copies = {});

}  // namespace tasuki
