// Builder: assembles one rank's plan command by command. Keeps count of indices, lanes, counters and dependencies.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tasuki/plan.hpp"

namespace tasuki {

class Builder {
 public:
  Builder(std::string operation, int rank, int ranks);

  int rank() const { return plan_.rank; }
  int ranks() const { return plan_.ranks; }

  /// Returns the buffer's index. Adds the buffer unless the plan has one with the same identity (see `Buffer`).
  int buffer(const Buffer& buffer);
  /// The buffer called `name` of `rank`.
  int buffer(const std::string& name, int rank, Role role, std::int64_t bytes, int ring = 1, Home home = Home::own);
  /// A buffer of a link: a counter or scratch, which `owner` owns and `writer` writes.
  int counter(Purpose purpose, int link, int owner, int writer, Home home);
  int scratch(Purpose purpose, int link, int owner, int writer, std::int64_t bytes, int ring, Home home);
  /// A counter called `name` of `rank` that belongs to no link.
  int counter(const std::string& name, int rank, Home home = Home::shared);

  void begin_lane(int stage = 0);
  /// Commands from here to `end_loop` run `count` times; in every round the offsets in user buffers move by `step`
  /// bytes.
  void begin_loop(std::int64_t count, std::int64_t step);
  void end_loop();
  void set_path(const std::string& name);

  /// All return the command's index. Copies or puts that follow each other share a command; reductions do not. Copy,
  /// put and reduce move the strided copies `copies` from `src` to `dst`. The steps say how far each side moves in a
  /// round of the surrounding loop (`user_step()` for user buffers).
  int copy(int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
           std::int64_t dst_step);
  int put(int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
          std::int64_t dst_step);
  int reduce(int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
             std::int64_t dst_step, DType dtype, ReduceOp op = ReduceOp::sum);
  int send(int peer, int src, std::int64_t offset, std::int64_t bytes, int tag, std::int64_t step);
  int recv(int peer, int dst, std::int64_t offset, std::int64_t bytes, int tag, std::int64_t step);
  int signal(int peer, int counter);
  int wait(int peer, int counter, int lag = 0, bool credit = false);
  /// A wait, with credit, for one of the last signals of the epoch before. `number` says later which one: only at its
  /// end is it known how many signals an epoch has.
  int wait_for_last(int peer, int counter);
  void number(int wait, int index);

  std::int64_t user_step() const { return step_; }
  std::int64_t rounds() const { return count_; }
  /// `command` must not run before `other` (of another lane) has ended.
  void depend(int command, int other);
  /// Never shares copies with commands: damage to one must not hide in the other.
  void expect(int src, int dst, std::span<const StridedCopy> copies, DType dtype, ReduceOp op = ReduceOp::sum,
              bool in_order = false);

  const Plan& plan() const { return plan_; }
  Plan finish();  ///< ends the building; throws if the plan complains about itself (a defect of Tasuki)

 private:
  Command& add(Verb verb, int peer);
  int move(Verb verb, int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
           std::int64_t dst_step);
  bool append(Verb verb, int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
              std::int64_t dst_step);
  int store(std::span<const StridedCopy> copies);

  Plan plan_;
  std::vector<StridedCopy> promised_;  ///< copies of the expectations, which count them from 0 until the end
  std::map<std::tuple<int, Purpose, int, int, std::string>, int> known_;  ///< buffers by identity
  std::vector<std::pair<std::int32_t, std::int32_t>> deps_;
  int lane_ = -1;
  int stage_ = 0;
  int path_ = 0;
  int loop_ = -1;
  std::int64_t count_ = 1;
  std::int64_t step_ = 0;
  /// the copies of the last command are at the end of the array, and no other command names them
  bool last_is_own_ = false;
  std::vector<std::int32_t> waited_;  ///< per buffer: how many indices of the counter have a wait so far
};

}  // namespace tasuki
