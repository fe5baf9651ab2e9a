// Plans written by hand, for the tests of the plan room: a ring halo in the forms that engines run, a chain broadcast
// and a reverse addition. Each is small enough to check by reading.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tasuki/plan.hpp"

namespace tasuki::samples {

/// Adds to one rank's plan, command by command. Functions return the index of what they added.
class Hand {
 public:
  Hand(std::string operation, std::int32_t rank, std::int32_t ranks);

  std::int32_t buffer(std::string name, std::int32_t rank, Role role, std::int64_t bytes, std::int32_t ring = 1);
  std::int32_t counter(std::string name, std::int32_t rank, std::int32_t per_epoch = 1);

  void lane(std::int32_t lane) { lane_ = lane; }  ///< where the following commands go
  void loop(std::int64_t count);                  ///< the following commands run `count` times
  void end_loop() { loop_ = -1; }

  std::int32_t wait(std::int32_t counter, std::int32_t lag = 0, bool credit = false);
  std::int32_t signal(std::int32_t counter);
  std::int32_t move(Verb verb, std::int32_t src, std::int32_t dst, std::vector<StridedCopy> copies,
                    std::int64_t step = 0);
  std::int32_t reduce(std::int32_t src, std::int32_t dst, std::vector<StridedCopy> copies, DType dtype,
                      ReduceOp op = ReduceOp::sum);
  std::int32_t send(std::int32_t src, std::int64_t bytes, std::int32_t peer, std::int32_t tag);
  std::int32_t recv(std::int32_t dst, std::int64_t bytes, std::int32_t peer, std::int32_t tag);
  void after(std::int32_t command, std::initializer_list<std::int32_t> deps);
  void expect(std::int32_t src, std::int32_t dst, std::vector<StridedCopy> copies, DType dtype = DType::none,
              ReduceOp op = ReduceOp::sum, bool in_order = false);

  Plan plan;

 private:
  Command& add(Verb verb);
  std::pair<std::int32_t, std::int32_t> range(const std::vector<StridedCopy>& copies);
  std::int32_t last() const { return static_cast<std::int32_t>(plan.commands.size()) - 1; }
  std::int32_t lane_ = 0, loop_ = -1;
};

/// A field of 4 rows of 6 cells of 8 bytes; the first and the last column are halo.
inline constexpr std::int64_t kCell = 8, kRow = 6 * kCell, kRows = 4, kField = kRows * kRow;

/// One column of the field to another column of another field.
StridedCopy column(std::int64_t from, std::int64_t to);

/// Periodic ring of ranks; direction 0 sends to the right neighbour, 1 to the left. Lane 2 * direction gives,
/// lane 2 * direction + 1 takes.
std::vector<Plan> put_halo(std::int32_t ranks);   ///< give: 0 wait ready, 1 put, 2 signal arrived
std::vector<Plan> pull_halo(std::int32_t ranks);  ///< give: 0 signal avail, 1 wait done; take: 2 wait, 3 copy, 4 signal
std::vector<Plan> message_halo(std::int32_t ranks);  ///< give: 0 copy (pack), 1 send; take: 2 recv, 3 copy (unpack)
/// give: 0 wait credit, 1 put, 2 signal arrived; take: 3 wait arrived, 4 copy, 5 signal credit
std::vector<Plan> eager_halo(std::int32_t ranks, std::int32_t ring, std::int32_t lag);
std::vector<Plan> alternating_halo(std::int32_t ranks, std::int32_t lag);  ///< as `put_halo`, the field twice

/// One direction only, from rank 0 to rank 1, where no answer orders what the signals leave open.
/// Rank 0: 0 wait, 1 put, 2 signal; rank 1 as the second lane of the halo, from 0.
std::vector<Plan> eager_transfer(std::int32_t ring, std::int32_t lag);
std::vector<Plan> alternating_transfer(std::int32_t lag);

/// 256 bytes from rank 0 down the chain in four chunks. Rank 0: 0 wait ready, 1 put, 2 signal (loop).
/// Rank 1: 0 wait ready, 1 wait arrived, 2 put, 3 signal (loop); 4 signal ready. Rank 2: 0 signal, 1 wait (loop).
std::vector<Plan> chain_broadcast();

/// Ranks 0 and 2 add their halo cells to the same interior cells of rank 1, which pulls them.
/// Rank 1: 0 wait, 1 reduce, 2 signal; 3 wait, 4 reduce after 1, 5 signal. Ranks 0, 2: 0 signal, 1 wait.
std::vector<Plan> reverse_add();

/// Every rank's `in`, kSummed cells of f64, added up into every rank's `out`.
inline constexpr std::int64_t kSummed = 5;
/// Up and down a binomial tree by messages. A rank: copy in > acc, { recv, reduce } a child, send up, recv, send a
/// child.
std::vector<Plan> tree_allreduce(std::int32_t ranks);
/// Pairs at distance 1, 2, 4 ... read each other's partial results; ranks beyond a power of two give theirs beforehand.
std::vector<Plan> doubling_allreduce(std::int32_t ranks);
/// A block for each rank (kSummed cells each) goes round by puts into scratch, and the sums once more.
std::vector<Plan> ring_allreduce(std::int32_t ranks);
/// To rank 0 along the chain, in chunks of a cell: every rank adds what comes to what it has and puts that on.
std::vector<Plan> chain_reduce(std::int32_t ranks);

/// The n-th command of a verb.
std::int32_t nth(const Plan& plan, Verb verb, std::int32_t n);

/// Puts a copy between bytes that nobody else knows in a command's place, without moving the others.
void idle(Plan& plan, std::int32_t command);
/// After the pass `message order`, all messages being carried in the background.
std::vector<Plan> parted(std::vector<Plan> plans);

/// All of the above with their names.
std::vector<std::pair<std::string, std::vector<Plan>>> all();

/// True if one problem of the report contains all of the words. Shows the report if not.
bool tells(const VerifyReport& report, std::initializer_list<std::string> words);

}  // namespace tasuki::samples
