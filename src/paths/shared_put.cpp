// Path `shared:put`: the sender stores straight into the receiver's memory, one pass from scattered source to scattered
// destination. The destination must lie in memory that the ranks of the host share.
//
//   sender's lane:    wait ready    put ...  signal arrived
//   receiver's lane:  signal ready           wait arrived
#include "paths/path.hpp"

namespace tasuki {
namespace {

class SharedPut final : public Path {
 public:
  SharedPut(const Runtime& runtime, const Profile& profile) : topology_(runtime.topology()), profile_(profile) {}
  std::string name() const override { return "shared:put"; }
  int preference() const override { return 0; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && topology.same_island(a, b); }

  Offer offer(const Move& move, const Place&, const Place& dst) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    if (!dst.shared[0].valid()) return Offer::no("destination is not in shared memory");
    if (move.add != DType::none) return Offer::no("a put cannot add");
    return priced(profile_, name(), move);
  }

  void open_send(Builder& builder, Link& link) const override {
    // In alternation the permission for this copy came with the peer's last start, so the wait finds it there.
    builder.wait(link.peer, builder.counter(link.name("ready", link.peer), builder.rank()), link.alternating ? 1 : 0);
  }

  void send(Builder& builder, Link& link) const override {
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      builder.put(link.peer, link.src[i], link.dst[i], link.moves[i]->copies, builder.user_step(), builder.user_step());
    }
    builder.signal(link.peer, builder.counter(link.name("arrived", builder.rank()), link.peer));
  }

  void open_recv(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("ready", builder.rank()), link.peer));
  }

  void recv(Builder& builder, Link& link) const override {
    const int wait = builder.wait(link.peer, builder.counter(link.name("arrived", link.peer), builder.rank()));
    link.commands.assign(link.moves.size(), wait);
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
