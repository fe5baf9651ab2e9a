// Listed moves: what a warp moves in a call of a user's kernel where an epoch moves few bytes. A list says where each
// word lies (row_places.cuh). Part of tasuki/kernel.cuh.
//
// A plan that only moves data is cut into rows; one or two rows are a move. The moves are dealt out to the warps when
// the handle is made. Where the list would be long, the places are computed instead (jobs.cuh). A warp loads its first
// move and its places while its group is in a barrier.
#pragma once

#include "tasuki/kernel/impl/interpret.cuh"
#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/row_places.cuh"
#include "tasuki/kernel/impl/standard.hpp"
#if defined(TASUKI_LANES_ARE_THREADS)
#include "tasuki/kernel/impl/lines.cuh"
#endif

namespace tasuki::device::lowered {

constexpr int kMoveRows = 2;  ///< of a move, at most

enum class MoveKind : std::uint8_t {
  none,    ///< the warp has no more moves
  fill,    ///< LL lines, with words of the source
  unpack,  ///< LL lines, into the destination
  copy,    ///< units, from source to destination
};

/// Some rows of strided copies between the same buffers, or between buffers that lie alike. Places count from the base,
/// which on an LL side is the first row's line.
struct alignas(16) ListedMove {
  GpuPlace src;
  GpuPlace dst;
  std::int32_t command = 0;
  MoveKind kind = MoveKind::none;
  std::int8_t log_unit = 0;
  std::int8_t rows = 0;
  std::int8_t next_rows = 0;           ///< of the warp's next move; 0: there is none
  std::int32_t lines[kMoveRows] = {};  ///< of an LL side: where the rows' lines lie
};
static_assert(sizeof(ListedMove) == 64);

/// The moves of a part: those of each warp one after the other, `turns` at most.
struct ListedMoves {
  const ListedMove* first;
  const RowPlaces* places;  ///< of each move, of each of so many rows, by lane
  int turns;
  int rows;
};

/// A warp's moves of a part. By a whole warp.
class WarpMoves {
 public:
  WarpMoves() = default;
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
  const ListedMove* moves_ = nullptr;
  const RowPlaces* places_ = nullptr;
  int rows_ = 0;
};

#if defined(TASUKI_LANES_ARE_THREADS)

/// A move as a lane has it in its registers.
class LaneMove {
 public:
  /// Loads a move of so many rows at most: it is on its way until something of it is used.
  TASUKI_DEVICE void load(const WarpMoves& moves, int turn, int rows) {
    Word words[sizeof(ListedMove) / sizeof(Word)];
    const auto* const from = reinterpret_cast<const Word*>(&moves.move(turn));
    TASUKI_UNROLL
    for (int k = 0; k < static_cast<int>(sizeof words / sizeof(Word)); k += 2)
      detail::load_near_pair(from + k, words[k], words[k + 1]);
    memcpy(&move_, words, sizeof move_);
    const RowPlaces* const places = moves.places(turn, lane());
    const RowPlaces nowhere{{kNowhere, kNowhere, kNowhere, kNowhere}};
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) at_[j] = j < rows ? places[j * static_cast<int>(kLanes)] : nowhere;
  }
  TASUKI_DEVICE MoveKind kind() const { return move_.kind; }

