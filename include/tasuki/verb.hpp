// What the commands of plans do, and how LL memory is laid out: what both the host and kernels that run plans
// know.
#pragma once

#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki {

/// What a command does. Source and destination are buffers of the plan; see `Command` for the fields each verb uses.
enum class Verb : std::uint8_t {
  copy,    ///< strided copies into this rank's memory; the source may be a peer's memory (a pull)
  put,     ///< strided copies into a peer's memory
  send,    ///< `bytes` contiguous bytes at `offset` of `src` leave as a message to `peer` with `tag`
  recv,    ///< a message from `peer` with `tag` fills `bytes` bytes at `offset` of `dst`
  signal,  ///< everything earlier in this lane becomes visible, then the counter `dst` (a peer's) advances
  wait,    ///< blocks the lane until this rank's counter `src` has reached the command's value
  reduce,  ///< as `copy`, but combines elements of `dtype` with the destination's: dst = dst op src
};

/// LL memory consists of lines of 32 words of 16 bytes. A GPU stores and loads a word at once: 15 bytes of data
/// and one byte with the epoch's number. Every strided copy begins a new line. Plans count the bytes of data only.
inline constexpr std::int64_t kLLLineBytes = 512;
inline constexpr std::int64_t kLLLineData = 480;

}  // namespace tasuki
