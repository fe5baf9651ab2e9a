// Plan: what one rank does in one epoch of an operation, as pure data. Printable, serialisable, verifiable,
// simulatable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// What a command does. Source and destination are buffers of the plan; see `Command` for the fields each verb uses.
enum class Verb : std::uint8_t {
  copy,    ///< strided copies into this rank's memory; the source may be a peer's memory (a pull)
  put,     ///< strided copies into a peer's memory
  send,    ///< `bytes` contiguous bytes at `offset` of `src` leave as a message to `peer` with `tag`
  recv,    ///< a message from `peer` with `tag` fills `bytes` bytes at `offset` of `dst`
  signal,  ///< everything earlier in this lane becomes visible, then the signal buffer `dst` (a peer's) advances
  wait,    ///< blocks the lane until this rank's signal buffer `src` has reached the command's value
  reduce,  ///< as `copy`, but combines elements of `dtype` with the destination's: dst = dst op src
};

/// What a buffer is for. `signal` buffers hold one monotonic 64-bit counter, written by one rank, read by its owner.
enum class Role : std::uint8_t { input, output, inout, scratch, signal };

std::string_view to_string(Verb verb);
std::string_view to_string(Role role);

/// Where a buffer's memory is, and who reaches it.
enum class Home : std::uint8_t {
  own,      ///< its rank's own memory, which no other rank maps
  shared,   ///< host memory that the ranks of the island map
  device,   ///< GPU memory; that of a link is mapped by the ranks that the GPU reaches
  stamped,  ///< GPU memory in lines, which say by themselves whether an epoch has written them (`kStampedLine`)
  pinned,   ///< its rank's own memory, for the processor and the GPU
};

/// A line of stamped memory has 32 words of 16 bytes, each of which a GPU stores and loads at once: 15 bytes of data
/// and a byte of the epoch's number. Every strided copy begins a line; plans count the bytes of data.
inline constexpr std::int64_t kStampedLine = 512;
inline constexpr std::int64_t kStampedData = 480;

/// What a link keeps a buffer for. The protocol follows from it: `put` has ready and arrived, `pull` available and
/// done, `eager` filled, credit and ring, `message` outgoing and incoming.
enum class Purpose : std::uint8_t {
  user,       ///< no link's: the user's memory, or what an algorithm keeps for itself; its name tells it apart
  ready,      ///< counter: the receiver no longer reads its halo
  arrived,    ///< counter: the sender has stored all
  available,  ///< counter: the source may be read
  done,       ///< counter: the source has been read
  filled,     ///< counter: a slice is in the ring
  credit,     ///< counter: a copy of the ring may be filled again
  ring,       ///< scratch at the receiver that the sender fills
  outgoing,   ///< scratch that messages leave from
  incoming,   ///< scratch that messages end in
};

std::string_view to_string(Home home);
std::string_view to_string(Purpose purpose);

/// A buffer that the plan touches: this rank's own or a peer's. In all plans together a buffer is identified by its
/// owner `rank` and by `name` if it is nobody's link, else by purpose, number of the link and writing rank.
/// A buffer with `ring` > 1 has that many copies, used in turn: epoch e (counted from 1) touches copy e % ring
/// (copies are counted so that this holds; a user's pair is counted from the copy shown at the first start).
/// That is how an alternating pair of fields and an eager staging ring look alike.
struct Buffer {
  std::string name;  ///< empty for what a link keeps
  std::int32_t rank = 0;
  Role role = Role::scratch;
  Home home = Home::own;
  Purpose purpose = Purpose::user;
  std::int32_t link = 0;     ///< number of the link among those from one rank to another
  std::int32_t writer = -1;  ///< a link's buffers: the rank that writes it; of `outgoing`: whom the message is for
  std::int64_t bytes = 0;    ///< of one copy
  std::int32_t ring = 1;
  std::int32_t per_epoch = 0;  ///< signal buffers: how far the counter advances in one epoch
  std::int32_t copies = 1;     ///< a user's pair that is not used in turn has 2: the copy shown at the start is used
  /// What names it for people: the name, or `arrived.0<1` (purpose, link, writer). Unique among a rank's buffers.
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
/// Signals count: a `signal` with index i in epoch e sets its counter to (e - 1) * per_epoch + i + 1, where inside a
/// loop i = index + c. A `wait` with that index blocks until the counter has reached what epoch e - lag sets it to. In
/// the first `lag` epochs a wait with `credit` is satisfied at once (the permission was granted beforehand); without
/// `credit` it waits for what epoch 1 sets (a peer must have started at least once before its memory is touched).
struct Command {
  Verb verb = Verb::copy;
  DType dtype = DType::none;    ///< reduce
  ReduceOp op = ReduceOp::sum;  ///< reduce: must be `defined` for `dtype`
  bool credit = false;    ///< wait: a permission granted beforehand, so that the first `lag` epochs need no signal
  std::int16_t path = 0;  ///< index into `Plan::paths`: who emitted it and knows how to carry it
  std::int32_t lane = 0;
  std::int32_t peer = -1;       ///< the other rank; -1 if there is none; a local copy may name whom it packs for
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

/// Post-condition: in every epoch, the bytes that `copies` name in `src` (as they were when its owner started) end up
/// in `dst`, which this rank owns, copied or (`dtype` != none) combined by `op`. All moves together write every byte of
/// `dst` that they name exactly once, except that several contributions to a reduction may meet: each of them is
/// combined exactly once, all with one type and operator. They are combined with what a copy of another expectation
/// brings to the byte, or else with what the owner's user put there before the start.
///
/// Where one of the expectations that name a byte is `in_order`, the contributions must stand in the order of the
/// plan's expectations when the reduction is written out from left to right, after the one that they are combined
/// with. Brackets are free: a ring and a tree can both be in order, with different roundings.
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

/// How a promised reduction was combined. With floats this is what its rounding depends on: ranks whose results must be
/// equal in every bit need equal `order`s.
struct ReductionOrder {
  std::int32_t rank = 0;    ///< who was promised it
  std::string buffer;       ///< where it ended
  std::int64_t offset = 0;  ///< of the first of its bytes that were combined so
  std::int64_t bytes = 0;   ///< combined so
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
///  * every send has its receive with equal bytes, every signal is awaited for and every wait is signalled;
///  * no deadlock: every lane ends; if not, the cycle of who waits for whom is named;
///  * every byte that an `Expect` names is written exactly once in an epoch and comes from where the expectation says;
///    or it gets exactly its contributions, each once, by way of any partial results, with one type and operator, cut
///    into elements at the same bytes; no other user byte is written;
///  * no hazard: two accesses to one byte, one of them a write, are ordered by happens-before, inside an epoch and
///    across epochs. Between epochs the owner's user is taken to read every output byte of the copies that the ring
///    gives to the epoch just ended, and to write every input byte of those that it gives to the one about to start.
///    Inputs are the bytes that expectations take or add to, outputs those in which they end.
///
/// A send blocks until its receive is reached, so that no plan depends on buffering; yet its end does not say that the
/// receive was reached, so that no plan depends on its absence either. Commands of one lane count as ordered.
/// Local. Problems are returned, at most about 20; throws `Error` only for negative `epochs`. Plans that are too large
/// to follow (more than 2^26 units moved, a unit being what divides all sizes and offsets) are a problem as well.
VerifyReport verify(std::span<const Plan> plans, int epochs = 0);

}  // namespace tasuki
