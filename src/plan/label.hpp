// The names of commands and buffers in messages: the same in complaints, verifier reports and the text form.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "tasuki/plan.hpp"

namespace tasuki::detail {

/// `rank 2 #7 put -> 3`. Works for any index, and for commands that are not sound.
std::string label(const Plan& plan, std::int64_t command);

/// What identifies a buffer among its owner's, in the plans of all ranks. Its label does not: a user may call memory
/// as the label of a link's buffer reads.
using BufferKey = std::tuple<Purpose, std::int32_t, std::int32_t, std::string>;
inline BufferKey key_of(const Buffer& buffer) {
  if (buffer.purpose == Purpose::user) return {buffer.purpose, 0, 0, buffer.name};
  return {buffer.purpose, buffer.link, buffer.writer, {}};
}

/// `'p' of rank 1`.
std::string label(const Buffer& buffer);

/// How often a command runs in one epoch: the count of its loop, or 1. The loop index must be sound.
inline std::int64_t chunks(const Plan& plan, const Command& command) {
  return command.loop < 0 ? 1 : plan.loops[command.loop].count;
}

/// Whether the buffer's bytes belong to the user, who reads and writes them between epochs.
inline bool user_owned(Role role) {
  return role == Role::input || role == Role::output || role == Role::inout;
}

}  // namespace tasuki::detail
