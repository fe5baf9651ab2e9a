// Protocol `eager`: the sender packs into a ring at the receiver, which unpacks. Two passes, but only packed lines
// travel, the sender does not wait for the receiver to start, and any memory will do: for small or scattered pieces and
// for memory that nobody shares.
//
//   sender's lane:    wait credit   { put ... signal filled } a slice
//   receiver's lane:  { wait filled   copy (reduce) ... } a slice   signal credit
//
// Slices. A link that goes one way is handed over in slices if it is large or touches many cache lines, so that the
// receiver unpacks one slice while the sender packs the next. Where both ranks send, both are busy packing, so there is
// one slice. The exception: both send from so many cache lines that a core's own caches cannot hold them. Then each
// slice holds a part of every move, because what arrives belongs into lines that have just been packed from.
//
// Credit. The receiver grants it a ring's length of epochs beforehand. In GPU memory the grant comes with the
// receiver's next epoch: a kernel that has unpacked would have to wait until all its stores are visible before it
// tells, and a kernel that begins need not. Where both ranks send there is no credit: what came from the peer in the
// last epoch says that it has unpacked those before, and a ring has at least two copies.
//
// Stamped. In a ring of kind `Home::stamped` every 16 bytes tell by themselves whether they have arrived. The counter
// `filled` is then in the plan, for the verifier, but has no memory: a wait for it ends when the stamps have come.
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class EagerProtocol final : public Protocol {
 public:
  /// The ring is in memory of the kind `home`. `in_slices`: one-way links may be cut, because sender and receiver are
  /// different cores. A GPU's receiving blocks are as fast as its sending ones, so slices would only cost signals.
  EagerProtocol(Home home, bool in_slices) : home_(home), in_slices_(in_slices) {}

  void open_send(Builder& builder, Link& link) const override;
  void send(Builder& builder, Link& link) const override;
  void open_recv(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;
  void close_recv(Builder& builder, Link& link) const override;

 private:
  std::vector<Slice> handed_over(const Link& link, std::int64_t rounds) const;
  std::int64_t grain() const {
    return home_ == Home::stamped ? kStampedData : 1;
  }  // at multiples of which copies begin
  int ring(Builder& builder, const Link& link, int receiver) const;
  int filled(Builder& builder, const Link& link, int writer, int owner) const;
  int credit(Builder& builder, const Link& link, int writer, int owner) const;
  void grant(Builder& builder, const Link& link) const;
  bool credit_comes_late() const { return home_ == Home::device || home_ == Home::stamped; }

  Home home_;
  bool in_slices_;
};

}  // namespace tasuki
