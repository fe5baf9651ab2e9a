// Paths `peer:put`, `peer:eager` and `peer:stamped`: the shapes of shapes.hpp between GPUs that reach each other. The
// stores are made by the kernel of engine `stream`; rings and counters are in the GPU memory of the rank that waits for
// them.
#include <algorithm>

#include "engines/gpu/task.hpp"
#include "paths/peer.hpp"

namespace tasuki {
namespace {

class PeerPut final : public Peer<PutPath> {
 public:
  PeerPut(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::device) {}
  std::string name() const override { return "peer:put"; }
  Offer offer(const Move& move, const Place&, const Place& dst) const override { return into(move, dst); }
};

// The kernel's receivers are as fast as its senders: slices only cost signals.
constexpr std::int64_t kSlice = std::int64_t{1} << 40;

class PeerEager final : public Peer<EagerPath> {
 public:
  PeerEager(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::device, kSlice) {}
  std::string name() const override { return "peer:eager"; }
  Offer offer(const Move& move, const Place&, const Place&) const override { return two_passes(move); }
};

// For small messages: every 15 bytes travel with a byte of the epoch's number beside them, so nobody waits for stores
// to be seen before a signal, at the price of a pass over the ring.
class PeerStamped final : public Peer<EagerPath> {
 public:
  PeerStamped(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::stamped, kSlice) {}
  std::string name() const override { return "peer:stamped"; }
  // As a put: no staging that takes a signal, so of the two the cheaper one.
  int preference() const override { return 0; }
  Offer offer(const Move& move, const Place& src, const Place& dst) const override {
    const bool adds_less = move.add != DType::none && size_of(move.add) < 4;
    if (adds_less || !in_words(move, src, dst)) return Offer::no("stamped lines hold words of 4 bytes");
    const auto fits = [&](const StridedCopy& copy) { return fits_lines(copy, move.add != DType::none); };
    if (!std::all_of(move.copies.begin(), move.copies.end(), fits)) return Offer::no("too large for stamped lines");
    return two_passes(move);
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
