// Paths `peer:put`, `peer:eager` and `peer:stamped`: the shapes of shapes.hpp between GPUs that reach each other. The
// stores are made by the kernel of engine `stream`; rings and counters are in the GPU memory of the rank that waits for
// them.
#include <algorithm>

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
    const std::string& why = runtime_.gpus->why_not(peer);
    return why.empty() ? priced(profile_, this->name(), move) : Offer::no(why);
  }

 private:
  const Runtime& runtime_;
  const Profile& profile_;
};

class PeerPut final : public Peer<PutPath> {
 public:
  PeerPut(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::device) {}
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
  PeerEager(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::device, kSlice) {}
  std::string name() const override { return "peer:eager"; }
  Offer offer(const Move& move, const Place&, const Place&) const override { return reach(move); }
};

// For small messages: every 4 bytes travel with the epoch's number beside them, so nobody waits for stores to be seen
// before a signal, at the price of twice the bytes.
class PeerStamped final : public Peer<EagerPath> {
 public:
  PeerStamped(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::stamped, kSlice) {}
  std::string name() const override { return "peer:stamped"; }
  Offer offer(const Move& move, const Place& src, const Place& dst) const override {
    if (move.add != DType::none && size_of(move.add) < 4) return Offer::no("stamps stand beside words of 4 bytes");
    return in_words(move, src, dst) ? reach(move) : Offer::no("stamps stand beside words of 4 bytes");
  }

 private:
  static bool in_words(const Move& move, const Place& src, const Place& dst) {
    const auto whole = [](std::int64_t value) { return value % 4 == 0; };
    const auto aligned = [](std::uint64_t address) { return address % 4 == 0; };
    return std::all_of(src.address.begin(), src.address.end(), aligned) &&
           std::all_of(dst.address.begin(), dst.address.end(), aligned) &&
           std::all_of(move.copies.begin(), move.copies.end(), [&](const StridedCopy& copy) {
             return whole(copy.src_offset) && whole(copy.dst_offset) && whole(copy.block) &&
                    std::all_of(copy.dims.begin(), copy.dims.begin() + copy.ndims,
                                [&](const auto& dim) { return whole(dim.src_stride) && whole(dim.dst_stride); });
           });
  }
};

const PathRegistration put{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<PeerPut>(runtime, profile);
}};
const PathRegistration eager{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<PeerEager>(runtime, profile);
}};

const PathRegistration stamped{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<PeerStamped>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
