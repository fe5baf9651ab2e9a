// Lanes of GPUs: see gpu_lanes.hpp.
#include "predict/gpu_lanes.hpp"

#include <algorithm>

namespace tasuki::detail {

namespace {

// The next command of the lane that is no wait, or the number of commands.
std::size_t after_waits(const Plan& plan, std::size_t i) {
  std::size_t next = i + 1;
  while (next < plan.commands.size() && plan.commands[next].lane == plan.commands[i].lane &&
         plan.commands[next].verb == Verb::wait)
    ++next;
  return next < plan.commands.size() && plan.commands[next].lane == plan.commands[i].lane ? next : plan.commands.size();
}

// Whether the lane puts next what the command has made.
bool puts_on(const Plan& plan, std::size_t i) {
  const std::size_t next = after_waits(plan, i);
  return next < plan.commands.size() && plan.commands[next].verb == Verb::put &&
         plan.commands[next].src == plan.commands[i].dst;
}

}  // namespace

bool moves_bytes(Verb verb) {
  return verb == Verb::copy || verb == Verb::put || verb == Verb::reduce || verb == Verb::send;
}

bool goes_on(const Plan& plan, std::size_t i, std::size_t& next) {
  const Command& c = plan.commands[i];
  next = after_waits(plan, i);
  if (next == plan.commands.size()) return false;
  const Command& then = plan.commands[next];
  if ((c.verb != Verb::copy && c.verb != Verb::reduce) || then.verb != Verb::reduce || then.dst != c.dst) return false;
  if (c.copy_count != 1 || then.copy_count != 1 || then.bytes != c.bytes) return false;
  const auto copy = [&](const Command& one) { return plan.copies[static_cast<std::size_t>(one.first_copy)]; };
  return copy(c).ndims == 0 && copy(then).ndims == 0 && copy(c).dst_offset == copy(then).dst_offset;
}

bool ends_pass(const Plan& plan, std::size_t i) {
  std::size_t next = 0;
  return !goes_on(plan, i, next) && !(plan.commands[i].verb == Verb::reduce && puts_on(plan, i));
}

double share_of_pass(const Plan& plan, std::size_t i) {
  const auto elsewhere = [&](std::size_t command) {
    const Buffer& from = plan.buffers[static_cast<std::size_t>(plan.commands[command].src)];
    return from.rank != plan.rank || from.home == Home::ll;
  };
  // Strided lines are unpacked by a pass of their own.
  if (plan.buffers[static_cast<std::size_t>(plan.commands[i].src)].home == Home::ll) return 1;
  std::size_t next = 0;
  std::size_t first = i;
  bool hidden = elsewhere(i);
  for (std::size_t before = i; before-- > 0 && plan.commands[before].lane == plan.commands[i].lane;) {
    if (plan.commands[before].verb == Verb::wait) continue;
    if (!goes_on(plan, before, next) || next != first) break;
    first = before;
    hidden = hidden || elsewhere(before);
  }
  const bool stores = !goes_on(plan, i, next);
  std::size_t last = i;
  for (; goes_on(plan, last, next); last = next) hidden = hidden || elsewhere(next);
  if (hidden || (plan.commands[last].verb == Verb::reduce && puts_on(plan, last))) return 0;
  const bool loads_destination = first == i && plan.commands[i].verb == Verb::reduce;
  return 0.5 * (1 + (loads_destination ? 1 : 0) + (stores ? 1 : 0));
}

bool in_lines(const Plan& plan, std::int32_t buffer, const Command& c) {
  const auto first = plan.copies.begin() + c.first_copy;
  return plan.buffers[static_cast<std::size_t>(buffer)].home == Home::ll &&
         std::all_of(first, first + c.copy_count, [](const StridedCopy& copy) { return copy.ndims == 0; });
}

bool more_lines(const Plan& plan, std::size_t i) {
  std::size_t next = 0;
  for (; goes_on(plan, i, next); i = next)
    if (in_lines(plan, plan.commands[next].src, plan.commands[next])) return true;
  return false;
}

bool sends_sum(const Plan& plan, std::size_t i) {
  const Command& put = plan.commands[i];
  for (std::size_t k = i; k-- > 0 && plan.commands[k].lane == put.lane;) {
    const Command& before = plan.commands[k];
    if (before.verb == Verb::reduce) return before.dst == put.src && before.bytes == put.bytes;
    if (before.verb != Verb::wait) return false;
  }
  return false;
}

bool sends_lines_on(const Plan& plan, std::size_t i) {
  const Command& put = plan.commands[i];
  for (std::size_t k = i; k-- > 0 && plan.commands[k].lane == put.lane;) {
    const Command& before = plan.commands[k];
    if (before.verb == Verb::wait || before.verb == Verb::signal || before.verb == Verb::put) continue;
    return before.dst == put.src && before.bytes == put.bytes && in_lines(plan, before.src, before);
  }
  return false;
}

bool puts_again(const Plan& plan, std::size_t i) {
  const Command& c = plan.commands[i];
  for (std::size_t k = i + 1; k < plan.commands.size() && plan.commands[k].lane == c.lane; ++k) {
    const Command& next = plan.commands[k];
    if (next.verb == Verb::signal || next.verb == Verb::wait) continue;
    return next.verb == Verb::put && next.src == c.src && next.bytes == c.bytes && in_lines(plan, next.dst, next) &&
           plan.copies[static_cast<std::size_t>(next.first_copy)].src_offset ==
               plan.copies[static_cast<std::size_t>(c.first_copy)].src_offset;
  }
  return false;
}

bool hands_on(const Plan& plan, std::size_t i) {
  const std::size_t next = after_waits(plan, i);
  if (next == plan.commands.size() || plan.commands[next].verb != Verb::put) return false;
  const Command& made = plan.commands[i];
  const Command& put = plan.commands[next];
  const auto offset = [&](const Command& c) { return plan.copies[static_cast<std::size_t>(c.first_copy)]; };
  return put.src == made.dst && put.bytes == made.bytes && in_lines(plan, put.dst, put) &&
         offset(put).src_offset == offset(made).dst_offset;
}

}  // namespace tasuki::detail
