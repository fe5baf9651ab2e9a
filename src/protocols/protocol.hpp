// Protocol: which commands the two ranks of a link run. What they cost and who carries the bytes is the path's
// (paths/path.hpp).
//
// Moves in one direction between two ranks that take the same path form a link. Six functions emit its commands, always
// called in this order:
//
//   sender's lane:    open_send    send (once, or once a round of a chunk loop)    close_send
//   receiver's lane:  open_recv    recv (likewise)                                close_recv
#pragma once

#include "plan/builder.hpp"
#include "protocols/move.hpp"

namespace tasuki {

class Protocol {
 public:
  virtual ~Protocol() = default;
  /// What a round of a link packs begins at a multiple of this in the link's scratch.
  virtual std::int64_t grain() const { return 1; }
  /// Bytes of scratch that a link with this move needs at either end, whatever its limit is.
  virtual std::int64_t least_scratch(const Move&, const Constants&) const { return 0; }
  virtual void open_send(Builder&, Link&) const {}
  virtual void send(Builder&, Link&) const = 0;
  virtual void close_send(Builder&, Link&) const {}
  virtual void open_recv(Builder&, Link&) const {}
  virtual void recv(Builder&, Link&) const = 0;
  virtual void close_recv(Builder&, Link&) const {}
};

/// The same strided copies with one side packed: consecutive bytes from `offset` on. With a `grain`, each strided copy
/// begins at the next multiple of it. With a `pitch`, its blocks are so many bytes apart instead of following each
/// other.
std::vector<StridedCopy> pack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain = 1,
                                   std::int64_t pitch = 0);
std::vector<StridedCopy> unpack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain = 1,
                                     std::int64_t pitch = 0);
/// Emits the command that moves move `move` of the link from plan buffer `source` to its destination: a copy, or a
/// reduction.
int deliver(Builder& builder, const Link& link, std::size_t move, int source, std::span<const StridedCopy> copies,
            std::int64_t source_step);

/// What a link hands over at once: consecutive bytes of all that it packs.
struct Slice {
  struct Part {
    std::size_t move = 0;
    std::int64_t begin = 0;  ///< among the link's packed bytes
    std::vector<StridedCopy> copies;
    std::int64_t pitch = 0;  ///< bytes from one packed block to the next; 0: they follow each other
  };
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  std::vector<Part> parts;
};

/// Bytes of a slot where a link has at most `most` bytes of scratch: two slots if they fit, so that one is filled while
/// the other is emptied.
std::int64_t slot_within(std::int64_t most);

/// Slots of the link's scratch, as many as are of use and allowed.
std::int64_t slots(const Link& link);
/// Where the bytes of the next slice are in the link's scratch, less where they are among what it packs in the round.
std::int64_t place(Link& link, const Slice& slice);

/// The link's moves, in order, as slices of at most `most` bytes (at least 64; blocks are cut at multiples of 64). Both
/// ranks get the same slices.
std::vector<Slice> slices(const Link& link, std::int64_t most);

}  // namespace tasuki
