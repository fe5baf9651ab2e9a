// RankShape: what one rank asks of an operation, and what it must hear from others before it can ask the planner. Plain
// data without memory, session or language: one file of this folder makes it for one operation. The functions are
// called in the order in which they stand here (operations/description.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/cut.hpp"
#include "layout/encoding.hpp"
#include "planner/planner.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// Arguments that ranks must have alike, as errors show them: names and values, in the order of the comparison.
using Agreed = std::vector<std::pair<std::string, std::string>>;

/// Who hears what a rank says of its shape.
enum class Hearers : std::uint8_t {
  nobody,  ///< Ranks know enough.
  named,   ///< The ranks that `named` lists. They need not name this rank.
  all,     ///< All ranks of the context.
};

/// A buffer of the user: which bytes of it the rank uses, relative to the address that the user gives.
struct MemoryUse {
  std::string name;
  std::string called;           ///< in errors: `argument 'in'`
  ByteRange range;              ///< from the first byte to the last; empty: the address is not looked at
  std::string not_in_place;     ///< ends the error for an address that is `in_place`: `, which exchanges do not know`
  std::string not_on_gpu = {};  ///< the error for memory of GPUs; empty: it may be
  int buffer = -1;              ///< of the problem; -1: of the same place in the list
};

/// For an operation of which all ranks choose alike how it is laid out, by prices and by what is known of all memory.
struct Choosing {
  std::string path = "auto";    ///< that it is to take
  std::string engine = "auto";  ///< that is to run it
  Memory hint = Memory::host;   ///< where no rank has memory to look at
  bool holds = true;            ///< `settle` tells whether it does on all ranks
};

/// A way to do an operation.
struct Arrangement {
  std::string name = {};      ///< for people
  std::string path = "auto";  ///< that it is made with
  Problem problem;
  std::optional<double> predicted = -1;  ///< seconds; less than 0: by the prices of its moves; none: it was not
};

class RankShape {
 public:
  RankShape() = default;
  virtual ~RankShape() = default;
  RankShape(const RankShape&) = delete;
  RankShape& operator=(const RankShape&) = delete;

  virtual std::string operation() const = 0;  ///< what errors call it: `Transfer`
  virtual std::string name() const = 0;       ///< what plans call it: `transfer 0->1`
  /// Where not all ranks of the context make it: those beside this rank that do, ascending. They hear what this rank
  /// says, and say something in their turn. `complaint` is then thrown on this rank alone.
  virtual std::optional<std::vector<int>> among() const { return {}; }
  virtual Agreed agreed() const = 0;
  /// What is wrong on this rank by itself; empty: nothing. May throw `Error` in its place.
  virtual std::string complaint(const Machine& machine) const = 0;
  /// Lists what `memory`, `named` and `tell` answer from. There is no complaint.
  virtual void list() {}
  /// The user's buffers: the first ones of the problem, in their order. Not asked for where their memory is known.
  virtual std::vector<MemoryUse> memory() const { return {}; }
  /// The bytes of a buffer that are written, or read; relative to the first byte of its range.
  virtual Layout bytes_of(std::size_t /*buffer*/, bool /*written*/) const { return {}; }
  /// What is wrong with a buffer of which bytes are written twice; empty: none are.
  virtual std::string overlap_in(std::size_t /*buffer*/) const { return {}; }
  /// The error for bytes of buffer `a` that are written while buffer `b` is read or written.
  virtual std::string overlapping(std::size_t /*a*/, std::size_t /*b*/) const { return {}; }

  /// Whether the shape can do with that. Then it makes a copy of what this rank reads of buffer `read` before anything
  /// is written.
  virtual bool copies_first(std::size_t /*written*/, std::size_t /*read*/) { return false; }
  /// Whether this rank makes such a copy.
  virtual bool copies() const { return false; }

  virtual Hearers hearers() const { return Hearers::nobody; }
  /// Whether `memory` depends on what is heard: then `list` is called after it.
  virtual bool hears_sizes() const { return false; }
  /// What is said, in one word that no other operation uses: `neighbours`. Every message begins with it.
  virtual std::string subject() const { return {}; }
  virtual std::vector<int> named() const { return {}; }  ///< ascending, without this rank
  /// What rank `hearer` must know. To all: the same for each, and `hearer` is -1.
  virtual void tell(int /*hearer*/, Encoder& /*to*/) const {}
  /// What rank `rank` says; of all: this rank's own too, in ascending order. Throws `Malformed` for what no rank with
  /// the same agreed arguments says.
  virtual void hear(int /*rank*/, Decoder& /*from*/) {}
  /// Why what was heard does not fit together; empty: it fits. Where all hear the same, all must find the same.
  virtual std::string misfit() const { return {}; }

  /// Some rank makes a copy of what it reads. Called then only, after `hear`.
  virtual void found_copies() {}
  virtual std::optional<Choosing> choosing() const { return {}; }
  /// All ranks' memory is of this kind; peers can map all of it; `holds` does on all ranks. Only if it is choosing.
  virtual void settle(Memory /*memory*/, bool /*shared*/, bool /*holds*/) {}

  /// What this rank asks of the planner: the way that is chosen first, then others that may be tried.
  virtual std::vector<Arrangement> arrangements(const Machine& machine) const;
  /// The same where there is one way.
  virtual Problem problem(const Machine& machine) const = 0;
};

inline std::vector<Arrangement> RankShape::arrangements(const Machine& machine) const {
  std::vector<Arrangement> one(1);
  one.front().problem = problem(machine);
  return one;
}

}  // namespace tasuki
