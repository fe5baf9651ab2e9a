// Path `peer:ll`: as `peer:eager`, but every 15 bytes travel with a byte that has the epoch's number. So no signal
// has to wait until stores are visible. It costs a second pass, as `peer:eager` does: so it suits small messages, and
// contiguous ones of some MiB, whose lines are taken, or added up, as they arrive.
#include <algorithm>
#include <cstdlib>

#include "layout/cut.hpp"
#include "paths/peer.hpp"
#include "protocols/eager.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kWord = 4;                           // bytes; LL lines are filled by words of this size
constexpr std::int64_t kMostWords = std::int64_t{1} << 30;  // words of a strided copy that the kernel can count
constexpr std::int64_t kMostExtent = 0x7fffffff;            // in words

bool in_words(const Question& q) {
  const auto whole = [](std::int64_t value) { return value % kWord == 0; };
  const auto all_whole = [&](const OffsetList& list) {
    for (std::int64_t i = 0; i < list.size(); ++i)
      if (!whole(list[i])) return false;
    return true;
  };
  return q.src.alignment % kWord == 0 && q.dst.alignment % kWord == 0 &&
         std::all_of(q.move.copies.begin(), q.move.copies.end(), [&](const StridedCopy& copy) {
           return whole(copy.src_offset) && whole(copy.dst_offset) && whole(copy.block) && all_whole(copy.src_list) &&
                  all_whole(copy.dst_list) &&
                  std::all_of(copy.dims.begin(), copy.dims.begin() + copy.ndims,
                              [&](const auto& dim) { return whole(dim.src_stride) && whole(dim.dst_stride); });
         });
}

// Whether the kernel can count the words of the strided copy into and out of LL lines.
bool fits_lines(const StridedCopy& copy) {
  const ByteRange from = read_range(copy);
  const ByteRange to = written_range(copy);
  const std::int64_t extent = std::max(from.end - from.begin, to.end - to.begin);
  return copy.bytes() / kWord <= kMostWords && extent / kWord <= kMostExtent;
}

Offer offer(const Question& q) {
  if (q.move.chunk > 0) return Offer::no("carries no chunks of a loop, which end within lines");
  if (!in_words(q)) return Offer::no("LL lines hold words of 4 bytes");
  if (!std::all_of(q.move.copies.begin(), q.move.copies.end(), fits_lines)) return Offer::no("too large for LL lines");
  // Contiguous lines are taken as they arrive, by warps of their own (engines/gpu/rows.hpp): what was measured is all.
  const auto contiguous = [](const StridedCopy& copy) { return copy.ndims == 0; };
  if (!std::all_of(q.move.copies.begin(), q.move.copies.end(), contiguous)) return without_tiles(peer_two_passes(q), q);
  if (const std::string why = not_between_gpus(q); !why.empty()) return Offer::no(why);
  Offer offer = priced(q);
  // Where both GPUs fill lines and add up what they take, the SMs have more to do than was measured: a reduce-scatter
  // of 256 MiB between two H200s took 411 to 430 us, by the price of the links 401.
  if (q.move.summed && q.move.mutual)
    offer.seconds += q.machine.constants.line_sum * static_cast<double>(q.move.bytes()) / copy_bandwidth(q.machine);
  return offer;
}

const PathRegistration registration{[] {
  Path path = peer_path("peer:ll", std::make_shared<EagerProtocol>(Home::ll, false));
  path.offer = offer;
  path.preference = 1;  // of equals the put wins, which needs no ring
  return path;
}};

}  // namespace
}  // namespace tasuki
