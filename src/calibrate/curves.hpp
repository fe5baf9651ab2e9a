// Curves: what a path does with contiguous pieces of every size on hosts, and with more runs than caches hold. As in
// programs that compute between exchanges, the sender has just written what is moved, and the receiver has read what
// came before: another core has to fetch those lines from its caches, which takes several times as long where the two
// share none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "calibrate/path_timer.hpp"
#include "machine/profile.hpp"
#include "paths/path.hpp"
#include "tasuki/context.hpp"

namespace tasuki {

/// Bytes: what begins to be seen beside the latency, what fits into the caches of a core, of the processor, of neither.
constexpr std::array<std::int64_t, 10> kCurveSizes{512,       4 << 10, 8 << 10, 32 << 10, 128 << 10,
                                                   512 << 10, 2 << 20, 8 << 20, 16 << 20, 64 << 20};
/// The sizes from here on take long. They are measured once, and not where ranks share cores, as nothing is kept there:
/// every program would measure them anew, for seconds.
constexpr std::size_t kFirstLargest = 7;
/// Runs of 8 bytes, one every `kStride` bytes, that are measured with the largest sizes.
constexpr std::int64_t kManyRuns = 64 << 10;
static_assert(kCurveSizes.back() >= kStride * kManyRuns);

/// Memory between which pieces are moved, of a rank that takes part: in memory that ranks share, and of its own.
struct CurveRoom {
  bool largest = false;
  std::shared_ptr<std::byte> from, to, own_from, own_to, largest_from, largest_to;
  /// Collective, as `shared_alloc`; ranks that take no part get none. `largest`: also for the largest sizes.
  static CurveRoom on(const Context& context, bool takes_part, bool largest);
};

struct Curves {
  /// Seconds of 8 bytes, of each size, and of many runs, after a word that brings both ranks together; 0: not measured.
  using Times = std::array<double, kCurveSizes.size() + 2>;
  Times one_way{}, both{}, own{}, own_both{};
  /// After `both` and `own_both`: seconds of the program's next stores to what was sent and loads of what came; and of
  /// the same once more, which finds all of it in the core's own caches.
  Times use{}, again{}, own_use{}, own_again{};
  /// Adds `bandwidth_of_...`, `per_run_of_...` and `reuse_of_...` for all that was measured.
  void tell(CostSection& section) const;
};

/// The two least of each time that several passes have measured.
class CurvePasses {
 public:
  void add(const Curves& pass);
  const Curves& least() const { return least_; }
  /// Whether the two least of each time differ little. The largest sizes are measured in one pass.
  bool settled() const;

 private:
  Curves least_, next_;
};

/// Between rank 0 and `partner`, which both call it; of a path within a rank, `partner` is another rank of the host
/// that copies at the same time, or -1. `largest`: the largest sizes, too. Throws `PathUnusable` on both if the path
/// carries neither kind of memory.
Curves measure_curves(const Context& context, const Path& path, int partner, const CurveRoom& room, bool largest);

}  // namespace tasuki
