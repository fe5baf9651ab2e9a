// Algorithm: one way to lay out a collective. An algorithm is one file in algorithms/ that registers itself; nobody
// names it. What it says of itself is enough to choose it, to explain the choice and to make plans from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/steps.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// What may be open in an algorithm; 0: it is, or the algorithm has no such thing.
struct Parameters {
  int trees = 0;           ///< parts of the message, each with a tree of its own
  int arity = 0;           ///< children of an inner rank
  std::int64_t chunk = 0;  ///< bytes that travel as one step of a pipeline
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// What the closed forms are made of: a message costs latency + bytes / bandwidth.
struct Price {
  double latency = 0;
  double second_per_byte = 0;  ///< of a message
  double work_per_byte = 0;    ///< of copying or combining within a rank
  double latency_inside = 0;   ///< of a message within an island
  double second_per_byte_inside = 0;
  double inside(double bytes) const { return latency_inside + bytes * second_per_byte_inside; }
  double message(double bytes) const { return latency + bytes * second_per_byte; }
  double work(double bytes) const { return bytes * work_per_byte; }
};

struct Algorithm {
  std::string name;
  CollectiveKind collective{};
  /// Of two that are as fast the one with the lower number is taken.
  int complexity = 0;
  /// Whether it is looked at where nobody asks for it by name, or for rank order; null: always. An algorithm that takes
  /// the steps of another one where there are only two ranks has `more_than_a_pair` here: to predict it costs some 50
  /// us of the first init.
  bool (*worth_trying)(const Collective& collective) = nullptr;
  /// Why it cannot be on this machine, or with these parameters; empty: it can. Null: it always can.
  std::string (*why_not)(const Collective& collective, const Parameters& wanted) = nullptr;
  bool in_order = false;    ///< reductions: ranks are combined in their order
  bool over_trees = false;  ///< it has trees and an arity, not only chunks
  /// All settings worth trying, given what is wanted. None: it has no parameters.
  std::vector<Parameters> (*settings)(const Collective& collective, const Parameters& wanted) = nullptr;
  /// Paths, as option `path` has them, that may pay besides those that the planner chooses for each piece by itself,
  /// and are taken where they pay as much. Null: none.
  std::vector<std::string> (*paths)(const Collective& collective, const Parameters& parameters) = nullptr;
  /// Seconds, in closed form.
  double (*seconds)(const Collective& collective, const Parameters& parameters, const Price& price) = nullptr;
  /// Lists what is to be done.
  void (*list)(const Collective& collective, const Parameters& parameters, Steps& steps) = nullptr;
};

/// For `Algorithm::worth_trying`: false for one or two ranks, in host memory. In GPU memory it is always true, because
/// there the same steps make other kernels if they are listed in another order, or in rounds.
bool more_than_a_pair(const Collective& collective);

/// For `Algorithm::worth_trying` of reductions that go on from what has arrived, several times: false for more than two
/// GPUs of one island. There each step has thread blocks of its own, which do nothing while it waits. A reduce-scatter
/// of 256 MiB between four H200s took 3000 us by `ring`, 3200 by `halving` and 720 by `direct`; one of 1 MiB 26, 26 and
/// 8. An allreduce of 64 MiB took 472 us by `doubling` and 346 by `direct`.
bool unless_gpus_idle(const Collective& collective);
/// The same, and `more_than_a_pair`.
bool unless_a_pair_or_gpus_idle(const Collective& collective);

/// For `Algorithm::worth_trying` of allreduces: false in place on GPUs of one island, where these algorithms first copy
/// what they send, or overwrite it only when it has left. An allreduce of 256 MiB in place took two H200s 1100 us by
/// `doubling`, 1570 by `direct` and 850 by `relay`; four took 1630 by `direct` and 1280 by `relay`.
bool unless_in_place(const Collective& collective);

/// For `Algorithm::worth_trying`: in GPU memory only.
bool on_gpus(const Collective& collective);

/// All algorithms of a collective, the simplest first.
std::vector<const Algorithm*> algorithms_of(CollectiveKind kind);

/// Whether the algorithm is meant by the name, or by `auto`, and has the parameters that are wanted.
bool suits(const Algorithm& algorithm, const std::string& name, const Parameters& wanted);

/// Throws `Error` if the name is neither `auto` nor an algorithm's of the collective, or if parameters are wanted that
/// it does not have; the text lists what there is.
void check_algorithm(CollectiveKind kind, const std::string& name, const Parameters& wanted = {});

/// The same for what a shape wants; also if it wants rank order of an algorithm that has another.
void check_algorithm(const CollectiveShape& shape);

/// `const AlgorithmRegistration registration{[] { Algorithm a; ...; return a; }};` at namespace scope registers one.
struct AlgorithmRegistration {
  explicit AlgorithmRegistration(Algorithm (*make)());
};

struct Candidate;

/// A collective as it was laid out: asked for every rank.
class CollectivePlan {
 public:
  /// Chooses among the algorithms: by predicting whole plans (predict/predict.hpp), or, where that would take long, by
  /// their closed forms. A function of its arguments: every rank comes to the same. `wanted` is an algorithm's name or
  /// `auto`. Throws `Error` for a name that is none.
  CollectivePlan(const Machine& machine, const CollectiveShape& shape);
  /// The same with what was chosen otherwise.
  CollectivePlan(const Machine& machine, const CollectiveShape& shape, const Candidate& chosen);

  const Collective& collective() const { return *collective_; }
  const Algorithm& algorithm() const { return *algorithm_; }
  const Parameters& parameters() const { return parameters_; }
  /// Paths by name, where a machine's measurements prefer them to those that the planner chooses; else `auto`.
  const std::string& path() const { return path_; }
  /// Seconds that it was predicted to take, with its correction; nothing where no plans were predicted.
  const std::optional<double>& predicted() const { return predicted_; }
  Candidate candidate() const;
  /// Bytes that all ranks together send to ranks of other islands.
  std::int64_t across() const;
  Problem problem(int rank) const { return std::move(problems(rank, rank + 1).front()); }
  /// Of ranks `first` to `last` - 1: the steps of all ranks are gone through once for all of them.
  std::vector<Problem> problems(int first, int last) const;
  /// Facts about a rank's buffers: the user's as the collective has them, and scratch.
  std::vector<BufferFact> facts(int rank) const;

 private:
  std::shared_ptr<const Collective> collective_;
  std::vector<UserRole> buffers_;  // the same on every rank
  const Algorithm* algorithm_ = nullptr;
  Parameters parameters_;
  std::string path_;
  std::string remark_;
  std::optional<double> predicted_;
};

/// Rounds until a number that doubles in each, beginning with 1, has reached `ranks`.
int doublings(int ranks);

}  // namespace tasuki
