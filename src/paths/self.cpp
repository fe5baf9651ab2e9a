// Path `self`: source and destination belong to the same rank (a periodic dimension that is not split).
//
//   receiver's lane:  copy (or reduce) ...        the sender's lane is the same rank's and empty
#include "paths/path.hpp"

namespace tasuki {
namespace {

class Self final : public Path {
 public:
  explicit Self(const Profile& profile) : profile_(profile) {}
  std::string name() const override { return "self"; }
  int preference() const override { return 0; }
  bool serves(Memory src, Memory dst) const override { return src == dst; }
  bool joins(const Topology&, int a, int b) const override { return a == b; }

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
  const Profile& profile_;
};

const PathRegistration registration{
    [](Runtime&, const Profile& profile) -> std::unique_ptr<Path> { return std::make_unique<Self>(profile); }};

}  // namespace
}  // namespace tasuki
