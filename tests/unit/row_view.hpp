// An epoch in rows (engines/gpu/rows.hpp), carried out on the host: one row at a time, in any order.
#pragma once

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "engines/gpu/rows.hpp"
#include "gpu_view.hpp"

namespace gpu_view {

/// `step`: a GpuStep or a RowSignal.
template <class Step>
std::uint64_t target_of(const Step& step, std::uint64_t epoch) {
  if (step.verb == Verb::wait) {
    if (epoch <= step.lag && step.credit != 0) return 0;
    epoch = epoch > step.lag ? epoch - step.lag : 1;
  }
  return ((epoch - 1) * step.per_epoch + step.index + 1) * kSignal;
}

/// Calls f(word of the line, its place in bytes) for the words that there are.
template <class F>
void each_word(const RowPlaces* places, const F& f) {
  for (std::size_t word = 0; word < kLineWords; ++word) {
    const std::int32_t at = places[word % kLanes].at[word / kLanes];
    if (at != kNowhere) f(word, static_cast<std::int64_t>(at) * 4);
  }
}

/// What a warp does of a row by its places, without flags.
inline void fill_line(const RowPlaces* places, const std::byte* from, std::byte* line) {
  each_word(places, [&](std::size_t word, std::int64_t at) {
    for (std::size_t b = 0; b < 4; ++b) line[in_lines(word, b)] = from[at + static_cast<int>(b)];
  });
}
inline void take_line(const RowPlaces* places, const std::byte* line, std::byte* to) {
  each_word(places, [&](std::size_t word, std::int64_t at) {
    for (std::size_t b = 0; b < 4; ++b) to[at + static_cast<int>(b)] = line[in_lines(word, b)];
  });
}
inline void copy_row(const RowPlaces* places, int log_unit, const std::byte* from, std::byte* to) {
  const std::int64_t unit = std::int64_t{1} << log_unit;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    for (std::size_t k = 0; k < kCopiedUnits; ++k)
      if (places[lane].at[2 * k] != kNowhere)
        std::memcpy(to + places[lane].at[2 * k + 1] * unit, from + places[lane].at[2 * k] * unit,
                    static_cast<std::size_t>(unit));
}

/// Rows as the kernel finds them.
class RowView {
 public:
  explicit RowView(const RowProgram& program) : program_(program) {}

  /// Does a row's work; false if what it waits for has not come.
  bool run(std::size_t number, std::uint64_t epoch) const {
    const Row& row = program_.rows[number];
    if (!program_.places.empty()) return run_line(row, program_.places.data() + number * kLanes, epoch);
    if (row.kind == RowKind::none || row.kind == RowKind::signal || row.kind == RowKind::await)
      return run_line(row, nullptr, epoch);
    if (row.kind == RowKind::answer && !fill_all(row, epoch)) return false;
    if (!wait_for_all(row, epoch)) return false;
    for (const auto& [line, places] : lines_of(row))
      if (!run_line(line, places.data(), epoch)) return false;
    return true;
  }

 private:
  using Words = std::vector<std::uint32_t>;
  using Places = std::array<RowPlaces, kLanes>;

  // The lines of a row without a table, each as a row of its own.
  static std::vector<std::pair<Row, Places>> lines_of(const Row& row) {
    std::vector<std::pair<Row, Places>> all;
    for (std::uint32_t i = 0; i < row.lines; ++i) {
      auto& [line, places] = all.emplace_back(row, Places());
      line.line += i * row.step;
      for (std::uint32_t lane = 0; lane < kLanes; ++lane)
        places[lane] = contiguous_places(row.kind, line.line, row.units, lane);
    }
    return all;
  }

  // Whether the row can be done as a whole: a line that has been combined must not be once more.
  bool wait_for_all(const Row& row, std::uint64_t epoch) const {
    if (row.kind == RowKind::fill || row.kind == RowKind::unpack || row.kind == RowKind::copy) return true;
    for (const auto& [line, places] : lines_of(row))
      if (!operands_have_come(line, places.data(), epoch)) return false;
    return true;
  }

  // What is taken overwrites what was sent, so all lines are sent first. They may be once more: they are the same.
  bool fill_all(const Row& row, std::uint64_t epoch) const {
    for (const auto& [line, places] : lines_of(row))
      if (!fill(line, places.data(), epoch)) return false;
    return true;
  }