  /// These three carry the move out and then hold the warp's next move, which they load while the data travel. False if
  /// there is no next one.
  TASUKI_DEVICE bool fill(const WarpMoves& moves, int& turn, std::uint64_t selection, std::uint64_t epoch) {
    const std::byte* const src = base_of(selection, move_.src, epoch);
    std::byte* const dst = base_of(selection, move_.dst, epoch) + lane() * 16;
    std::uint32_t word[kMoveRows][kLineParts];
    bool has[kMoveRows];
    std::int32_t lines[kMoveRows];
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) {  // all before the first store
      load_words(src, at_[j], word[j]);
      has[j] = at_[j].at[0] != kNowhere;
      lines[j] = move_.lines[j];
    }
    const int rows = move_.rows;
    const bool more = load_next(moves, turn);
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) {
      if (j >= rows) break;
      const uint4 piece = piece_of(word[j], static_cast<std::uint32_t>(epoch));
      if (has[j]) store_piece(dst + lines[j], piece);
    }
    return more;
  }

  TASUKI_DEVICE bool copy(const WarpMoves& moves, int& turn, std::uint64_t selection, std::uint64_t epoch) {
    const LaneMove now = *this;
    const bool more = load_next(moves, turn);
    copy_rows(now.move_.log_unit, base_of(selection, now.move_.src, epoch), base_of(selection, now.move_.dst, epoch),
              now.at_, now.move_.rows);
    return more;
  }

  /// `good`: false, to all lanes, if a piece has not come.
  TASUKI_DEVICE bool unpack(const WarpMoves& moves, int& turn, const PlanRun& l, std::uint64_t selection,
                            std::uint64_t epoch, bool& good) {
    const LaneMove now = *this;
    const bool more = load_next(moves, turn);
    const auto flag = static_cast<std::uint32_t>(epoch);
    const std::byte* const from = base_of(selection, now.move_.src, epoch) + lane() * 16;
    std::byte* const dst = base_of(selection, now.move_.dst, epoch);
    uint4 piece[kMoveRows] = {};
    Deadline deadline(l, now.move_.command, epoch);
    for (;;) {
      TASUKI_UNROLL
      for (int j = 0; j < kMoveRows; ++j)  // all at once: one after the other, each would cost a latency of its own
        if (now.at_[j].at[0] != kNowhere) piece[j] = load_piece(from + now.move_.lines[j]);
      bool missing = false;
      TASUKI_UNROLL
      for (int j = 0; j < kMoveRows; ++j) missing = missing || (now.at_[j].at[0] != kNowhere && !came(piece[j], flag));
      if (__any_sync(~0u, missing) == 0) break;
      const bool given_up = !deadline.more((epoch - 1) * kShares, epoch * kShares);
      good = __any_sync(~0u, given_up) == 0;
      if (!good) return false;
    }
    TASUKI_UNROLL
    for (int j = 0; j < kMoveRows; ++j) {
      if (j >= now.move_.rows) break;
      std::uint32_t word[kLineParts];
      words_of(piece[j], word);
      store_words(dst, now.at_[j], word);
    }
    return more;
  }

 private:
  TASUKI_DEVICE bool load_next(const WarpMoves& moves, int& turn) {
    const int rows = move_.next_rows;
    if (rows == 0) return false;
    load(moves, ++turn, rows);
    return true;
  }

  ListedMove move_;
  RowPlaces at_[kMoveRows];  // nowhere beyond its rows
};

/// What a warp does of a part. Made before the group's barrier, so that the first move is on its way
/// meanwhile; or once for many epochs.
class ListedTurns {
 public:
  ListedTurns() = default;
  TASUKI_DEVICE ListedTurns(const ListedMoves& moves, std::int64_t warp) : moves_(moves, warp) {
    first_.load(moves_, 0, moves_.rows());
  }

  /// Called when the moves may begin. `unpacks`: false if the warp has found something wrong, so that it does not wait
  /// for what arrives. `before_unpacks()`: called once, when all that the warp sends and copies has been stored.
  template <class Before>
  TASUKI_WITHIN bool run(const PlanRun& l, std::uint64_t selection, std::uint64_t epoch, bool unpacks,
                         const Before& before_unpacks) const {
    LaneMove move = first_;
    int turn = 0;
    bool more = move.kind() != MoveKind::none;
    TASUKI_NO_UNROLL
    while (more && move.kind() == MoveKind::fill) more = move.fill(moves_, turn, selection, epoch);
    TASUKI_NO_UNROLL
    while (more && move.kind() == MoveKind::copy) more = move.copy(moves_, turn, selection, epoch);
    before_unpacks();
    bool good = unpacks;
    TASUKI_NO_UNROLL
    while (more && good) more = move.unpack(moves_, turn, l, selection, epoch, good);
    return good;
  }

 private:
  WarpMoves moves_;
  LaneMove first_;
};

#else

class ListedTurns {
 public:
  ListedTurns() = default;
  ListedTurns(const ListedMoves& moves, std::int64_t warp) : moves_(moves, warp) {}

  template <class Before>
  bool run(const PlanRun&, std::uint64_t selection, std::uint64_t epoch, bool unpacks,
           const Before& before_unpacks) const {
    for (int turn = 0;; ++turn) {
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
      if (move.next_rows == 0) break;
    }
    before_unpacks();
    return unpacks;
  }

 private:
  WarpMoves moves_;
};

#endif

}  // namespace tasuki::device::lowered
