// Protocol: how two ranks order the moves of a link: which commands each of them runs. Emission only: what it costs and
// who carries the bytes is said elsewhere (paths/path.hpp).
//
// Pieces that take the same path between the same two ranks form a link. Its commands come from the six functions,
// always called in this order:
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
  virtual void open_send(Builder&, Link&) const {}
  virtual void send(Builder&, Link&) const = 0;
  virtual void close_send(Builder&, Link&) const {}
  virtual void open_recv(Builder&, Link&) const {}
  virtual void recv(Builder&, Link&) const = 0;
  virtual void close_recv(Builder&, Link&) const {}
};

/// The same strided copies with one side packed: consecutive bytes from `offset` on, or, with a `grain`, each copy from
/// the next multiple of it on.
std::vector<StridedCopy> pack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain = 1);
std::vector<StridedCopy> unpack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain = 1);
/// Emits what takes move `move` of the link from plan buffer `source` to its destination: a copy, or a reduction.
int deliver(Builder& builder, const Link& link, std::size_t move, int source, std::span<const StridedCopy> copies,
            std::int64_t source_step);

/// What is handed over at once of a link: consecutive bytes of all that the link packs.
struct Slice {
  struct Part {
    std::size_t move = 0;
    std::int64_t begin = 0;  ///< among the link's packed bytes
    std::vector<StridedCopy> copies;
  };
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  std::vector<Part> parts;
};

/// The link's moves, in order, as slices of at most `most` bytes (at least 64, at multiples of which blocks are cut).
/// Both ranks cut alike.
std::vector<Slice> slices(const Link& link, std::int64_t most);

}  // namespace tasuki
