// Paths `peer:put` and `peer:eager`: the shapes of shapes.hpp between GPUs that reach each other. The stores are made
// by the kernel of engine `stream`; rings and counters are in the GPU memory of the rank that waits for them.
#include "paths/shapes.hpp"
#include "topology/gpu_memory.hpp"

namespace tasuki {
namespace {

// What both have in common: whom they reach.
template <class Shape>
class Peer : public Shape {
 public:
  template <class... Args>
  Peer(const Runtime& runtime, const Profile& profile, Args... args)
      : Shape(Home::device, args...), runtime_(runtime), profile_(profile) {}
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
    const std::string& why = runtime_.gpus->why_not(peer);
    return why.empty() ? priced(profile_, this->name(), move) : Offer::no(why);
  }

 private:
  const Runtime& runtime_;
  const Profile& profile_;
};

class PeerPut final : public Peer<PutPath> {
 public:
  PeerPut(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile) {}
  std::string name() const override { return "peer:put"; }
  Offer offer(const Move& move, const Place&, const Place& dst) const override {
    if (move.add != DType::none) return Offer::no("a put cannot add");
    if (move.src_rank != move.dst_rank && dst.gpu[0].valid == 0) {
      return Offer::no("destination is GPU memory that cannot be shared");
    }
    return reach(move);
  }
};

// The kernel's receivers are as fast as its senders: slices only cost signals.
constexpr std::int64_t kSlice = std::int64_t{1} << 40;

class PeerEager final : public Peer<EagerPath> {
 public:
  PeerEager(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, kSlice) {}
  std::string name() const override { return "peer:eager"; }
  Offer offer(const Move& move, const Place&, const Place&) const override { return reach(move); }
};

const PathRegistration put{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<PeerPut>(runtime, profile);
}};
const PathRegistration eager{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<PeerEager>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
