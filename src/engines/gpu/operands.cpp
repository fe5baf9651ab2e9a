// Moves that become one step: see operands.hpp.
#include "engines/gpu/operands.hpp"

#include <algorithm>
#include <cstdlib>

namespace tasuki {

namespace {

constexpr std::size_t kMostOperands = 16;                   // of a step
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // larger moves are cut into several
constexpr std::int64_t kWord = 4;                           // stamped lines hold words

class Joining {
 public:
  Joining(const Program& program, const std::vector<bool>& awaited) : program_(program), awaited_(awaited) {}

  std::vector<LaneStep> run(const std::vector<LaneStep>& steps) {
    std::vector<LaneStep> all;
    for (std::size_t i = 0; i < steps.size();) i = join(steps, i, all);
    return all;
  }

 private:
  const Command& command(const LaneStep& step) const {
    return program_.plan.commands[static_cast<std::size_t>(step.command)];
  }
  const StridedCopy& copy(const Command& c) const {
    return program_.plan.copies[static_cast<std::size_t>(c.first_copy)];
  }
  const Located& where(std::int32_t buffer) const { return program_.where[static_cast<std::size_t>(buffer)]; }
  bool awaited(const LaneStep& step) const { return awaited_[static_cast<std::size_t>(step.command)]; }

  // One block that is copied or combined within this rank's memory, from elsewhere in it.
  bool is_block(const LaneStep& step) const {
    const Command& c = command(step);
    if ((c.verb != Verb::copy && c.verb != Verb::reduce) || c.copy_count != 1 || copy(c).ndims != 0) return false;
    return c.bytes <= kMostBytes && c.src != c.dst && !where(c.dst).stamped;
  }

  // Whether a reduction has the destination of the move before it, and the operator of others between the two.
  bool goes_on(const LaneStep& head, const LaneStep* reduction, const LaneStep& next) const {
    const Command& a = command(head);
    const Command& b = command(next);
    if (!is_block(next) || b.verb != Verb::reduce || b.dst != a.dst || b.bytes != a.bytes) return false;
    if (copy(a).dst_offset + head.round * a.dst_step != copy(b).dst_offset + next.round * b.dst_step) return false;
    return reduction == nullptr || (command(*reduction).dtype == b.dtype && command(*reduction).op == b.op);
  }

  // Where one operand lies in stamped lines all are taken in words.
  bool in_words(const LaneStep& head, const std::vector<LaneStep>& others) const {
    const auto whole = [&](const LaneStep& step) {
      const Command& c = command(step);
      const auto fits = [](const Located& at, std::int64_t offset) {
        return (reinterpret_cast<std::uintptr_t>(at.base) + static_cast<std::uintptr_t>(offset)) % kWord == 0 &&
               (at.copies == 1 || std::abs(at.stride) % kWord == 0);
      };
      return c.bytes % kWord == 0 && fits(where(c.dst), copy(c).dst_offset + step.round * c.dst_step) &&
             (where(c.src).stamped || fits(where(c.src), copy(c).src_offset + step.round * c.src_step));
    };
    const auto stamped = [&](const LaneStep& step) { return where(command(step).src).stamped; };
    if (!stamped(head) && std::none_of(others.begin(), others.end(), stamped)) return true;
    return whole(head) && std::all_of(others.begin(), others.end(), whole);
  }

  // Appends what begins with step i; returns the step after it.
  std::size_t join(const std::vector<LaneStep>& steps, std::size_t i, std::vector<LaneStep>& all) const {
    const LaneStep& head = steps[i];
    std::vector<LaneStep> waits;
    std::vector<LaneStep> others;
    std::size_t end = i + 1;  // past the last that is joined
    std::size_t waits_before = 0;
    if (is_block(head)) {
      const LaneStep* reduction = command(head).verb == Verb::reduce ? &head : nullptr;
      const LaneStep* last = &head;
      for (std::size_t k = i + 1; k < steps.size() && others.size() < kMostOperands && !awaited(*last); ++k) {
        if (command(steps[k]).verb == Verb::wait && command(steps[k]).dep_count == 0) {
          waits.push_back(steps[k]);
          continue;
        }
        if (!goes_on(head, reduction, steps[k])) break;
        others.push_back(steps[k]);
        reduction = last = &steps[k];
        waits_before = waits.size();
        end = k + 1;
      }
    }
    if (others.empty() || !in_words(head, others)) {
      all.push_back(head);
      return i + 1;
    }
    waits.resize(waits_before);
    all.insert(all.end(), waits.begin(), waits.end());
    all.push_back(head);
    all.back().more = static_cast<std::int32_t>(others.size());
    all.back().end = others.back().end;
    all.back().last = others.back().last;
    all.back().told_as = others.back().command;
    for (LaneStep& other : others) {
      other.joined = true;
      all.push_back(other);
    }
    return end;
  }

  const Program& program_;
  const std::vector<bool>& awaited_;
};

}  // namespace

void join_operands(const Program& program, const std::vector<bool>& awaited, std::vector<LaneStep>& steps) {
  steps = Joining(program, awaited).run(steps);
}

}  // namespace tasuki
