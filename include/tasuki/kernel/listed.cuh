// Listed moves: what a warp moves in a call of a user's kernel, where that is little: its words' places are in a list
// (row_places.cuh). Part of tasuki/kernel.cuh.
//
// A plan that only moves data is cut into rows, some of which are a move, and the moves are dealt out to the warps when
// the handle is made. Where the list would be long, the places are computed instead (jobs.cuh). A warp loads its first
// move and its places while the blocks of its group meet.
#pragma once

#include "tasuki/kernel/interpret.cuh"
#include "tasuki/kernel/program.cuh"
#include "tasuki/kernel/row_places.cuh"
#include "tasuki/kernel/standard.hpp"
#if defined(TASUKI_LANES_ARE_THREADS)
#include "tasuki/kernel/lines.cuh"
#endif

namespace tasuki::device::lowered {

constexpr int kMoveRows = 2;  ///< of a move, at most

enum class MoveKind : std::uint8_t {
  none,  ///< the warp has no more moves
  fill,  ///< stamped lines, with words of the source
  take,  ///< stamped lines, into the destination
  copy,  ///< units, from source to destination
};

/// Some rows of a strided copy. A stamped side begins with the move's first line; all places are from the base on.
struct alignas(16) ListedMove {
  GpuPlace src;
  GpuPlace dst;
  std::int32_t command = 0;
  MoveKind kind = MoveKind::none;
  std::int8_t log_unit = 0;
  std::int8_t rows = 0;
  std::int8_t spare[9] = {};
};
static_assert(sizeof(ListedMove) == 64);

/// The moves of a part: of each warp one after the other, so many at most.
struct ListedMoves {
  const ListedMove* first;
  const RowPlaces* places;  ///< of each move, of each of so many rows, by lane
  int turns;
  int rows;
};

/// A warp's moves of a part. By a whole warp.
class WarpMoves {
 public:
  TASUKI_DEVICE WarpMoves(const ListedMoves& moves, std::int64_t warp)
      : moves_(moves.first + warp * moves.turns),
        places_(moves.places + warp * moves.turns * moves.rows * static_cast<std::int64_t>(kLanes)),
        rows_(moves.rows) {}

  TASUKI_DEVICE const ListedMove& move(int turn) const { return moves_[turn]; }
  TASUKI_DEVICE int rows() const { return rows_; }
  TASUKI_DEVICE const RowPlaces* places(int turn, std::uint32_t lane) const {
    return places_ + turn * rows_ * static_cast<int>(kLanes) + lane;
  }

 private:
  const ListedMove* moves_;
  const RowPlaces* places_;
  int rows_;
};

#if defined(TASUKI_LANES_ARE_THREADS)

/// A move as a lane has it in its registers.
class LaneMove {
 public:
  /// Loads it: it is on its way until something of it is used.
  TASUKI_DEVICE LaneMove(const WarpMoves& moves, int turn) {
    Word words[sizeof(ListedMove) / sizeof(Word)];
    const auto* const from = reinterpret_cast<const Word*>(&moves.move(turn));
    TASUKI_UNROLL
    for (int k = 0; k < static_cast<int>(sizeof words / sizeof(Word)); k += 2)
      detail::load_near_pair(from + k, words[k], words[k + 1]);
    memcpy(&move_, words, sizeof move_);
    const RowPlaces* const places = moves.places(turn, lane());
    const RowPlaces nowhere{{kNowhere, kNowhere, kNowhere, kNowhere}};
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) at_[j] = j < moves.rows() ? places[j * static_cast<int>(kLanes)] : nowhere;
  }
  /// Before anything is moved.
  TASUKI_DEVICE void begin(std::uint64_t selection, std::uint64_t epoch) {
    src_ = base_of(selection, move_.src, epoch);
    dst_ = base_of(selection, move_.dst, epoch);
  }
  TASUKI_DEVICE MoveKind kind() const { return move_.kind; }

