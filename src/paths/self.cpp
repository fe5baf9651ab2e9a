// Paths `self` and, in GPU memory, `self:gpu`: source and destination belong to the same rank (a periodic dimension
// that is not split).
//
//   receiver's lane:  copy (or reduce) ...        the sender's lane is the same rank's and empty
#include "paths/path.hpp"

namespace tasuki {
namespace {

class Self final : public Path {
 public:
  Self(Memory memory, const Runtime& runtime, const Profile& profile)
      : memory_(memory), runtime_(runtime), profile_(profile) {}
  std::string name() const override { return memory_ == Memory::host ? "self" : "self:gpu"; }
  Memory memory() const override { return memory_; }
  std::string resource() const override { return memory_ == Memory::host ? "core" : "GPU"; }
  int preference() const override { return 0; }
  bool joins(const Topology&, int a, int b) const override {
    return a == b && (memory_ == Memory::host || runtime_.gpus);
  }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank != move.dst_rank) return Offer::no("another rank");
    Offer offer = priced(profile_, name(), move);
    offer.latency = 0;
    return offer;
  }

  void send(Builder&, Link&) const override {}

  void recv(Builder& builder, Link& link) const override {
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      link.commands.push_back(deliver(builder, link, i, link.src[i], link.moves[i]->copies, builder.user_step()));
    }
  }

 private:
  Memory memory_;
  const Runtime& runtime_;
  const Profile& profile_;
};

const PathRegistration on_host{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<Self>(Memory::host, runtime, profile);
}};
const PathRegistration on_gpu{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<Self>(Memory::device, runtime, profile);
}};

}  // namespace
}  // namespace tasuki
