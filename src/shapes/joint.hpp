// JointShape: what all ranks of a machine ask of one operation, once their shapes are known to fit together. It answers
// from data alone, so that operations are planned by the same functions live and off line. One file of this folder
// makes it for one operation; nobody else knows which operation it is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layout/cut.hpp"
#include "planner/planner.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

class JointShape {
 public:
  JointShape() = default;
  virtual ~JointShape() = default;
  JointShape(const JointShape&) = delete;
  JointShape& operator=(const JointShape&) = delete;

  /// What ranks `first` to `last` - 1 ask of the planner. Some operations do the same work for one rank as for many.
  virtual std::vector<Problem> problems(int first, int last) const = 0;
  /// Off line: facts about the rank's buffers.
  virtual std::vector<BufferFact> facts(int rank) const = 0;

  Problem problem(int rank) const { return std::move(problems(rank, rank + 1).front()); }
};

/// A joint shape that makes the problem of each rank by itself.
class EachRank : public JointShape {
 public:
  std::vector<Problem> problems(int first, int last) const final {
    std::vector<Problem> all;
    for (int rank = first; rank < last; ++rank) all.push_back(problem_of(rank));
    return all;
  }

 private:
  virtual Problem problem_of(int rank) const = 0;
};

/// Off line: the facts about `bytes` bytes of memory that CUDA or Tasuki has allocated, and so aligned.
BufferFact allocated(std::int64_t bytes, Memory memory, bool shared);
/// The same for buffers of which these bytes are used. Of one that is not used there is no address, as of operations on
/// ranks.
std::vector<BufferFact> facts_of(std::span<const ByteRange> ranges, Memory memory, bool shared);

/// Off line: throws `Error` if memory of GPUs is wanted of ranks that have none.
void check_gpus(const Machine& machine, Memory memory);
/// Off line: throws `Error` if the argument names a rank that the machine does not have.
void check_rank(const Machine& machine, const char* argument, int rank);

}  // namespace tasuki
