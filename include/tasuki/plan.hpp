// Plan: what one rank does in one epoch of an operation, as pure data. Printable, serialisable, verifiable,
// simulatable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasuki/held.hpp"
#include "tasuki/strided_copy.hpp"
#include "tasuki/verb.hpp"

namespace tasuki {

/// What a buffer is for. A `signal` buffer is a counter: 64 bits that only grow, written by one rank, read by its
/// owner.
enum class Role : std::uint8_t { input, output, inout, scratch, signal };

std::string_view to_string(Verb verb);
std::string_view to_string(Role role);

/// Where a buffer's memory is, and who reaches it.
enum class Home : std::uint8_t {
  own,     ///< private host memory of its rank
  shared,  ///< host memory that the ranks of the island map
  device,  ///< GPU memory; what a link keeps there is mapped by the ranks that the GPU reaches
  ll,      ///< GPU memory in which every 16 bytes carry the number of the epoch that wrote them (`kLLLineBytes`)
  pinned,  ///< host memory of its rank that its GPU reaches too
};

/// What a link keeps a buffer for. Protocol `put` has ready and arrived, `pull` available and done, `eager` filled,
/// credit and ring, `message` outgoing and incoming.
enum class Purpose : std::uint8_t {
  user,       ///< belongs to no link: the user's memory, or memory of an algorithm; identified by its name
  ready,      ///< counter: the receiver no longer reads its destination
  arrived,    ///< counter: the sender has stored everything
  available,  ///< counter: the source may be read
  done,       ///< counter: the source has been read
  filled,     ///< counter: a slice is in the ring
  credit,     ///< counter: the receiver has unpacked an epoch; its part of the ring may be filled again
  ring,       ///< scratch at the receiver that the sender fills
  outgoing,   ///< scratch that messages are sent from
  incoming,   ///< scratch that messages are received into
};

std::string_view to_string(Home home);
std::string_view to_string(Purpose purpose);

/// A buffer that the plan touches: this rank's own or a peer's. Over all plans a buffer is identified by its owner
/// `rank` and, if it belongs to no link, by `name`, else by purpose, number of the link and writing rank.
///
/// A buffer with `ring` > 1 exists that many times, and epoch e (counted from 1) uses instance e % ring. This describes
/// the staging ring of protocol `eager`, and a field whose two copies alternate: its copy that is current at the first
/// start counts as instance 1.
struct Buffer {
  Name name;  ///< empty for buffers of links
  std::int32_t rank = 0;
  Role role = Role::scratch;
  Home home = Home::own;
  Purpose purpose = Purpose::user;
  std::int32_t link = 0;       ///< number of the link among those from one rank to another
  std::int32_t writer = -1;    ///< a link's buffers: the rank that writes it; of `outgoing`: the message's receiver
  std::int64_t bytes = 0;      ///< of one instance
  std::int32_t per_epoch = 0;  ///< counters: how far the counter advances in one epoch
  std::int16_t ring = 1;
  std::int16_t copies = 1;  ///< 2 for a field with two copies that do not alternate: the current one is used
  /// Its name for people: the name, or `arrived.0<1` (purpose, link, writer).
  std::string label() const;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// A chunk loop, kept symbolic: the consecutive commands of one lane that name it run `count` times, in order.
struct Loop {
  std::int64_t count = 1;
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// One command. Commands of a lane are consecutive in the plan and run in order; lanes run independently of each other
/// except for `deps`. All lanes begin when the operation is started and the epoch ends when all have ended.
///
/// In chunk c of a loop the source offset moves by c * src_step and the destination offset by c * dst_step.
///
/// A `signal` with index i in epoch e sets its counter to (e - 1) * per_epoch + i + 1, where inside a loop i = index +
/// c. A `wait` with index i and lag l waits for the value that epoch e - l sets. Example: with per_epoch 1 and lag 2,
/// the wait of epoch 5 waits for the value 3. In the first l epochs there is no such value. A wait with `credit` then
/// ends at once (permission was granted in advance); without `credit` it waits for the value of epoch 1, because a peer
/// must have started once before its memory is touched.
struct Command {
  Verb verb = Verb::copy;
  DType dtype = DType::none;    ///< reduce
  ReduceOp op = ReduceOp::sum;  ///< reduce: must be `defined` for `dtype`, or `negate`
  bool credit = false;          ///< wait: permission was granted in advance, so the first `lag` epochs need no signal
  std::int16_t path = 0;        ///< index into `Plan::paths`: the path that emitted the command and carries it
  /// The same for all commands of a lane. On no rank does a command wait for what one of a later stage does. So who has
  /// few hands may do all moves of a stage before those of the next.
  std::int16_t stage = 0;
  std::int32_t lane = 0;
  std::int32_t peer = -1;       ///< the other rank; -1 if there is none; of packing: the rank that it packs for
  std::int32_t src = -1;        ///< index into `Plan::buffers`
  std::int32_t dst = -1;        ///< index into `Plan::buffers`
  std::int32_t first_copy = 0;  ///< copy, put, reduce: range of `Plan::copies`
  std::int32_t copy_count = 0;
  std::int32_t first_dep = 0;  ///< range of `Plan::deps`: commands of other lanes that must have ended (all chunks)
  std::int32_t dep_count = 0;
  std::int32_t loop = -1;   ///< index into `Plan::loops`
  std::int32_t tag = 0;     ///< send, recv: matches within (sender, receiver, operation)
  std::int32_t index = 0;   ///< signal, wait
  std::int32_t lag = 0;     ///< wait
  std::int64_t offset = 0;  ///< send, recv
  std::int64_t bytes = 0;   ///< send, recv: message size; copy, put, reduce: bytes moved in one chunk
  std::int64_t src_step = 0;
  std::int64_t dst_step = 0;
  friend bool operator==(const Command&, const Command&) = default;
};

/// Post-condition: in every epoch, the bytes that the strided copies name in `src` (as they were when its owner
/// started) end up in `dst`, which this rank owns, copied or (`dtype` != none) combined by `op`, or with the sign of
/// their elements changed (`op` negate). Every byte of `dst`
/// that is named is written exactly once. Exception: several contributions to one byte may be reduced; each is combined
/// exactly once, all with one type and operator. They are combined with the bytes that a copy of another expectation
/// brings there, or, if there is none, with what the user of `dst` had there before the start.
///
/// If an expectation of a byte is `in_order`, the contributions must appear in the order of the plan's expectations
/// when the reduction is written from left to right, after the value that they are combined with. Brackets are free: a
/// ring computes ((a + b) + c) + d and a tree (a + b) + (c + d); both are in order, with different roundings.
struct Expect {
  std::int32_t src = -1;
  std::int32_t dst = -1;
  std::int32_t first_copy = 0;
  std::int32_t copy_count = 0;
  DType dtype = DType::none;
  ReduceOp op = ReduceOp::sum;
  bool in_order = false;
  friend bool operator==(const Expect&, const Expect&) = default;
};

/// One rank's plan.
struct Plan {
  std::string operation;  ///< for people: `halo p,q`
  std::int32_t rank = 0;
  std::int32_t ranks = 1;  ///< ranks of the context
  std::vector<std::string> paths;
  std::vector<Buffer> buffers;
  std::vector<StridedCopy> copies;
  std::vector<Loop> loops;
  std::vector<Command> commands;
  std::vector<std::int32_t> deps;
  std::vector<Expect> expects;
  friend bool operator==(const Plan&, const Plan&) = default;

