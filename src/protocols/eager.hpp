// Protocol `eager`: the sender packs into a ring at the receiver, which unpacks. That is two passes, but only packed
// cache lines travel, the sender does not wait for the receiver to start, and any memory will do. It suits small or
// scattered pieces, and memory that nobody shares.
//
//   sender's lane:    wait credit   { put ... signal filled } for each slice
//   receiver's lane:  { wait filled   copy (reduce) ... } for each slice   signal credit
//
// Slices, one way. A link of which only one rank sends is handed over in slices if it is large or touches many cache
// lines: the receiver unpacks one slice while the sender packs the next. Large moves are cut for that.
//
// Slices, both ways. If both ranks send, both are busy packing, and there is one slice. The exception: both send from
// more cache lines than a core's own caches hold. Then each slice has a part of every large move. What arrives goes
// into lines from which the rank has just packed, and they are still in the cache when the slice is unpacked.
//
// Slots. A large link has a ring of a few slots, whatever its size: memory that is new takes long to get, and a ring
// that stays in the cache of the processor is faster than one that does not. Its slices use the slots in turn, and the
// receiver gives credit for each. So a sender that is ahead waits inside an epoch; it is as far ahead as the slots are
// many. One way the slots are smaller: the receiver begins to unpack when the first one is full.
// Runs shorter than a cache line, and very many chunks, have a ring of whole epochs, unless a limit for scratch forbids
// it.
//
//   sender's lane:    { wait credit   put ...   signal filled } for each slice
//   receiver's lane:  { wait filled   copy (reduce) ...   signal credit } for each slice
//
// Turns. Two large moves of short blocks that are of one shape, such as the two faces of the contiguous dimension, take
// turns in the ring, block by block: `fused` then makes pairs of them, which touch each cache line once.
//
// Credit. At the start the sender has credit for as many epochs as the ring holds. In GPU memory the receiver gives
// credit when its next epoch begins. At its end a kernel would first have to wait until all its stores are visible; a
// kernel that begins need not wait. If both ranks send there is no credit: what arrived from the peer in the last epoch
// says that the peer has unpacked all earlier epochs, and a ring holds at least two.
//
// LL. In a ring of kind `Home::ll` every 16 bytes show by their flag, a byte of the epoch's number, whether they have
// arrived. The counter `filled` is in the plan, for the verifier, but has no memory: a wait for it ends when the flags
// have arrived.
#pragma once

#include "protocols/protocol.hpp"

namespace tasuki {

class EagerProtocol final : public Protocol {
 public:
  /// The ring is in memory of the kind `home`. `in_slices`: links that go one way may be cut, because sender and
  /// receiver are different cores. Blocks of a GPU unpack as fast as they pack, so there slices would only cost
  /// signals.
  EagerProtocol(Home home, bool in_slices) : home_(home), in_slices_(in_slices) {}

  void open_send(Builder& builder, Link& link) const override;
  void send(Builder& builder, Link& link) const override;
  void close_send(Builder& builder, Link& link) const override;
  void open_recv(Builder& builder, Link& link) const override;
  void recv(Builder& builder, Link& link) const override;
  void close_recv(Builder& builder, Link& link) const override;
  std::int64_t least_scratch(const Move& move, const Constants& constants) const override;
  /// Strided copies begin at multiples of this in the ring.
  std::int64_t grain() const override { return home_ == Home::ll ? kLLLineData : 1; }

 private:
  std::vector<Slice> handed_over(const Link& link, std::int64_t rounds) const;
  void open(Builder& builder, Link& link, int receiver) const;
  std::int64_t slot_of(const Link& link) const;
  void await_slot(Builder& builder, Link& link) const;
  int filled(Builder& builder, const Link& link, int writer, int owner) const;
  int credit(Builder& builder, const Link& link, int writer, int owner) const;
  void grant(Builder& builder, const Link& link) const;
  /// Whether the receiver gives credit once an epoch.
  bool credit_by_epochs(const Link& link) const { return !link.mutual && link.slot == 0; }
  bool credit_comes_late() const { return home_ == Home::device || home_ == Home::ll; }

  Home home_;
  bool in_slices_;
};

}  // namespace tasuki
