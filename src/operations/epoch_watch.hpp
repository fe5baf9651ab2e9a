// What first epochs take, against what was predicted. What takes much longer on every rank corrects the price of a path
// for operations that are made later.
//
// Nobody may be blamed for others. The time inside `start` and `wait` counts, not what the caller does between them. It
// contains the lateness of other ranks, but of those that take part one is the last, and waits for nobody: so the least
// time of all ranks counts, and of several epochs the least.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/expected.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// Of one rank and operation.
struct Finding {
  std::string operation;  ///< for people
  double expected = 0;    ///< seconds
  double least = 0;       ///< what an epoch took; 0: the rank has no part in it
  std::string path;       ///< whose price is wrong then; empty: none of them alone
  PricedMove move;
  double price = 0;  ///< of that move
};

/// Of all operations that the ranks of a context make together.
class Findings {
 public:
  int next() { return ++operations_; }  ///< The number of an operation that is being made, the same on all ranks.
  void add(Runtime& runtime, int operation, Finding finding);
  /// Tells the other ranks, and corrects prices by what all ranks have found. Collective.
  void settle(Runtime& runtime);

 private:
  int operations_ = 0;
  int fruitless_ = 0;
  std::map<int, Finding> found_;  // by operation
};

/// Times epochs of one operation. Local.
class EpochWatch {
 public:
  EpochWatch(int operation, Finding expected) : operation_(operation), finding_(std::move(expected)) {}

  void begins() { begin_ = now(); }  ///< a call of `start`
  void started() { spent_ = now() - begin_; }
  /// The epoch does not count: its caller tests it, so when it ended is not known, or other operations are active,
  /// whose work the wait does as well.
  void not_alone() { counts_ = false; }
  void waits() { begin_ = now(); }  ///< a call of `wait`
  /// It has returned. False: nothing more is to be seen.
  bool ended(Runtime& runtime);

 private:
  static std::int64_t now();  // ns

  int operation_;
  Finding finding_;
  std::int64_t begin_ = 0;
  std::int64_t spent_ = 0;
  std::int64_t least_ = 0;
  int seen_ = 0;
  int counted_ = 0;
  bool counts_ = true;
};

}  // namespace tasuki
