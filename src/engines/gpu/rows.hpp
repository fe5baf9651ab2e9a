// Rows: what one warp does of a small epoch, with all numbers at hand.
//
// The kernel of whole plans (launch.cuh) finds its way through a task in every launch: header, steps, strided copies,
// dimensions. That is some thousand instructions before the first load, most of them fetched for the first time, and
// takes longer than the wire. Where an epoch only moves few bytes by LL lines and within the GPU, each warp gets
// one row instead: an LL line that it fills, unpacks or combines with what is there, or some units that it copies.
// Where its words lie is in a table. A plan that does more is left to the other kernel.
//
// Where an epoch has more lines than there are warps, and they are contiguous in the user's memory, a row is several
// lines, one after the other, and their places are computed. The lines of a vector are dealt to its rows in turn, so
// that they are unpacked in the order in which the sender fills them.
//
// A row may fill lines and unpack as many others (`answer`): those that come back from where the first go, or just as
// many. Between the lines that it fills it unpacks those that have come. So its warp keeps the wire busy, and does not
// only wait.
//
// A line that is unpacked or combined, and forwarded to other ranks, is forwarded by the same warp as soon as it has
// come. So a chain of ranks takes hardly longer than one message.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engines/gpu/program.hpp"
#include "tasuki/kernel/impl/row_places.cuh"
#include "tasuki/kernel/impl/warp.cuh"

namespace tasuki {

constexpr int kRowOperands = 4;  ///< at most, of a row that is combined
constexpr int kFewOperands = 2;  ///< with so many, more lines are combined at once

enum class RowKind : std::uint8_t {
  none,
  fill,     ///< an LL line, with words of the source
  unpack,   ///< an LL line, into the destination
  copy,     ///< units, from source to destination
  combine,  ///< operands, into the destination
  answer,   ///< an LL line, with words of the source, and then another one, which is unpacked: what is sent back
  signal,   ///< signals, by one lane
  await,    ///< waits for a signal, by one lane
};

/// What is signalled or waited for, as GpuStep has it.
struct RowSignal {
  std::uint64_t* counter = nullptr;  ///< null: nothing
  std::uint64_t per_epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t lag = 0;
  std::int32_t command = 0;
  Verb verb{};
  std::int8_t credit = 0;
  std::int8_t alone = 0;
};

/// A source of a row that is combined: an LL line, or memory with its words in the places of the destination's. Or
/// LL lines to which a row is forwarded; or those of an answer, after which comes the memory into which it is unpacked;
/// or, after the operands of an exchange, the lines that it fills.
struct alignas(16) RowOperand {
  GpuPlace place;
  std::int32_t command = 0;
  std::int32_t ll = 0;
};

struct alignas(16) Row {
  RowKind kind = RowKind::none;
  std::int8_t log_unit = 0;  ///< of a copy
  std::int8_t operands = 0;
  std::int8_t begins = 0;   ///< a combination: its destination does not count
  std::int8_t sends = 0;    ///< what is unpacked or combined: so many LL lines to which it is forwarded
  std::int8_t more = 0;     ///< a row that fills: for so many signals it waits besides `signal`
  std::uint32_t line = 0;   ///< the first, among those of its strided copy
  std::uint32_t lines = 1;  ///< of an epoch without a table: how many there are,
  std::uint32_t step = 1;   ///< how far the next one is,
  std::uint32_t units = 0;  ///< and the units of the strided copy
  std::int32_t command = 0;
  std::int32_t first_operand = 0;  ///< after the operands come the places of the lines to which it is forwarded
  std::int32_t first_signal = 0;   ///< the first of these, in RowProgram::signals
  GpuPlace src;
  GpuPlace dst;
  RowSignal signal;  ///< of a row that fills lines: what it waits for before it stores
};

/// The places of a lane's units in a line of contiguous memory. `of_line`: units of a line, if it is whole.
TASUKI_DEVICE RowPlaces contiguous_places(RowKind kind, std::uint32_t line, std::uint32_t units, std::uint32_t lane) {
  RowPlaces places;
  const bool copies = kind == RowKind::copy;
  const std::uint32_t of_line = copies ? kLanes * kCopiedUnits : kLineWords;
  TASUKI_UNROLL
  for (std::uint32_t k = 0; k < 4; ++k) {
    const std::uint32_t in_line = (copies ? k / 2 : k) * kLanes + lane;
    const std::uint32_t unit = line * of_line + in_line;
    places.at[k] = in_line < of_line && unit < units ? static_cast<std::int32_t>(unit) : kNowhere;
  }
  return places;
}

/// An epoch in rows. What waits for nobody comes first.
struct RowProgram {
  std::vector<Row> rows;          ///< whole blocks of kGpuWarps rows
  std::vector<RowPlaces> places;  ///< of each row, by lane; none if what is moved is contiguous
  std::vector<RowOperand> operands;
  std::vector<RowSignal> signals;
  /// Ends of steps that other launches of the operation wait for (PlanRun::ends). No row waits for one, but an epoch in
  /// rows gives them all the same: several blocks of another launch add their shares to what is there.
  std::vector<std::int32_t> ends;
  bool reduces = false;
  bool forwards = false;     ///< some rows forward, unpack answers or wait for several signals
  DType type = DType::none;  ///< of all combinations
  ReduceOp op = ReduceOp::sum;

  int blocks() const { return static_cast<int>(rows.size() / kGpuWarps); }
};

/// The tasks that one launch runs, in rows for at most so many blocks, all of which are on the GPU at once. None if
/// they are too much for them and not contiguous, or do more: if steps wait for each other, if several blocks signal
/// together, if combinations are not of one type and operator.
std::optional<RowProgram> rows_of(const GpuProgram& program, const std::vector<GpuTask>& tasks, int most_blocks);

}  // namespace tasuki