  TASUKI_DEVICE void fill(std::uint32_t stamp) const {
    std::uint32_t word[kMoveRows][kLineParts];
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) load_words(src_, at_[j], word[j]);  // all before the first store
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) {
      if (j >= move_.rows) break;
      const uint4 piece = piece_of(word[j], stamp);
      if (at_[j].at[0] != kNowhere) store_piece(dst_ + j * kStampedLine + lane() * 16, piece);
    }
  }

  /// False, to all lanes, if a piece has not come.
  TASUKI_DEVICE bool take(const PlanRun& l, std::uint64_t epoch) const {
    const auto stamp = static_cast<std::uint32_t>(epoch);
    const std::byte* const from = src_ + lane() * 16;
    uint4 piece[kMoveRows] = {};
    Patience patience(l, move_.command, epoch);
    for (;;) {
      TASUKI_UNROLL
      for (int j = 0; j < kMoveRows; ++j)  // all at once: one after the other, each would cost a latency of its own
        if (at_[j].at[0] != kNowhere) piece[j] = load_piece(from + j * kStampedLine);
      bool missing = false;
      TASUKI_UNROLL
      for (int j = 0; j < kMoveRows; ++j) missing = missing || (at_[j].at[0] != kNowhere && !came(piece[j], stamp));
      if (__any_sync(~0u, missing) == 0) break;
      const bool given_up = !patience.more((epoch - 1) * kShares, epoch * kShares);
      if (__any_sync(~0u, given_up) != 0) return false;
    }
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) {
      if (j >= move_.rows) break;
      std::uint32_t word[kLineParts];
      words_of(piece[j], word);
      store_words(dst_, at_[j], word);
    }
    return true;
  }

  TASUKI_DEVICE void copy() const { copy_rows(move_.log_unit, src_, dst_, at_, move_.rows); }

 private:
  ListedMove move_;
  RowPlaces at_[kMoveRows];  // nowhere beyond its rows
  const std::byte* src_ = nullptr;
  std::byte* dst_ = nullptr;
};

/// What a warp does of a part. Made before the blocks of its group meet, so that the first move is on its way
/// meanwhile.
class ListedTurns {
 public:
  TASUKI_DEVICE ListedTurns(const ListedMoves& moves, std::int64_t warp)
      : moves_(moves, warp), turns_(moves.turns), first_(moves_, 0) {}

  /// When it may begin. `good`: false if the warp has found something wrong before. `before_takes()`: called once, when
  /// all that the warp sends and copies has been stored.
  template <class Before>
  TASUKI_WITHIN bool run(const PlanRun& l, std::uint64_t selection, std::uint64_t epoch, bool good,
                         const Before& before_takes) const {
    LaneMove move = first_;
    bool called = false;
    TASUKI_NO_UNROLL
    for (int turn = 1; good && move.kind() != MoveKind::none; ++turn) {
      const LaneMove next(moves_, turn < turns_ ? turn : 0);  // on its way while this one is done
      move.begin(selection, epoch);
      if (move.kind() == MoveKind::fill) {
        move.fill(static_cast<std::uint32_t>(epoch));
      } else if (move.kind() == MoveKind::take) {
        if (!called) before_takes();
        called = true;
        good = move.take(l, epoch);
      } else {
        move.copy();
      }
      if (turn >= turns_) break;
      move = next;
    }
    if (!called) before_takes();
    return good;
  }

 private:
  WarpMoves moves_;
  int turns_;
  LaneMove first_;
};

#else

class ListedTurns {
 public:
  ListedTurns(const ListedMoves& moves, std::int64_t warp) : moves_(moves, warp), turns_(moves.turns) {}

  template <class Before>
  bool run(const PlanRun&, std::uint64_t selection, std::uint64_t epoch, bool good, const Before& before_takes) const {
    for (int turn = 0; good && turn < turns_; ++turn) {
      const ListedMove& move = moves_.move(turn);
      if (move.kind == MoveKind::none) break;
      const std::byte* const src = base_of(selection, move.src, epoch);
      std::byte* const dst = base_of(selection, move.dst, epoch);
      each_lane([&](std::uint32_t lane) {
        for (int row = 0; row < move.rows; ++row) {
          const RowPlaces at[1] = {moves_.places(turn, lane)[row * static_cast<int>(kLanes)]};
          copy_rows(move.log_unit, src, dst, at, 1);
        }
      });
    }
    before_takes();
    return good;
  }

 private:
  WarpMoves moves_;
  int turns_;
};

#endif

}  // namespace tasuki::device::lowered