  std::int64_t memory() const;  ///< Bytes that the plan's arrays occupy.

  /// Checks what a single plan can get wrong by itself: indices in range, lanes consecutive, loops inside one lane,
  /// roles and owners that suit the verbs, offsets inside buffers. Returns the complaints, one line each; empty if
  /// sound.
  std::vector<std::string> complaints() const;
};

/// Text form, one command a line, for people and diffs. `plan_from_text(to_text(p)) == p`.
std::string to_text(const Plan& plan);
Plan plan_from_text(std::string_view text);  ///< Throws `Error` with the line number.

/// JSON form. `plan_from_json(to_json(p)) == p`.
std::string to_json(const Plan& plan);
Plan plan_from_json(std::string_view json);  ///< Throws `Error` saying where and what.

/// In which order a promised reduction was combined. Rounding of floats depends on it: ranks whose results must be
/// equal in every bit need equal `order`s.
struct ReductionOrder {
  std::int32_t rank = 0;    ///< the rank that was promised the result
  std::string buffer;       ///< where the result is
  std::int64_t offset = 0;  ///< of the first byte with this order
  std::int64_t bytes = 0;   ///< number of bytes with this order
  /// The ranks whose bytes were combined, in brackets: `((0 1) 2)`. The operands of a bracket come in ascending order,
  /// for all operators are commutative. Of more than 64 contributions only the number.
  std::string order;
  friend bool operator==(const ReductionOrder&, const ReductionOrder&) = default;
};

/// What the verifier found over the plans of all ranks.
struct VerifyReport {
  std::vector<std::string> problems;  ///< one sentence each; names ranks, commands (`rank 2 #7 put -> 3`) and buffers
  std::int64_t commands = 0;          ///< command instances executed, loops unrolled, all ranks and epochs
  std::int64_t bytes = 0;             ///< bytes whose provenance was followed in one epoch
  /// How the promised reductions that verified were combined in the first epoch, by rank; at most 256 entries.
  std::vector<ReductionOrder> orders;
  bool ok() const { return problems.empty(); }
  std::string text() const;
};

/// Verifies the plans of all ranks (index = rank) together by running them symbolically for `epochs` epochs
/// (0: enough that every copy of the largest ring is used again and the longest lag has passed):
///  * each plan is sound by itself (`Plan::complaints`); buffers that two plans name agree in bytes, role, ring;
///  * every send has its receive with equal bytes, every signal has a wait and every wait its signal;
///  * no deadlock: every lane ends; if not, the cycle of who waits for whom is named;
///  * every byte that an `Expect` names is written exactly once in an epoch and comes from where the expectation says;
///    or it gets exactly its contributions, each once, by way of any partial results, with one type and operator, cut
///    into elements at the same bytes; no other user byte is written;
///  * no hazard: two accesses to one byte, one of them a write, are ordered by happens-before, inside an epoch and
///    across epochs. Between epochs the owner's user is taken to read every output byte of the copies that the ring
///    gives to the epoch just ended, and to write every input byte of those that it gives to the one about to start.
///    Inputs are the bytes that expectations take or add to, outputs those in which they end.
///
/// A send is taken to block until its receive is reached, so that no plan depends on buffering by MPI. Its end is not
/// taken as a sign that the receive was reached, so that no plan depends on the absence of buffering either. Commands
/// of one lane count as ordered. Local. Problems are returned, at most about 20; throws `Error` only for negative
/// `epochs`. Plans that are too large to follow (more than 2^26 units moved, a unit being what divides all sizes and
/// offsets) are a problem as well.
VerifyReport verify(std::span<const Plan> plans, int epochs = 0);

}  // namespace tasuki
