// The shapes that paths share, whatever memory they work on: a put straight into the destination, an eager put into a
// ring at the receiver, which unpacks, and messages through somebody else's library.
#pragma once

#include "paths/path.hpp"

namespace tasuki {

/// The sender stores straight into the receiver's memory, one pass from scattered source to scattered destination.
///
///   sender's lane:    wait ready    put ...  signal arrived
///   receiver's lane:  signal ready           wait arrived
class PutPath : public Path {
 public:
  explicit PutPath(Home counters) : counters_(counters) {}
  int preference() const override { return 0; }

  void open_send(Builder& builder, Link& link) const override;
  void send(Builder& builder, Link& link) const override;
  void open_recv(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;

 private:
  Home counters_;
};

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

/// The sender packs into a ring at the receiver, which unpacks. Two passes, but only packed lines travel, the sender
/// does not wait for the receiver to start, and any memory will do: for small or scattered pieces and for memory that
/// nobody shares. Links that go one way are handed over in slices if they are large or touch many cache lines, so that
/// the receiver unpacks one while the sender packs the next; where both send, both are busy packing meanwhile. But what
/// both send of so many cache lines that a core's own caches cannot hold them goes in slices too, part of each move:
/// what arrives belongs into lines that have just been packed from.
///
///   sender's lane:    wait credit   { put ... signal filled } a slice
///   receiver's lane:  { wait filled   copy (reduce) ... } a slice   signal credit
///
/// The credit is granted for a ring's length of epochs beforehand. In GPU memory it comes with the next epoch: a kernel
/// that has unpacked would have to wait until all has been seen before it tells, one that begins has not. Where both
/// send, there is none: what came from the peer in the last epoch says that it has unpacked those before, and a ring
/// has at least two copies.
///
/// In a ring of kind `Home::stamped` every 16 bytes tell by themselves whether they have arrived: no signal, nothing to
/// order.
class EagerPath : public Path {
 public:
  /// `slice`: the smallest that is worth its own signal, in bytes. The ring is in memory of the kind `home`.
  EagerPath(Home home, std::int64_t slice) : home_(home), slice_(slice) {}

  void open_send(Builder& builder, Link& link) const override;
  void send(Builder& builder, Link& link) const override;
  void open_recv(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;
  void close_recv(Builder& builder, Link& link) const override;

 private:
  std::vector<Slice> handed_over(const Link& link, std::int64_t rounds) const;
  std::int64_t grain() const;  // at multiples of which a copy begins in the ring
  int ring(Builder& builder, const Link& link, int receiver) const;
  int counter(Builder& builder, const Link& link, const char* what, int writer, int owner, Home home) const;
  int filled(Builder& builder, const Link& link, int writer, int owner) const;
  int credit(Builder& builder, const Link& link, int writer, int owner) const;
  void grant(Builder& builder, const Link& link) const;
  bool credit_comes_late() const { return home_ == Home::device || home_ == Home::stamped; }

  Home home_;
  std::int64_t slice_;
};

/// The link's moves, in order, as slices of at most `most` bytes (at least 64, at multiples of which blocks are cut).
/// Both ranks cut alike.
std::vector<Slice> slices(const Link& link, std::int64_t most);

/// Packed contiguous messages. A link whose bytes already lie together on a side is sent or received there without
/// packing, if the memory is what messages may lie in (`Home::own`, the user's). A link larger than a slice goes as
/// several messages, each with a place of its own in the staging, so that one travels while the next is packed and the
/// last unpacked. They have one tag, and are started in the order of the lane on both sides.
///
///   sender's lane:    { copy (pack) ...   send } a slice
///   receiver's lane:  { recv              copy (unpack, reduce) ... } a slice
class MessagePath : public Path {
 public:
  /// Staging is in memory of the kind `home`.
  explicit MessagePath(Home home) : home_(home) {}
  int preference() const override { return 3; }

  void send(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;

 protected:
  /// The largest message, in bytes, for what a link sends at once: `bytes`.
  virtual std::int64_t slice_of(std::int64_t bytes) const { return bytes; }

 private:
  bool as_it_is(const Link& link) const;

  Home home_;
};

}  // namespace tasuki
