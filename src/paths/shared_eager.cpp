// Path `shared:eager`: the sender packs into a ring at the receiver, which unpacks (shapes.hpp has the commands). Any
// memory will do on both sides.
#include "paths/shapes.hpp"

namespace tasuki {
namespace {

class SharedEager final : public EagerPath {
 public:
  SharedEager(const Runtime& runtime, const Profile& profile)
      : EagerPath(Home::shared, 4 << 10), topology_(runtime.topology()), profile_(profile) {}
  std::string name() const override { return "shared:eager"; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && topology.same_island(a, b); }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    return priced(profile_, name(), move);
  }

 private:
  const Topology& topology_;
  const Profile& profile_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<SharedEager>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
