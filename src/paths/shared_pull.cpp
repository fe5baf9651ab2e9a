// Path `shared:pull`: the receiver loads straight from the sender's memory, one pass; the only one-pass form that can
// add. The source must lie in memory that the ranks of the host share.
//
//   sender's lane:    signal avail                       wait done
//   receiver's lane:  wait avail     copy (reduce) ...   signal done
#include "paths/path.hpp"

namespace tasuki {
namespace {

class SharedPull final : public Path {
 public:
  SharedPull(const Runtime& runtime, const Profile& profile) : topology_(runtime.topology()), profile_(profile) {}
  std::string name() const override { return "shared:pull"; }
  int preference() const override { return 1; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && topology.same_island(a, b); }
  std::string resource() const override { return "peer core"; }

  Offer offer(const Move& move, const Place& src, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    if (!src.shared[0].valid()) return Offer::no("source is not in shared memory");
    return priced_in_place(profile_, name(), move);
  }

  void send(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("avail", builder.rank()), link.peer));
  }

  void close_send(Builder& builder, Link& link) const override {
    builder.wait(link.peer, builder.counter(link.name("done", link.peer), builder.rank()));
  }

  void recv(Builder& builder, Link& link) const override {
    builder.wait(link.peer, builder.counter(link.name("avail", link.peer), builder.rank()));
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      link.commands.push_back(deliver(builder, link, i, link.src[i], link.moves[i]->copies, builder.user_step()));
    }
  }

  void close_recv(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("done", builder.rank()), link.peer));
  }

 private:
  const Topology& topology_;
  const Profile& profile_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<SharedPull>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
