// The nouns that the verifier's stages share: expand (which units does a command touch), run (in what order), memory
// (what is in the units, and which access was the last), findings (what to report).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/verify/sums.hpp"
#include "tasuki/plan.hpp"

namespace tasuki::detail {

/// A buffer as all plans together see it. Only units that some command or expectation touches exist; they are numbered
/// 0, 1, ... by offset and called cells. Instance k of the buffer has its cells at `first_cell + k * cells`.
struct Area {
  struct Piece {
    std::int64_t begin = 0, end = 0;  ///< units of the buffer
    std::int64_t cell = 0;            ///< cell of `begin`
  };
  Buffer buffer;
  std::vector<Piece> pieces;  ///< sorted, neither overlapping nor adjacent
  std::int64_t cells = 0;
  std::int64_t first_cell = 0;
  std::vector<std::uint8_t> uses;  ///< of each cell by its user: bits of `Use`

  std::int64_t cell_of(std::int64_t unit, std::size_t& hint) const;  ///< `hint`: a likely index into `pieces`.
  std::int64_t unit_of(std::int64_t cell) const;
  /// Where the cells of the instance that an epoch uses begin.
  std::int64_t copy_at(std::int32_t epoch) const { return first_cell + epoch % buffer.ring * cells; }
};

/// What the user does with a cell of a buffer between epochs, as the expectations imply it.
enum Use : std::uint8_t { writes = 1, reads = 2, accumulates = 4 };

/// Consecutive cells that move together; cells count from the start of a buffer's instance.
struct Run {
  std::int64_t src = 0, dst = 0, count = 0;
};

/// The runs of a command, or of an expectation, chunk by chunk.
struct Moves {
  std::int32_t src = -1, dst = -1;  ///< areas
  std::vector<Run> runs;
  std::vector<std::int64_t> first_run;  ///< of each chunk; one more at the end
  std::span<const Run> chunk(std::int64_t c) const {
    return std::span(runs).subspan(first_run[c], first_run[c + 1] - first_run[c]);
  }
};

struct LaneRange {
  std::int32_t rank = 0;
  std::int32_t begin = 0, end = 0;  ///< commands of the rank's plan
};

/// The plans of all ranks, expanded.
struct World {
  std::span<const Plan> plans;
  std::int64_t unit = 1;  ///< bytes; divides every offset, stride and size
  std::vector<Area> areas;
  std::vector<std::vector<std::int32_t>> area_of;  ///< [rank][buffer of its plan]
  std::vector<std::vector<Moves>> commands;        ///< [rank][command]
  std::vector<std::vector<Moves>> expects;         ///< [rank][expectation]
  std::vector<LaneRange> lanes;                    ///< of all ranks, by rank
  std::int64_t instances = 0;                      ///< commands run in one epoch, loops unrolled
  std::int64_t moved = 0;                          ///< bytes written in one epoch
  std::int64_t cells = 0;                          ///< of all areas, all copies
};

/// Complaints about how the plans fit together that need no execution: buffers, and pairs of messages and signals. Each
/// plan must be sound by itself.
std::vector<std::string> disagreements(std::span<const Plan> plans);

/// Messages and signals that have no counterpart. Needs plans without `disagreements`.
std::vector<std::string> unpaired(std::span<const Plan> plans);

/// Expands plans without `disagreements`. Throws `Error` if they are too large to follow.
World expand(std::span<const Plan> plans);

/// One access by a command instance, or by a rank's user between epochs.
struct Event {
  static constexpr std::int32_t kUserWrites = -1, kUserReads = -2;
  std::int32_t rank = 0;
  std::int32_t command = 0;  ///< index in the plan, or one of the above
  std::int32_t epoch = 0;
  std::uint32_t lane = 0;  ///< index of the lane's entry in clocks
  std::uint32_t tick = 0;  ///< the lane's own clock at the event
};

/// For every lane, the number of its ticks that are known to have happened before.
using Clock = std::vector<std::uint32_t>;

/// Kinds of findings about bytes.
enum class Flaw : std::uint8_t {
  read_unordered,
  overwrite_unordered,
  writes_unordered,
  self_overlap,
  written_twice,
  unexpected,
  promised_twice,
  promised_otherwise,
  missing,
  stale,
  wrong_source,
  wrong_result,
};

/// Collects findings about bytes: one sentence for each cause, with the number of bytes and the first offset.
class Findings {
 public:
  /// The flaw, the two parties and the area. Findings with equal keys are one finding.
  using Key = std::tuple<Flaw, std::int64_t, std::int64_t, std::int32_t>;
  /// The words of the sentence before and after the bytes.
  using Sentence = std::pair<std::string, std::string>;

  struct Place {
    const Area* area = nullptr;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::int32_t epoch = 0;
  };

