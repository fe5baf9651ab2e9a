// Builder: assembles one rank's plan command by command, keeping the bookkeeping (indices, lanes, counters,
// dependencies).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tasuki/plan.hpp"

namespace tasuki {

/// Where memory that a plan needs besides the user's is placed.
enum class Home : std::uint8_t {
  own,      ///< this process's memory
  shared,   ///< host memory that the ranks of the host map
  device,   ///< GPU memory that the ranks of the island map
  stamped,  ///< the same in lines, which say by themselves whether an epoch has written them (`kStampedLine`)
  pinned,   ///< this process's memory, for the processor and the GPU
};

/// A line of stamped memory has 32 words of 16 bytes, each of which a GPU stores and loads at once: 15 bytes of data
/// and a byte of the epoch's number. Every strided copy begins a line; plans count the bytes of data.
constexpr std::int64_t kStampedLine = 512;
constexpr std::int64_t kStampedData = 480;

/// A plan being made, with what lowering needs to know besides.
struct Draft {
  Plan plan;
  std::vector<Home> home;  ///< per buffer that is not the user's
};

class Builder {
 public:
  Builder(std::string operation, int rank, int ranks);

  int rank() const { return draft_.plan.rank; }
  int ranks() const { return draft_.plan.ranks; }

  /// The buffer (rank, name), added if it is new.
  int buffer(const std::string& name, int rank, Role role, std::int64_t bytes, int ring = 1, Home home = Home::own);
  /// The counter called `name` that `rank` owns.
  int counter(const std::string& name, int rank, Home home = Home::shared);

  void begin_lane();
  /// Commands from here to `end_loop` run `count` times; in every round user offsets move by `step` bytes.
  void begin_loop(std::int64_t count, std::int64_t step);
  void end_loop();
  void set_path(const std::string& name);

  /// All return the command's index; copies or puts that follow each other share a command, reductions do not. Copy,
  /// put and reduce move `copies` from `src` to `dst`; the steps say how far each side moves in a round of the
  /// surrounding loop
  /// (`user_step()` for user buffers).
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

  std::int64_t user_step() const { return step_; }
  std::int64_t rounds() const { return count_; }
  /// `command` must not run before `other` (of another lane) has ended.
  void depend(int command, int other);
  void expect(int src, int dst, std::span<const StridedCopy> copies, DType dtype, ReduceOp op = ReduceOp::sum,
              bool in_order = false);

  const Plan& plan() const { return draft_.plan; }
  Draft finish();  ///< Ends the building; throws if the plan complains about itself (a defect of Tasuki's own).

 private:
  Command& add(Verb verb, int peer);
  int move(Verb verb, int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
           std::int64_t dst_step);
  bool append(Verb verb, int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
              std::int64_t dst_step);
  int store(std::span<const StridedCopy> copies);

  Draft draft_;
  std::vector<std::pair<std::int32_t, std::int32_t>> deps_;
  int lane_ = -1;
  int path_ = 0;
  int loop_ = -1;
  std::int64_t count_ = 1;
  std::int64_t step_ = 0;
  bool last_is_own_ = false;          ///< nothing else names the copies of the last command, and they end the array
  std::vector<std::int32_t> waited_;  ///< per buffer: how many indices of the counter are taken by waits so far
};

}  // namespace tasuki
