// Path `shared:eager`: the sender packs into a ring of two at the receiver, which unpacks. Two passes, but the sender
// never waits for the receiver to start, and any memory will do: for small pieces and for memory that nobody shares.
//
//   sender's lane:    wait credit (granted for two epochs beforehand)   put ...   signal filled
//   receiver's lane:  wait filled   copy (reduce) ...                   signal credit
#include "paths/path.hpp"

namespace tasuki {
namespace {

constexpr int kRing = 2;

class SharedEager final : public Path {
 public:
  SharedEager(const Runtime& runtime, const Profile& profile) : topology_(runtime.topology()), profile_(profile) {}
  std::string name() const override { return "shared:eager"; }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    return priced(profile_, name(), move);
  }

  void open_send(Builder& builder, Link& link) const override {
    link.scratch = ring(builder, link, link.peer);
    builder.wait(link.peer, builder.counter(link.name("credit", link.peer), builder.rank()), kRing, true);
  }

  void send(Builder& builder, Link& link) const override {
    std::int64_t offset = link.filled;
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      const auto copies = pack_side(link.moves[i]->copies, offset);
      builder.put(link.peer, link.src[i], link.scratch, copies, builder.user_step(),
                  builder.rounds() > 1 ? link.bytes() : 0);
      offset += link.moves[i]->bytes();
    }
    builder.signal(link.peer, builder.counter(link.name("filled", builder.rank()), link.peer));
  }

  void open_recv(Builder& builder, Link& link) const override { link.scratch = ring(builder, link, builder.rank()); }

  void recv(Builder& builder, Link& link) const override {
    builder.wait(link.peer, builder.counter(link.name("filled", link.peer), builder.rank()));
    std::int64_t offset = link.filled;
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      const auto copies = unpack_side(link.moves[i]->copies, offset);
      link.commands.push_back(deliver(builder, link, i, link.scratch, copies, builder.rounds() > 1 ? link.bytes() : 0));
      offset += link.moves[i]->bytes();
    }
  }

  void close_recv(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("credit", builder.rank()), link.peer));
  }

 private:
  static int ring(Builder& builder, const Link& link, int receiver) {
    const int sender = receiver == link.peer ? builder.rank() : link.peer;
    return builder.buffer(link.name("eager", sender), receiver, Role::scratch, link.capacity, kRing, true);
  }

  const Topology& topology_;
  const Profile& profile_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<SharedEager>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
