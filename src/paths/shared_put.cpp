// Path `shared:put`: the sender stores straight into the receiver's memory (shapes.hpp has the commands). The
// destination must lie in memory that the ranks of the host share.
#include "paths/shapes.hpp"

namespace tasuki {
namespace {

class SharedPut final : public PutPath {
 public:
  SharedPut(const Runtime& runtime, const Profile& profile)
      : PutPath(Home::shared), topology_(runtime.topology()), profile_(profile) {}
  std::string name() const override { return "shared:put"; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && topology.same_island(a, b); }

  Offer offer(const Move& move, const Place&, const Place& dst) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    if (!dst.shared[0].valid()) return Offer::no("destination is not in shared memory");
    if (move.add != DType::none) return Offer::no("a put cannot add");
    return priced_in_place(profile_, name(), move);
  }

 private:
  const Topology& topology_;
  const Profile& profile_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<SharedPut>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
