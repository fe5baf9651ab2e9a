// Path `shared:eager`: the sender packs into a ring at the receiver, which unpacks. Two passes, but only packed cache
// lines go from core to core, the sender does not wait for the receiver to start, and any memory will do: for small or
// scattered pieces and for memory that nobody shares. Large links that go one way are handed over in slices, so that
// the receiver unpacks one while the sender packs the next; where both send, both are busy packing meanwhile.
//
//   sender's lane:    wait credit   { put ... signal filled } a slice
//   receiver's lane:  { wait filled   copy (reduce) ... } a slice   signal credit
//
// The credit is granted for a ring's length of epochs beforehand.
#include "paths/path.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kSlice = 4 << 10;  // smallest slice worth its own signal
constexpr std::int64_t kSmall = 4 << 10;  // links up to here get the longer ring

// A longer ring lets the sender of small messages run further ahead; the counters are then looked at less often too.
int ring_length(const Link& link) {
  return link.capacity <= kSmall ? 8 : 2;
}

class SharedEager final : public Path {
 public:
  SharedEager(const Runtime& runtime, const Profile& profile) : topology_(runtime.topology()), profile_(profile) {}
  std::string name() const override { return "shared:eager"; }
  bool joins(const Topology& topology, int a, int b) const override { return a != b && topology.same_island(a, b); }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!topology_.same_island(move.src_rank, move.dst_rank)) return Offer::no("another island");
    return priced(profile_, name(), move);
  }

  void open_send(Builder& builder, Link& link) const override {
    link.scratch = ring(builder, link, link.peer);
    builder.wait(link.peer, builder.counter(link.name("credit", link.peer), builder.rank()), ring_length(link), true);
  }

  void send(Builder& builder, Link& link) const override {
    std::int64_t offset = link.filled;
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      const auto copies = pack_side(link.moves[i]->copies, offset);
      builder.put(link.peer, link.src[i], link.scratch, copies, builder.user_step(),
                  builder.rounds() > 1 ? link.bytes() : 0);
      offset += link.moves[i]->bytes();
      if (slice_ends(link, i))
        builder.signal(link.peer, builder.counter(link.name("filled", builder.rank()), link.peer));
    }
  }

  void open_recv(Builder& builder, Link& link) const override { link.scratch = ring(builder, link, builder.rank()); }

  void recv(Builder& builder, Link& link) const override {
    std::int64_t offset = link.filled;
    for (std::size_t i = 0; i < link.moves.size(); ++i) {
      if (i == 0 || slice_ends(link, i - 1)) {
        builder.wait(link.peer, builder.counter(link.name("filled", link.peer), builder.rank()));
      }
      const auto copies = unpack_side(link.moves[i]->copies, offset);
      link.commands.push_back(deliver(builder, link, i, link.scratch, copies, builder.rounds() > 1 ? link.bytes() : 0));
      offset += link.moves[i]->bytes();
    }
  }

  void close_recv(Builder& builder, Link& link) const override {
    builder.signal(link.peer, builder.counter(link.name("credit", builder.rank()), link.peer));
  }

 private:
  // A slice ends with a move that fills it, and with the last one.
  static bool slice_ends(const Link& link, std::size_t move) {
    if (move + 1 == link.moves.size()) return true;
    if (link.mutual) return false;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i <= move; ++i) {
      bytes += link.moves[i]->bytes();
      if (bytes < kSlice) continue;
      if (i == move) return true;
      bytes = 0;
    }
    return false;
  }

  static int ring(Builder& builder, const Link& link, int receiver) {
    const int sender = receiver == link.peer ? builder.rank() : link.peer;
    return builder.buffer(link.name("eager", sender), receiver, Role::scratch, link.capacity, ring_length(link), true);
  }

  const Topology& topology_;
  const Profile& profile_;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<SharedEager>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
