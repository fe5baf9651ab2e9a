// What the paths between GPUs that reach each other have in common: whom they reach.
#pragma once

#include "paths/shapes.hpp"
#include "session/gpus.hpp"

namespace tasuki {

/// A shape of shapes.hpp between GPUs that can map each other's memory.
template <class Shape>
class Peer : public Shape {
 public:
  template <class... Args>
  Peer(const Runtime& runtime, const Profile& profile, Args... args)
      : Shape(args...), runtime_(runtime), profile_(profile) {}
  Memory memory() const override { return Memory::device; }
  std::string resource() const override { return "links of the GPU"; }
  bool latencies_overlap() const override { return true; }
  bool joins(const Topology&, int a, int b) const override {
    return a != b && runtime_.gpus && runtime_.gpus->reach(a, b);
  }

 protected:
  Offer reach(const Move& move) const {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    const int peer = move.src_rank == runtime_.rank() ? move.dst_rank : move.src_rank;
    const std::string why = runtime_.gpus->why_not(peer);
    return why.empty() ? priced(profile_, this->name(), move) : Offer::no(why);
  }
  /// The same for what takes a second pass at the receiver. Where that sends as well, and copies within its GPU, the
  /// pass costs more than was measured without: as if a third of the GPU made it.
  Offer two_passes(const Move& move) const {
    Offer offer = reach(move);
    if (offer.usable && move.mutual) {
      offer.seconds +=
          3 * static_cast<double>(move.bytes()) / profile_.get("self:gpu", "bulk_bandwidth", kCopyBandwidth);
    }
    return offer;
  }
  /// The same for what goes straight into the destination.
  Offer into(const Move& move, const Place& dst) const {
    if (move.add != DType::none) return Offer::no("a put cannot add");
    if (move.src_rank != move.dst_rank && dst.gpu[0].valid == 0) {
      return Offer::no("destination is GPU memory that cannot be shared");
    }
    return reach(move);
  }

 private:
  static constexpr double kCopyBandwidth = 1e12;  // B/s within a GPU, where it was not measured
  const Runtime& runtime_;
  const Profile& profile_;
};

}  // namespace tasuki
