// Moves that become one step: see operands.hpp.
#include "engines/gpu/operands.hpp"

#include <algorithm>
#include <cstdlib>

namespace tasuki {

namespace {

constexpr std::size_t kMostOperands = 16;                   // of a step
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // larger moves are cut into several
constexpr std::int64_t kWord = 4;                           // LL lines hold words

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
    return c.bytes <= kMostBytes && c.src != c.dst && !where(c.dst).ll;
  }

  // Whether a reduction has the destination of the move before it, and the operator of others between the two.
  bool goes_on(const LaneStep& head, const LaneStep* reduction, const LaneStep& next) const {
    const Command& a = command(head);
    const Command& b = command(next);
    if (!is_block(next) || b.verb != Verb::reduce || b.dst != a.dst || b.bytes != a.bytes) return false;
    if (copy(a).dst_offset + head.round * a.dst_step != copy(b).dst_offset + next.round * b.dst_step) return false;
    return reduction == nullptr || (command(*reduction).dtype == b.dtype && command(*reduction).op == b.op);
  }

  // Where one operand lies in LL lines all are taken in words.
  bool in_words(const LaneStep& head, const std::vector<LaneStep>& others) const {
    const auto whole = [&](const LaneStep& step) {
      const Command& c = command(step);
      const auto fits = [](const Located& at, std::int64_t offset) {
        return (reinterpret_cast<std::uintptr_t>(at.base) + static_cast<std::uintptr_t>(offset)) % kWord == 0 &&
               (at.copies == 1 || std::abs(at.stride) % kWord == 0);
      };
      return c.bytes % kWord == 0 && fits(where(c.dst), copy(c).dst_offset + step.round * c.dst_step) &&
             (where(c.src).ll || fits(where(c.src), copy(c).src_offset + step.round * c.src_step));
    };
    const auto ll = [&](const LaneStep& step) { return where(command(step).src).ll; };
    if (!ll(head) && std::none_of(others.begin(), others.end(), ll)) return true;
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
    all.back().counts_as = others.back().command;
    for (LaneStep& other : others) {
      other.joined = true;
      all.push_back(other);
    }
    return end;
  }

  const Program& program_;
  const std::vector<bool>& awaited_;
};

class JoiningPuts {
 public:
  JoiningPuts(const Program& program, const GpuLanes& lanes, const std::function<bool(const Command&)>& wide)
      : plan_(program.plan), lanes_(lanes), wide_(wide) {}

  // `plain`, `lines`: which kinds of puts are joined.
  void run(std::vector<LaneStep>& steps, bool plain, bool lines) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].joined || !is_made(steps, i)) continue;
      if (takes_lines(steps, i)) {
        while (lines && join(steps, i, true)) continue;
      } else if (plain && command(steps[i + static_cast<std::size_t>(steps[i].more)]).verb == Verb::reduce) {
        join(steps, i, false);
      }
    }
  }

 private:
  const Command& command(const LaneStep& step) const { return plan_.commands[static_cast<std::size_t>(step.command)]; }
  const StridedCopy& copy(const Command& c) const { return plan_.copies[static_cast<std::size_t>(c.first_copy)]; }
  static bool is_block(const StridedCopy& copy, const Command& c) { return c.copy_count == 1 && copy.ndims == 0; }

  // Whether a step, with those that are one with it, copies or adds up blocks into plain memory, and nobody else waits
  // for what it makes.
  bool is_made(const std::vector<LaneStep>& steps, std::size_t i) const {
    const std::size_t last = i + static_cast<std::size_t>(steps[i].more);
    const Verb verb = command(steps[last]).verb;
    if (verb != Verb::reduce && verb != Verb::copy) return false;
    if (lanes_.awaited[static_cast<std::size_t>(steps[last].command)]) return false;
    return std::all_of(steps.begin() + static_cast<std::ptrdiff_t>(i),
                       steps.begin() + static_cast<std::ptrdiff_t>(last) + 1, [&](const LaneStep& step) {
                         const Command& c = command(step);
                         return is_block(copy(c), c) && c.bytes <= kMostBytes && !lanes_.is_ll(c.dst);
                       });
  }
  bool takes_lines(const std::vector<LaneStep>& steps, std::size_t i) const {
    return std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(i),
                       steps.begin() + static_cast<std::ptrdiff_t>(i) + steps[i].more + 1,
                       [&](const LaneStep& step) { return lanes_.is_ll(command(step).src); });
  }

  // Whether the command is a wait for credit, which the peer gives whatever this rank does meanwhile.
  bool waits_for_leave(const LaneStep& step) const {
    const Command& c = command(step);
    if (c.verb != Verb::wait || !lanes_.deps[static_cast<std::size_t>(step.command)].empty()) return false;
    const Purpose purpose = plan_.buffers[static_cast<std::size_t>(c.src)].purpose;
    return purpose == Purpose::ready || purpose == Purpose::credit;
  }

  // A signal of LL lines, which the flags replace.
  bool is_needless(const LaneStep& step) const {
    return command(step).verb == Verb::signal && lanes_.is_ll(command(step).dst);
  }

  bool sends(const LaneStep& step, const LaneStep& sum, bool lines) const {
    const Command& put = command(step);
    const Command& made = command(sum);
    const auto index = static_cast<std::size_t>(step.command);
    if (put.verb != Verb::put || !is_block(copy(put), put) || put.bytes > kMostBytes) return false;
    if (lanes_.is_ll(put.dst) != lines || (!lines && !wide_(put))) return false;
    if (lanes_.in_stream(index) || lanes_.asked(index) || !lanes_.deps[index].empty()) return false;
    return put.src == made.dst && put.bytes == made.bytes &&
           copy(put).src_offset + step.round * put.src_step == copy(made).dst_offset + sum.round * made.dst_step;
  }

  // Makes the next put one with step i and returns true, if it sends what the step makes. `lines`: into LL lines.
  // What lies between the two then comes before the step, whose number is signalled.
  bool join(std::vector<LaneStep>& steps, std::size_t& i, bool lines) const {
    const std::size_t last = i + static_cast<std::size_t>(steps[i].more);
    const LaneStep& made = steps[last - static_cast<std::size_t>(steps[i].sends)];
    // Nobody waits for the end of a put before the last.
    if (steps[i].sends > 0 && lanes_.awaited[static_cast<std::size_t>(steps[last].command)]) return false;
    std::size_t k = last + 1;
    while (k < steps.size() && (waits_for_leave(steps[k]) || (lines && is_needless(steps[k])))) ++k;
    if (k == steps.size() || !sends(steps[k], made, lines)) return false;
    LaneStep& head = steps[i];
    const LaneStep& put = steps[k];
    ++head.more;
    ++head.sends;
    head.end = put.end;
    head.last = put.last;
    head.counts_as = put.command;
    steps[k].joined = true;
    const auto first = steps.begin() + static_cast<std::ptrdiff_t>(i);
    std::rotate(first, steps.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                steps.begin() + static_cast<std::ptrdiff_t>(k));
    i += k - last - 1;
    return true;
  }

  const Plan& plan_;
  const GpuLanes& lanes_;
  const std::function<bool(const Command&)>& wide_;
};

}  // namespace

void join_operands(const Program& program, const std::vector<bool>& awaited, std::vector<LaneStep>& steps) {
  steps = Joining(program, awaited).run(steps);
}

void join_puts(const Program& program, const GpuLanes& lanes, const std::function<bool(const Command&)>& wide,
               bool plain, bool lines, std::vector<LaneStep>& steps) {
  JoiningPuts(program, lanes, wide).run(steps, plain, lines);
}

}  // namespace tasuki
