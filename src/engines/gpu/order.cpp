// The order of a lane's steps: see order.hpp.
#include "engines/gpu/order.hpp"

#include <algorithm>
#include <array>

#include "engines/gpu/task.hpp"
#include "tasuki/error.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kUncut = 1 << 30;  // copies of at most this extent in bytes are not cut by TaskDraft::add_copy

/// One side of a move in one round.
struct Side {
  std::int32_t buffer = -1;
  std::int64_t shift = 0;
  std::span<const StridedCopy> copies;
  std::int64_t StridedCopy::*offset;
  std::int64_t StridedCopy::Dim::*stride;
  OffsetList StridedCopy::*list;
};

struct Sides {
  Side read;
  Side written;
};

Sides sides_of(const Plan& plan, const LaneStep& step) {
  const Command& c = plan.commands[static_cast<std::size_t>(step.command)];
  const std::span copies(plan.copies.data() + c.first_copy, static_cast<std::size_t>(c.copy_count));
  return {{c.src, step.round * c.src_step, copies, &StridedCopy::src_offset, &StridedCopy::Dim::src_stride,
           &StridedCopy::src_list},
          {c.dst, step.round * c.dst_step, copies, &StridedCopy::dst_offset, &StridedCopy::Dim::dst_stride,
           &StridedCopy::dst_list}};
}

/// The range from the first byte to the one after the last.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Range range_of(const Side& side, const StridedCopy& copy) {
  Range range{copy.*side.offset + side.shift, copy.*side.offset + side.shift + copy.block};
  for (int d = 0; d < copy.ndims; ++d) {
    const auto& dim = copy.dims[static_cast<std::size_t>(d)];
    const std::int64_t reach = (dim.count - 1) * dim.*side.stride;
    (reach < 0 ? range.begin : range.end) += reach;
  }
  const OffsetList& list = copy.*side.list;
  if (!list.empty()) {
    range.begin += list.least();
    range.end += list.most();
  }
  return range;
}

Layout layout_of(const Side& side, const StridedCopy& copy) {
  Layout layout = Layout::bytes(copy.block);
  const OffsetList& list = copy.*side.list;
  for (int d = copy.ndims - 1; d >= (list.empty() ? 0 : 1); --d) {
    const auto& dim = copy.dims[static_cast<std::size_t>(d)];
    layout = Layout::hvector(dim.count, 1, dim.*side.stride, layout);
  }
  if (list.empty()) return layout;
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < list.size(); ++i) offsets.push_back(list[i]);
  return Layout::hindexed(std::vector<std::int64_t>(offsets.size(), 1), offsets, layout);
}

bool overlap(const Side& a, const StridedCopy& copy_a, const Side& b, const StridedCopy& copy_b) {
  const Range in_a = range_of(a, copy_a);
  const Range in_b = range_of(b, copy_b);
  if (in_a.begin >= in_b.end || in_b.begin >= in_a.end) return false;
  if (copy_a.ndims == 0 && copy_b.ndims == 0) return true;
  const std::array<std::int64_t, 2> lengths{1, 1};
  const std::array displacements{copy_a.*a.offset + a.shift, copy_b.*b.offset + b.shift};
  const std::array layouts{layout_of(a, copy_a), layout_of(b, copy_b)};
  try {
    return Layout::structure(lengths, displacements, layouts).overlaps();
  } catch (const Error&) {
    return true;  // too scattered to decide: waiting is always correct
  }
}

bool overlap(const Side& a, const Side& b) {
  if (a.buffer != b.buffer) return false;
  return std::any_of(a.copies.begin(), a.copies.end(), [&](const StridedCopy& x) {
    return std::any_of(b.copies.begin(), b.copies.end(), [&](const StridedCopy& y) { return overlap(a, x, b, y); });
  });
}

/// Whether two moves reduce the same elements in the same order.
bool same_elements(const Plan& plan, const LaneStep& a, const LaneStep& b) {
  const Command& x = plan.commands[static_cast<std::size_t>(a.command)];
  const Command& y = plan.commands[static_cast<std::size_t>(b.command)];
  if (x.verb != Verb::reduce || y.verb != Verb::reduce || x.dtype != y.dtype || x.dst != y.dst) return false;
  const auto ll = [&](const Command& c) { return plan.buffers[static_cast<std::size_t>(c.src)].home == Home::ll; };
  if (ll(x) != ll(y)) return false;  // they are cut differently
  const Side one = sides_of(plan, a).written;
  const Side two = sides_of(plan, b).written;
  // larger ones are cut into several
  const auto whole = [](const StridedCopy& copy) { return !copy.listed() && true_extent(copy) <= kUncut; };
  return std::all_of(one.copies.begin(), one.copies.end(), whole) &&
         std::all_of(two.copies.begin(), two.copies.end(), whole) &&
         std::equal(one.copies.begin(), one.copies.end(), two.copies.begin(), two.copies.end(),
                    [&](const StridedCopy& s, const StridedCopy& t) {
                      bool same = s.dst_offset + one.shift == t.dst_offset + two.shift && s.block == t.block &&
                                  s.ndims == t.ndims;
                      for (std::size_t d = 0; same && d < static_cast<std::size_t>(s.ndims); ++d) {
                        same = s.dims[d].count == t.dims[d].count && s.dims[d].dst_stride == t.dims[d].dst_stride;
                      }
                      return same;
                    });
}

