// The order of messages: see message_order.hpp.
#include "plan/passes/message_order.hpp"

#include <algorithm>
#include <limits>

namespace tasuki {

namespace {

// From the first to the last byte that a command reads or writes of a buffer.
struct Range {
  std::int32_t buffer = -1;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();

  bool meets(const Range& other) const {
    return buffer >= 0 && buffer == other.buffer && begin < other.end && other.begin < end;
  }
};

struct Touched {
  Range read;
  Range written;
};

bool is_message(const Command& c) {
  return c.verb == Verb::send || c.verb == Verb::recv;
}

bool moves(const Command& c) {
  return c.verb == Verb::copy || c.verb == Verb::put || c.verb == Verb::reduce;
}

Touched touched(const Plan& plan, const Command& c) {
  Touched all;
  if (is_message(c)) {
    (c.verb == Verb::send ? all.read : all.written) = {c.verb == Verb::send ? c.src : c.dst, c.offset,
                                                       c.offset + c.bytes};
  }
  if (!moves(c)) return all;
  all.read.buffer = c.src;
  all.written.buffer = c.dst;
  for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
    const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
    const auto include = [&copy](Range& range, std::int64_t at, std::int64_t StridedCopy::Dim::*stride) {
      std::int64_t last = at;
      for (int d = 0; d < copy.ndims; ++d) {
        const std::int64_t reach =
            (copy.dims[static_cast<std::size_t>(d)].count - 1) * copy.dims[static_cast<std::size_t>(d)].*stride;
        (reach < 0 ? at : last) += reach;
      }
      range.begin = std::min(range.begin, at);
      range.end = std::max(range.end, last + copy.block);
    };
    include(all.read, copy.src_offset, &StridedCopy::Dim::src_stride);
    include(all.written, copy.dst_offset, &StridedCopy::Dim::dst_stride);
  }
  return all;
}

bool ordered(const Plan& plan, const Command& a, const Command& b) {
  const auto stays = [](const Command& c) { return !is_message(c) && !moves(c); };
  if (stays(a) || stays(b)) return true;
  const Touched first = touched(plan, a);
  const Touched second = touched(plan, b);
  return first.written.meets(second.written) || first.written.meets(second.read) || first.read.meets(second.written);
}

}  // namespace

std::vector<std::vector<std::int32_t>> message_order(const Plan& plan, const std::vector<bool>& carried) {
  std::vector<std::vector<std::int32_t>> order(plan.commands.size());
  for (std::size_t begin = 0, end = 0; begin < plan.commands.size(); begin = end) {
    while (end < plan.commands.size() && plan.commands[end].lane == plan.commands[begin].lane) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      bool after_move = false;  // those that nobody else carries end in order: the last one will do
      for (std::size_t before = i; before-- > begin;) {
        if (!carried[i] && !carried[before]) continue;
        if (!carried[before] && after_move) continue;
        if (!ordered(plan, plan.commands[before], plan.commands[i])) continue;
        after_move = after_move || !carried[before];
        order[i].push_back(static_cast<std::int32_t>(before));
      }
    }
  }
  return order;
}

}  // namespace tasuki