  /// `sentence()` is called for the first finding of a key only.
  template <class Words>
  void add(const Key& key, const Place& place, Words sentence) {
    const auto [it, fresh] = index_.try_emplace(key, found_.size());
    if (fresh) {
      found_.push_back({place, sentence()});
    } else {
      extend(found_[it->second].first, place);
    }
  }
  std::vector<std::string> sentences() const;

 private:
  static void extend(Place& known, const Place& more);
  std::map<Key, std::size_t> index_;
  std::vector<std::pair<Place, Sentence>> found_;
};

/// The content of every cell, as tokens (sums.hpp), and the last accesses to it.
class Memory {
 public:
  Memory(const World& world, Findings& findings);

  /// Registers an access and returns its number, which is never 0.
  std::uint32_t record(const Event& event);

  /// Reads the sources of `runs`. The result is valid until the next `take`.
  std::span<const std::uint64_t> take(std::uint32_t event, const Clock& clock, std::int32_t area,
                                      std::span<const Run> runs);
  /// Writes contents to the destinations of `runs`, or combines them with what is there.
  void store(std::uint32_t event, const Clock& clock, std::int32_t area, std::span<const Run> runs,
             std::span<const std::uint64_t> contents, const Kind* reduces);

  void user_writes(std::uint32_t event, const Clock& clock);  ///< puts fresh values into all that the user writes
  void user_reads(std::uint32_t event, const Clock& clock);   ///< compares with what the rank was promised

  /// In which order the promised reductions of the first epoch were combined.
  std::vector<ReductionOrder> orders() const;

 private:
  bool ordered(std::uint32_t before, const Clock& clock) const {
    return clock[events_[before].lane] >= events_[before].tick;
  }
  /// The past that was checked last: neighbouring cells mostly have the same one.
  struct Seen {
    std::uint32_t writer = 0;
    std::uint32_t readers = ~std::uint32_t{0}, joined = 0;
    bool this_epoch = false;  ///< `writer` is a command of this epoch
  };
  void read(std::uint32_t now, const Clock& clock, std::int32_t area, std::int64_t cell, std::int64_t count,
            Seen& seen);
  void claim(std::uint32_t now, const Clock& clock, std::int32_t area, std::int64_t cell, std::int64_t count,
             Seen& seen);
  std::uint32_t with_reader(std::uint32_t set, std::uint32_t now, const Clock& clock);
  void report(Flaw flaw, std::uint32_t before, std::uint32_t now, std::int32_t area, std::int64_t cell);

  /// What a cell with a promised reduction was promised besides the hash of its contributions.
  struct Promise {
    std::uint64_t sequence = 0;  ///< a hash that depends on the order of the contributions
    std::int32_t terms = 0;
    Kind kind;
    bool in_order = false;
  };
  /// The contributions of the first result in the run of partial results that was looked at last.
  struct Shown {
    const Sum* sum = nullptr;
    std::vector<Sums::Term> terms;
    bool uniform = false;  ///< all steps are of one kind
    std::string order;
  };
  void expect_all(std::int32_t rank, std::int32_t epoch);
  void promise(std::int32_t rank, std::int32_t epoch, std::int32_t expect, const Run& run);
  void compare(std::uint32_t now, std::int32_t expect);
  bool keeps(std::uint64_t actual, std::uint64_t want, const Promise& promise, Shown& shown) const;
  void tell_order(std::int32_t area, std::int64_t cell, const std::string& order);
  std::string wrong_result(std::int32_t rank, std::int32_t epoch, std::int32_t area, std::int64_t cell) const;
  std::vector<std::uint64_t> contributions(std::int32_t rank, std::int32_t epoch, std::int32_t area,
                                           std::int64_t cell) const;
  const Area& area_of(std::uint64_t token) const;
  std::uint64_t token(std::int32_t area, std::int64_t cell, std::int32_t epoch) const;
  std::string value(std::uint64_t token, std::int32_t epoch) const;

  std::string who(std::uint32_t event, std::int32_t epoch) const;
  std::int64_t party(std::uint32_t event) const;
  Findings::Place place(std::int32_t area, std::int64_t cell, std::int32_t epoch) const;

  const World& world_;
  Findings& findings_;
  std::vector<Event> events_;
  std::vector<std::uint64_t> content_, taken_;
  std::vector<std::uint32_t> writer_;                    ///< event of the last write; 0: none
  std::vector<std::uint32_t> readers_;                   ///< set of events since; 0: none
  std::vector<std::vector<std::uint32_t>> reader_sets_;  ///< every combination of readers that occurred
  std::map<std::uint32_t, std::uint32_t> joined_;        ///< set without the reader `joined_by_` -> set with it
  std::uint32_t joined_by_ = 0;
  Sums sums_;
  std::vector<std::vector<std::uint64_t>> expected_;  ///< [area][cell], of the rank and epoch looked at
  std::vector<std::vector<Promise>> promised_;        ///< likewise; empty for areas without reductions
  std::map<std::pair<std::int32_t, std::string>, ReductionOrder> orders_;  ///< by area and order
};

}  // namespace tasuki::detail