/// Whether a move reads what an earlier one writes or writes what it touches, each with those that are one with it.
/// `chained`: both may write the same.
bool must_follow(const Plan& plan, const std::vector<LaneStep>& steps, std::size_t earlier, std::size_t later,
                 bool chained) {
  for (std::size_t a = earlier; a <= earlier + static_cast<std::size_t>(steps[earlier].more); ++a) {
    const Sides before = sides_of(plan, steps[a]);
    for (std::size_t b = later; b <= later + static_cast<std::size_t>(steps[later].more); ++b) {
      const Sides now = sides_of(plan, steps[b]);
      if (overlap(before.written, now.read) || overlap(before.read, now.written) ||
          (!chained && overlap(before.written, now.written)))
        return true;
    }
  }
  return false;
}

/// Makes sure that other steps can wait for the end of this one.
void need_end(const Plan& plan, LaneStep& step, std::int8_t by, std::vector<std::int32_t>& more_ends) {
  if (step.awaited == 0 && !step.last) {
    step.end = static_cast<std::int32_t>(plan.commands.size() + more_ends.size());
    more_ends.push_back(step.command);
  }
  step.awaited = static_cast<std::int8_t>(step.awaited | by);
}

}  // namespace

std::vector<LaneStep> unrolled(const Plan& plan, std::size_t first, std::size_t end) {
  std::vector<LaneStep> steps;
  for (std::size_t i = first; i < end;) {
    const std::int32_t loop = plan.commands[i].loop;
    std::size_t past = i + 1;
    while (loop >= 0 && past < end && plan.commands[past].loop == loop) ++past;
    const std::int64_t rounds = loop >= 0 ? plan.loops[static_cast<std::size_t>(loop)].count : 1;
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (std::size_t k = i; k < past; ++k) {
        LaneStep step;
        step.command = step.end = static_cast<std::int32_t>(k);
        step.round = round;
        step.last = round + 1 == rounds;
        steps.push_back(step);
      }
    }
    i = past;
  }
  return steps;
}

void order_moves(const Plan& plan, std::vector<LaneStep>& steps, std::vector<std::int32_t>& more_ends) {
  std::vector<std::size_t> moves;
  std::size_t open = 0;   // all moves before this one have ended in all blocks when the next step begins
  std::size_t chain = 0;  // from this move on all reduce the same elements
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Verb verb = plan.commands[static_cast<std::size_t>(steps[i].command)].verb;
    if (steps[i].joined || (verb != Verb::copy && verb != Verb::put && verb != Verb::reduce)) continue;
    bool alike = !moves.empty() && steps[moves.back()].more == 0 && steps[i].more == 0 &&
                 same_elements(plan, steps[moves.back()], steps[i]);
    for (std::size_t m = moves.size(); m-- > open;) {
      const bool chained = alike && m >= chain;
      if (must_follow(plan, steps, moves[m], i, chained)) {
        need_end(plan, steps[moves[m]], kInBlock, more_ends);
        steps[i].after = steps[moves[m]].end;
        open = m + 1;
        break;
      }
    }
    alike = alike && open < moves.size();
    if (!alike) chain = moves.size();
    steps[i].alike = alike;
    moves.push_back(i);
  }
}

void single_out_signals(const Plan& plan, std::vector<LaneStep>& steps, const std::vector<bool>& spared,
                        std::vector<std::int32_t>& more_ends) {
  LaneStep* before = nullptr;  // the last step that counts
  for (LaneStep& step : steps) {
    const auto command = static_cast<std::size_t>(step.command);
    if (spared[command] || step.joined) continue;
    if (plan.commands[command].verb == Verb::signal) {
      step.single = true;
      if (before != nullptr && !before->single) {
        need_end(plan, *before, kAwaited, more_ends);
        step.after = before->end;
      }
    }
    before = &step;
  }
}

}  // namespace tasuki
