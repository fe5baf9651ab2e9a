// Verifier, stage 1: from offsets and strides to runs of numbered cells. A cell is one unit (the greatest common
// divisor of all sizes in the plans) of one instance of a buffer. Only cells that a command or expectation touches
// exist.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "layout/cut.hpp"
#include "plan/label.hpp"
#include "plan/verify/verify.hpp"
#include "tasuki/error.hpp"

namespace tasuki::detail {
namespace {

__extension__ using Wide = __int128;

/// Larger plans would take gigabytes or minutes.
constexpr std::int64_t kMostCells = std::int64_t{1} << 26;
constexpr std::int64_t kMostInstances = std::int64_t{1} << 24;
constexpr std::int64_t kMostLanes = std::int64_t{1} << 13;  ///< every lane has a clock with an entry for every lane

/// What moves in one chunk of a command, in the same form for all verbs.
struct Pattern {
  std::span<const StridedCopy> copies;
  std::int64_t chunks = 1, src_step = 0, dst_step = 0;
};

/// A message has one side in this plan; the offset of the missing side stays 0.
Pattern pattern_of(const Plan& plan, const Command& command, StridedCopy& message) {
  Pattern pattern{{}, chunks(plan, command), command.src_step, command.dst_step};
  if (command.verb == Verb::send || command.verb == Verb::recv) {
    (command.verb == Verb::send ? message.src_offset : message.dst_offset) = command.offset;
    message.block = command.bytes;
    pattern.copies = std::span(&message, 1);
    (command.verb == Verb::send ? pattern.dst_step : pattern.src_step) = 0;
  } else {
    pattern.copies = std::span(plan.copies).subspan(command.first_copy, command.copy_count);
  }
  return pattern;
}

Pattern pattern_of(const Plan& plan, const Expect& expect) {
  return {std::span(plan.copies).subspan(expect.first_copy, expect.copy_count), 1, 0, 0};
}

void divide(std::int64_t& unit, std::int64_t by) {
  unit = std::gcd(unit, by);
}

void divide(std::int64_t& unit, const Pattern& pattern) {
  for (const StridedCopy& copy : pattern.copies) {
    divide(unit, copy.src_offset);
    divide(unit, copy.dst_offset);
    divide(unit, copy.block);
    for (std::int32_t d = 0; d < copy.ndims; ++d) {
      if (copy.dims[d].count == 1) continue;
      divide(unit, copy.dims[d].src_stride);
      divide(unit, copy.dims[d].dst_stride);
    }
    for (const OffsetList* list : {&copy.src_list, &copy.dst_list})
      for (std::int64_t i = 0; i < list->size(); ++i) divide(unit, (*list)[i]);
  }
  if (pattern.chunks == 1) return;
  divide(unit, pattern.src_step);
  divide(unit, pattern.dst_step);
}

/// Calls `visit(src, dst, bytes)` for each contiguous run of `copy`, shifted by `src` and `dst`.
template <class Visit>
void for_each_run(const StridedCopy& copy, std::int64_t src, std::int64_t dst, Visit visit) {
  if (copy.listed()) {
    StridedCopy step = step_of(copy, 0);
    for (std::int64_t i = 0; i < copy.dims[0].count; ++i) {
      step.src_offset = copy.src_of_step(i);
      step.dst_offset = copy.dst_of_step(i);
      for_each_run(step, src, dst, visit);
    }
    return;
  }
  std::int64_t bytes = copy.block;
  std::int32_t ndims = copy.ndims;
  for (; ndims > 0; --ndims) {
    const StridedCopy::Dim& inner = copy.dims[ndims - 1];
    if (inner.count != 1 && (inner.src_stride != bytes || inner.dst_stride != bytes)) break;
    bytes *= inner.count;
  }
  src += copy.src_offset;
  dst += copy.dst_offset;
  std::array<std::int64_t, kMaxDims> at{};
  while (true) {
    visit(src, dst, bytes);
    std::int32_t d = ndims - 1;
    for (; d >= 0; --d) {
      const StridedCopy::Dim& dim = copy.dims[d];
      src += dim.src_stride;
      dst += dim.dst_stride;
      if (++at[d] < dim.count) break;
      src -= dim.count * dim.src_stride;
      dst -= dim.count * dim.dst_stride;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

class Expander {
 public:
  explicit Expander(std::span<const Plan> plans) { world_.plans = plans; }

  World run() {
    number_areas();
    lanes();
    choose_unit();
    touched_.resize(world_.areas.size());
    for_each_pattern([this](Moves& moves, const Pattern& pattern) { touch(moves, pattern); });
    for (std::size_t a = 0; a < world_.areas.size(); ++a) number_cells(world_.areas[a], touched_[a]);
    if (world_.cells > kMostCells) too_large(fmt::format("touch {} units of {} bytes", world_.cells, world_.unit));
    for_each_pattern([this](Moves& moves, const Pattern& pattern) { resolve(moves, pattern); });
    uses();
    return std::move(world_);
  }

 private:
  [[noreturn]] void too_large(const std::string& what) const {
    throw Error(
        fmt::format("the plans {} in one epoch, more than the verifier follows; verify '{}' by "
                    "neighbourhoods (verify_neighbourhoods, tasuki verify --neighbourhoods), or a smaller case of it",
                    what, world_.plans[0].operation));
  }

  void number_areas() {
    std::map<std::pair<std::int32_t, BufferKey>, std::int32_t> known;
    for (const Plan& plan : world_.plans) {
      auto& area_of = world_.area_of.emplace_back();
      for (const Buffer& buffer : plan.buffers) {
        const auto next = static_cast<std::int32_t>(world_.areas.size());
        const auto [it, fresh] = known.try_emplace({buffer.rank, key_of(buffer)}, next);
        if (fresh) world_.areas.emplace_back().buffer = buffer;
        area_of.push_back(it->second);
      }
      world_.commands.emplace_back(plan.commands.size());
      world_.expects.emplace_back(plan.expects.size());
      for (std::size_t i = 0; i < plan.commands.size(); ++i) {
        Moves& moves = world_.commands.back()[i];
        const Command& c = plan.commands[i];
        moves.src = c.src < 0 ? -1 : area_of[c.src];
        moves.dst = c.dst < 0 ? -1 : area_of[c.dst];
      }
      for (std::size_t i = 0; i < plan.expects.size(); ++i) {
        world_.expects.back()[i].src = area_of[plan.expects[i].src];
        world_.expects.back()[i].dst = area_of[plan.expects[i].dst];
      }
    }
  }

  void lanes() {
    Wide instances = 0;
    for (const Plan& plan : world_.plans) {
      for (std::int32_t i = 0; i < std::ssize(plan.commands); ++i) {
        if (i == 0 || plan.commands[i].lane != plan.commands[i - 1].lane) world_.lanes.push_back({plan.rank, i, i});
        world_.lanes.back().end = i + 1;
        instances += chunks(plan, plan.commands[i]);
      }
    }
    if (std::ssize(world_.lanes) + std::ssize(world_.plans) > kMostLanes) {
      too_large(fmt::format("have {} lanes", world_.lanes.size()));
    }
    if (instances > kMostInstances) too_large(fmt::format("run more than {} commands", kMostInstances));
    world_.instances = static_cast<std::int64_t>(instances);
  }

  /// Visits everything that moves bytes: commands, then (`chunks` = 1) expectations.
  template <class Visit>
  void for_each_pattern(Visit visit) {
    for (std::size_t r = 0; r < world_.plans.size(); ++r) {
      const Plan& plan = world_.plans[r];
      for (std::size_t i = 0; i < plan.commands.size(); ++i) {
        const Command& c = plan.commands[i];
        if (c.verb == Verb::signal || c.verb == Verb::wait) continue;
        StridedCopy message;
        visit(world_.commands[r][i], pattern_of(plan, c, message));
      }
      for (std::size_t i = 0; i < plan.expects.size(); ++i) {
        visit(world_.expects[r][i], pattern_of(plan, plan.expects[i]));
      }
    }
  }

  void choose_unit() {
    std::int64_t unit = 0;
    Wide bytes = 0;
    for_each_pattern([&](Moves&, const Pattern& pattern) {
      divide(unit, pattern);
      for (const StridedCopy& copy : pattern.copies) bytes += Wide{copy.bytes()} * pattern.chunks;
    });
    world_.unit = std::max<std::int64_t>(unit, 1);
    if (bytes / world_.unit > kMostCells) too_large(fmt::format("move more than {} units", kMostCells));
    for (const Plan& plan : world_.plans) {
      for (const Command& c : plan.commands) {
        const bool moves = c.verb == Verb::copy || c.verb == Verb::put || c.verb == Verb::reduce;
        if (moves || c.verb == Verb::recv) world_.moved += c.bytes * chunks(plan, c);
      }
    }
  }

  void touch(const Moves& moves, const Pattern& pattern) {
    const auto add = [&](std::int32_t area, std::int64_t offset, std::int64_t bytes) {
      if (area < 0) return;
      auto& pieces = touched_[area];
      const std::int64_t begin = offset / world_.unit, end = (offset + bytes) / world_.unit;
      if (!pieces.empty() && pieces.back().end == begin) {
        pieces.back().end = end;
      } else {
        pieces.push_back({begin, end, 0});
      }
    };
    for_each_chunk(pattern, [&](std::int64_t src, std::int64_t dst, std::int64_t bytes) {
      add(moves.src, src, bytes);
      add(moves.dst, dst, bytes);
    });
  }

  template <class Visit>
  static void for_each_chunk(const Pattern& pattern, Visit visit) {
    for (std::int64_t c = 0; c < pattern.chunks; ++c) {
      for (const StridedCopy& copy : pattern.copies) {
        for_each_run(copy, c * pattern.src_step, c * pattern.dst_step, visit);
      }
    }
  }

  void number_cells(Area& area, std::vector<Area::Piece>& touched) {
    // Most input consists of long ascending runs, which a merge sort handles several times faster.
    std::stable_sort(touched.begin(), touched.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (const Area::Piece& piece : touched) {
      if (!area.pieces.empty() && piece.begin <= area.pieces.back().end) {
        area.pieces.back().end = std::max(area.pieces.back().end, piece.end);
      } else {
        area.pieces.push_back(piece);
      }
    }
    touched = {};
    for (Area::Piece& piece : area.pieces) {
      piece.cell = area.cells;
      area.cells += piece.end - piece.begin;
    }
    area.first_cell = world_.cells;
    // The number in `ring` may be large, so the sum is limited. One more cell for each area, which nobody touches, so
    // that the tokens of two areas never follow each other.
    const Wide all = Wide{area.cells} * area.buffer.ring + 1 + world_.cells;
    if (all > kMostCells) too_large(fmt::format("touch more than {} units of {} bytes", kMostCells, world_.unit));
    world_.cells = static_cast<std::int64_t>(all);
  }

  void resolve(Moves& moves, const Pattern& pattern) {
    std::size_t src_hint = 0, dst_hint = 0;
    moves.first_run.push_back(0);
    for (std::int64_t c = 0; c < pattern.chunks; ++c) {
      for (const StridedCopy& copy : pattern.copies) {
        for_each_run(copy, c * pattern.src_step, c * pattern.dst_step,
                     [&](std::int64_t src, std::int64_t dst, std::int64_t bytes) {
                       Run run{0, 0, bytes / world_.unit};
                       if (moves.src >= 0) run.src = world_.areas[moves.src].cell_of(src / world_.unit, src_hint);
                       if (moves.dst >= 0) run.dst = world_.areas[moves.dst].cell_of(dst / world_.unit, dst_hint);
                       moves.runs.push_back(run);
                     });
      }
      moves.first_run.push_back(std::ssize(moves.runs));
    }
  }

  /// The user writes the sources of expectations and reads their destinations. A destination that is added to, and not
  /// copied to, starts from the user's own value.
  void uses() {
    for (Area& area : world_.areas) area.uses.assign(area.cells, 0);
    for (const bool additions : {false, true}) {
      for (std::size_t r = 0; r < world_.plans.size(); ++r) {
        for (std::size_t i = 0; i < world_.expects[r].size(); ++i) {
          const Expect& expect = world_.plans[r].expects[i];
          if (tasuki::accumulates(expect.dtype, expect.op) != additions) continue;
          const Moves& moves = world_.expects[r][i];
          for (const Run& run : moves.runs) {
            for (std::int64_t k = 0; k < run.count; ++k) {
              world_.areas[moves.src].uses[run.src + k] |= Use::writes;
              auto& use = world_.areas[moves.dst].uses[run.dst + k];
              if (additions && !(use & Use::reads)) use |= Use::writes;
              use |= additions ? Use::reads | Use::accumulates : Use::reads;
            }
          }
        }
      }
    }
  }

  World world_;
  std::vector<std::vector<Area::Piece>> touched_;
};

}  // namespace

std::int64_t Area::cell_of(std::int64_t unit, std::size_t& hint) const {
  const auto holds = [&](std::size_t i) {
    return i < pieces.size() && pieces[i].begin <= unit && unit < pieces[i].end;
  };
  if (!holds(hint) && !holds(++hint)) {
    const auto after = std::upper_bound(pieces.begin(), pieces.end(), unit,
                                        [](std::int64_t u, const Piece& piece) { return u < piece.begin; });
    hint = static_cast<std::size_t>(after - pieces.begin()) - 1;
  }
  return pieces[hint].cell + unit - pieces[hint].begin;
}

std::int64_t Area::unit_of(std::int64_t cell) const {
  const auto after = std::upper_bound(pieces.begin(), pieces.end(), cell,
                                      [](std::int64_t c, const Piece& piece) { return c < piece.cell; });
  const Piece& piece = *(after - 1);
  return piece.begin + cell - piece.cell;
}

World expand(std::span<const Plan> plans) {
  return Expander(plans).run();
}

}  // namespace tasuki::detail