  bool run_line(const Row& row, const RowPlaces* places, std::uint64_t epoch) const {
    switch (row.kind) {
      case RowKind::none:
        return true;
      case RowKind::signal:
        *row.signal.counter = target_of(row.signal, epoch);
        return true;
      case RowKind::await:
        return *row.signal.counter >= target_of(row.signal, epoch);
      case RowKind::fill:
        return fill(row, places, epoch);
      case RowKind::unpack:
        return take(row, places, epoch);
      case RowKind::copy:
        copy_row(places, row.log_unit, base_of(row.src, epoch), base_of(row.dst, epoch));
        return true;
      case RowKind::combine:
        return combine(row, places, epoch);
      case RowKind::answer:
        if (!program_.places.empty() && !fill(row, places, epoch)) return false;
        if (!operands_have_come(row, places, epoch)) return false;
        take_line(places, line_of(program_.operands[static_cast<std::size_t>(row.first_operand)].place, row, epoch),
                  base_of(program_.operands[static_cast<std::size_t>(row.first_operand) + 1].place, epoch));
        return true;
    }
    return false;
  }

  static std::byte* line_of(const GpuPlace& place, const Row& row, std::uint64_t epoch) {
    return base_of(place, epoch) + static_cast<std::int64_t>(row.line) * kLLLineBytes;
  }

  static bool has_come(const std::byte* line, const RowPlaces* places, std::uint64_t epoch) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (places[lane].at[0] != kNowhere && line[lane * 16 + 15] != static_cast<std::byte>(epoch & 0xff)) return false;
    }
    return true;
  }

  bool may_fill(const Row& row, std::uint64_t epoch) const {
    const auto given = [&](const RowSignal& signal) { return *signal.counter >= target_of(signal, epoch); };
    if (row.signal.counter == nullptr) return true;
    const auto first = program_.signals.begin() + row.first_signal;
    return given(row.signal) && std::all_of(first, first + row.more, given);
  }

  static void fill_from(const std::byte* from, std::byte* line, const RowPlaces* places, std::uint64_t epoch) {
    fill_line(places, from, line);
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      if (places[lane].at[0] != kNowhere) line[lane * 16 + 15] = static_cast<std::byte>(epoch & 0xff);
  }

  bool fill(const Row& row, const RowPlaces* places, std::uint64_t epoch) const {
    if (!may_fill(row, epoch)) return false;
    fill_from(base_of(row.src, epoch), line_of(row.dst, row, epoch), places, epoch);
    return true;
  }

  // Sends on what the row has made.
  void send_on(const Row& row, const RowPlaces* places, std::uint64_t epoch) const {
    const RowOperand* const places_of_lines = program_.operands.data() + row.first_operand + row.operands;
    for (int k = 0; k < row.sends; ++k)
      fill_from(base_of(row.dst, epoch), line_of(places_of_lines[k].place, row, epoch), places, epoch);
  }

  bool take(const Row& row, const RowPlaces* places, std::uint64_t epoch) const {
    const std::byte* const line = line_of(row.src, row, epoch);
    if (!has_come(line, places, epoch) || (row.sends > 0 && !may_fill(row, epoch))) return false;
    take_line(places, line, base_of(row.dst, epoch));
    send_on(row, places, epoch);
    return true;
  }

  bool operands_have_come(const Row& row, const RowPlaces* places, std::uint64_t epoch) const {
    const RowOperand* const operands = program_.operands.data() + row.first_operand;
    if (row.sends > 0 && !may_fill(row, epoch)) return false;
    for (int k = 0; k < row.operands; ++k) {
      if (operands[k].ll != 0 && !has_come(line_of(operands[k].place, row, epoch), places, epoch)) return false;
    }
    return true;
  }

  bool combine(const Row& row, const RowPlaces* places, std::uint64_t epoch) const {
    const RowOperand* const operands = program_.operands.data() + row.first_operand;
    if (!operands_have_come(row, places, epoch)) return false;
    const auto words = [&](const GpuPlace& place, bool ll) {
      Words all;
      each_word(places, [&](std::size_t word, std::int64_t at) {
        std::uint32_t value = 0;
        const std::byte* const from = ll ? line_of(place, row, epoch) : base_of(place, epoch) + at;
        for (std::size_t b = 0; b < 4; ++b)
          value |= static_cast<std::uint32_t>(from[ll ? in_lines(word, b) : b]) << 8 * b;
        all.push_back(value);
      });
      return all;
    };
    Words here = words(row.dst, false);
    for (int k = 0; k < row.operands; ++k) {
      const Words there = words(operands[k].place, operands[k].ll != 0);
      if (k == 0 && row.begins != 0) {
        here = there;
        continue;
      }
      StridedCopy whole;
      whole.block = std::ssize(here) * 4;
      select_reduce(whole, program_.type, program_.op)(whole, reinterpret_cast<const std::byte*>(there.data()),
                                                       reinterpret_cast<std::byte*>(here.data()));
    }
    std::size_t next = 0;
    each_word(places,
              [&](std::size_t, std::int64_t at) { std::memcpy(base_of(row.dst, epoch) + at, &here[next++], 4); });
    send_on(row, places, epoch);
    return true;
  }

  const RowProgram& program_;
};

}  // namespace gpu_view
