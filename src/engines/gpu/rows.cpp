// Cutting an epoch into rows: see rows.hpp.
#include "engines/gpu/rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "engines/gpu/row_places.hpp"

namespace tasuki {
namespace {

constexpr std::size_t kLinesToPair = 4;  // for each row

// A task, as it lies in the program's bytes.
class TaskView {
 public:
  TaskView(const GpuProgram& program, const GpuTask& task)
      : at_(program.bytes.data() + task.offset), header_(read<GpuTaskHeader>(0, 0)) {}

  int lanes() const { return header_.lanes; }
  std::int32_t end(int lane) const { return read<std::int32_t>(header_.ends, lane); }
  GpuStep step(std::int32_t n) const { return read<GpuStep>(header_.steps, n); }
  GpuCopy copy(std::int32_t n) const { return read<GpuCopy>(header_.copies, n); }
  std::vector<std::int32_t> deps(const GpuStep& step) const {
    std::vector<std::int32_t> all;
    for (std::int32_t d = 0; d < step.deps; ++d) all.push_back(read<std::int32_t>(header_.deps, step.first_dep + d));
    return all;
  }
  GpuDim dim(const GpuCopy& copy, std::int32_t n) const { return read<GpuDim>(header_.dims, copy.first_dim + n); }
  std::vector<GpuDim> dims(const GpuCopy& copy) const {
    std::vector<GpuDim> all;
    for (int d = 0; d < copy.dims; ++d) all.push_back(dim(copy, d));
    return all;
  }
  UnitLists lists(const GpuCopy& copy) const {
    return lists_of(copy, [&](std::int32_t n) { return dim(copy, n); });
  }

 private:
  template <class T>
  T read(std::int32_t list, std::int32_t index) const {
    T value;
    std::memcpy(&value, at_ + list + static_cast<std::ptrdiff_t>(index) * static_cast<std::ptrdiff_t>(sizeof value),
                sizeof value);
    return value;
  }

  const std::byte* at_;
  GpuTaskHeader header_;
};

GpuPlace moved(GpuPlace place, std::int64_t offset) {
  place.base += offset;
  return place;
}

RowSignal signal_of(const GpuStep& step) {
  return {step.counter, step.per_epoch, step.index, step.lag, step.command, step.verb, step.credit, step.alone};
}

class Cutting {
 public:
  // `contiguous`: without a table, for any number of lines.
  Cutting(const GpuProgram& program, const std::vector<GpuTask>& tasks, int most_blocks, bool contiguous)
      : program_(program),
        tasks_(tasks),
        contiguous_(contiguous),
        most_rows_(static_cast<std::size_t>(most_blocks) * kGpuWarps) {}

  std::optional<RowProgram> run() {
    if (tasks_.empty() || !add_light_lanes(TaskView(program_, tasks_[0]))) return std::nullopt;
    for (std::size_t t = 1; t < tasks_.size(); ++t) {
      const TaskView task(program_, tasks_[t]);
      for (int lane = 0; lane < task.lanes(); ++lane) {
        if (!add_lane(task, lane == 0 ? 0 : task.end(lane - 1), task.end(lane))) return std::nullopt;
      }
    }
    if (contiguous_) {
      deal_out();
      return finished();
    }
    for (auto& group : groups_) {
      for (auto& one : group) {
        made_.rows.push_back(one.row);
        made_.places.insert(made_.places.end(), one.places.begin(), one.places.end());
      }
    }
    // One block at least: every launch counts itself.
    const std::size_t whole = (std::max<std::size_t>(1, made_.rows.size()) + kGpuWarps - 1) / kGpuWarps * kGpuWarps;
    made_.rows.resize(whole);
    made_.places.resize(whole * kLanes, no_places()[0]);
    return finished();
  }

 private:
  struct One {
    Row row;
    LanePlaces places = no_places();
  };
  RowProgram finished() {
    made_.forwards = std::any_of(made_.rows.begin(), made_.rows.end(), [](const Row& row) {
      return row.sends > 0 || row.more > 0 || row.kind == RowKind::answer;
    });
    return std::move(made_);
  }

  // In the order in which they are dealt out: rows that wait for no other rank come first.
  enum Group : int { kFirst, kLocal, kLast, kGroups };
  // A strided copy whose lines several rows share.
  struct Vector {
    Group group;
    Row row;
    std::uint32_t lines;
  };

  // One thread each: lanes that only signal, or only wait.
  bool add_light_lanes(const TaskView& task) {
    for (int lane = 0; lane < task.lanes(); ++lane) {
      const std::int32_t first = lane == 0 ? 0 : task.end(lane - 1);
      for (std::int32_t s = first; s < task.end(lane); ++s) {
        const GpuStep step = task.step(s);
        const bool signals = step.verb == Verb::signal;
        if ((!signals && step.verb != Verb::wait) || step.verb != task.step(first).verb) return false;
        if (step.deps != 0 || step.awaited != 0 || step.asks != 0) return false;
        One one;
        one.row.kind = signals ? RowKind::signal : RowKind::await;
        one.row.signal = signal_of(step);
        if (!add(signals ? kFirst : kLast, one)) return false;
      }
    }
    return true;
  }

  // Moves, after waits for permission if there are any.
  bool add_lane(const TaskView& task, std::int32_t first, std::int32_t end) {
    std::vector<RowSignal> permissions;
    bool moved_before = false;
    for (std::int32_t s = first; s < end;) {
      const GpuStep step = task.step(s);
      if (step.deps != 0 || step.follows != 0 || step.keeps_turn != 0) return false;
      if (step.verb == Verb::wait) {
        if (moved_before || step.awaited != 0) return false;
        permissions.push_back(signal_of(step));
        ++s;
        continue;
      }
      moved_before = true;
      if (s + 1 < end && is_answered(task, step, task.step(s + 1))) {
        if (!add_answer(task, s, permissions)) return false;
        s += 2;
        continue;
      }
      if (step.awaited != 0) return false;
      if (step.verb == Verb::reduce) {
        if (!permissions.empty() && step.sends == 0) return false;
        if (!add_combination(task, s, permissions)) return false;
        s += 1 + step.joined;
        continue;
      }
      if (step.verb != Verb::copy && step.verb != Verb::put) return false;
      if (!permissions.empty() && step.ll_side != kLLTarget) return false;
      for (std::int32_t c = step.first_copy; c < step.first_copy + step.copies; ++c) {
        if (!add_move(task, step, task.copy(c), permissions)) return false;
      }
      ++s;
    }
    return permissions.empty() || moved_before;
  }

  // What a row waits for before it stores into lines of another rank.
  void permit(Row& row, const std::vector<RowSignal>& permissions) {
    if (permissions.empty()) return;
    row.signal = permissions.front();
    row.more = static_cast<std::int8_t>(permissions.size() - 1);
    row.first_signal = static_cast<std::int32_t>(made_.signals.size());
    made_.signals.insert(made_.signals.end(), permissions.begin() + 1, permissions.end());
  }

  bool add_move(const TaskView& task, const GpuStep& step, const GpuCopy& copy,
                const std::vector<RowSignal>& permissions) {
    Row row;
    row.kind = step.ll_side == kLLTarget ? RowKind::fill : step.ll_side == kLLSource ? RowKind::unpack : RowKind::copy;
    row.log_unit = copy.log_unit;
    row.command = step.command;
    row.src = moved(step.src, copy.src_offset);
    row.dst = moved(step.dst, copy.dst_offset);
    permit(row, permissions);
    const Group group = row.kind == RowKind::fill ? kFirst : row.kind == RowKind::unpack ? kLast : kLocal;
    return add_rows(group, row, copy.units, task.dims(copy), task.lists(copy));
  }

  // Whether what comes back after a put, from another rank, is as long, and nothing but that may wait for the put: if
  // it overwrites what was sent.
  bool is_answered(const TaskView& task, const GpuStep& put, const GpuStep& take) const {
    if (put.verb != Verb::put || put.ll_side != kLLTarget || put.copies != 1) return false;
    if (take.verb != Verb::copy || take.ll_side != kLLSource || take.copies != 1) return false;
    if (take.awaited != 0 || take.keeps_turn != 0 || take.deps > 1) return false;
    const GpuCopy sent = task.copy(put.first_copy);
    const GpuCopy taken = task.copy(take.first_copy);
    if (sent.units != taken.units || sent.listed != 0 || taken.listed != 0 || !contiguous(task.dims(sent)) ||
        !contiguous(task.dims(taken)))
      return false;
    if (put.awaited == 0) return take.deps == 0 && take.follows == 0;
    return take.follows != 0 && waiting_for(put.end) <= take.deps &&
           same(moved(put.src, sent.src_offset), moved(take.dst, taken.dst_offset));
  }

  // A warp that has sent a line unpacks the same one.
  bool add_answer(const TaskView& task, std::int32_t s, const std::vector<RowSignal>& permissions) {
    const GpuStep put = task.step(s);
    const GpuStep take = task.step(s + 1);
    const GpuCopy sent = task.copy(put.first_copy);
    const GpuCopy taken = task.copy(take.first_copy);
    Row row;
    row.src = moved(put.src, sent.src_offset);
    row.dst = moved(put.dst, sent.dst_offset);
    permit(row, permissions);
    answer_with(row, moved(take.src, taken.src_offset), moved(take.dst, taken.dst_offset), take.command);
    if (put.awaited != 0) made_.ends.push_back(put.end);
    return add_rows(kFirst, row, sent.units, task.dims(sent), {});
  }

  // Lets a row that fills lines unpack others, from lines at `from`, into memory at `to`.
  void answer_with(Row& row, const GpuPlace& from, const GpuPlace& to, std::int32_t command) {
    row.kind = RowKind::answer;
    row.command = command;
    row.operands = 1;
    row.first_operand = static_cast<std::int32_t>(made_.operands.size());
    made_.operands.push_back({from, command, 1});
    made_.operands.push_back({to, command, 0});
  }

  static bool same(const GpuPlace& a, const GpuPlace& b) {
    return a.base == b.base && a.stride == b.stride && a.copies == b.copies && a.pair == b.pair &&
           a.takes_turns == b.takes_turns;
  }
  // Units that follow each other in the user's memory. On the other side are LL lines.
  static bool contiguous(const std::vector<GpuDim>& dims) {
    return dims.size() == 1 && (dims[0].count == 1 || std::max(dims[0].src_stride, dims[0].dst_stride) == 1);
  }
  // How many steps wait for an end.
  std::int32_t waiting_for(std::int32_t end) const {
    std::int32_t count = 0;
    for (const GpuTask& one : tasks_) {
      const TaskView task(program_, one);
      for (std::int32_t s = 0; s < task.end(task.lanes() - 1); ++s)
        for (const std::int32_t dep : task.deps(task.step(s))) count += dep == end ? 1 : 0;
    }
    return count;
  }

  // A step and those that are joined to it.
  bool add_combination(const TaskView& task, std::int32_t s, const std::vector<RowSignal>& permissions) {
    const GpuStep head = task.step(s);
    const int operands = head.joined + 1 - head.sends;
    const bool ll_only = operands == 1 && head.begins != 0;  // it is only forwarded
    if (head.by_lines == 0 || operands > kRowOperands || head.copies != 1) return false;
    if (!ll_only) {
      if (made_.reduces && (made_.type != head.dtype || made_.op != head.op)) return false;
      made_.reduces = true;
      made_.type = head.dtype;
      made_.op = head.op;
    }
    const GpuCopy copy = task.copy(head.first_copy);
    Row row;
    row.kind = ll_only ? RowKind::unpack : RowKind::combine;
    row.command = head.command;
    row.begins = head.begins;
    row.operands = static_cast<std::int8_t>(operands);
    row.sends = head.sends;
    row.first_operand = static_cast<std::int32_t>(made_.operands.size());
    row.src = moved(head.src, copy.src_offset);
    row.dst = moved(head.dst, copy.dst_offset);
    permit(row, permissions);
    bool waits = false;
    for (std::int32_t k = 0; k <= head.joined; ++k) {
      const GpuStep its = task.step(s + k);
      if (its.copies != 1) return false;
      const GpuCopy its_copy = task.copy(its.first_copy);
      if (k >= operands) {
        made_.operands.push_back({moved(its.dst, its_copy.dst_offset), its.command, 0});
        continue;
      }
      const bool ll = its.ll_side == kLLSource;
      if (!ll && (its_copy.listed != 0 || !same_places(task.dims(its_copy)))) return false;
      waits = waits || ll;
      made_.operands.push_back({moved(its.src, its_copy.src_offset), its.command, ll ? 1 : 0});
    }
    return add_rows(waits ? kLast : kLocal, row, copy.units, task.dims(copy), task.lists(copy));
  }

  // Whether units lie alike on both sides.
  static bool same_places(const std::vector<GpuDim>& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const GpuDim& d) { return d.src_stride == d.dst_stride; });
  }

  bool add_rows(Group group, const Row& row, std::uint32_t units, const std::vector<GpuDim>& dims,
                const UnitLists& lists) {
    const bool fills = row.kind == RowKind::fill || row.kind == RowKind::answer;
    const Listed what = row.kind == RowKind::copy ? Listed::both : fills ? Listed::source : Listed::destination;
    const std::int64_t row_units = listed_units(what);
    const std::int64_t lines = (units + row_units - 1) / row_units;
    if (contiguous_) return lists.empty() && add_vector(group, row, units, lines, dims);
    if (count_ + static_cast<std::size_t>(lines) > most_rows_) return false;
    for (std::int64_t line = 0; line < lines; ++line) {
      const auto places = places_of(what, dims, dims.size(), lists, line * row_units, units);
      if (!places) return false;
      One one{row, *places};
      one.row.line = static_cast<std::uint32_t>(line);
      if (!add(group, one)) return false;
    }
    return true;
  }

  bool add_vector(Group group, Row row, std::uint32_t units, std::int64_t lines, const std::vector<GpuDim>& dims) {
    const bool fills = row.kind == RowKind::fill || row.kind == RowKind::answer;
    const bool takes = row.kind == RowKind::unpack || row.kind == RowKind::combine;
    const bool in_order =
        dims.size() == 1 && (units == 1 || ((takes || dims[0].src_stride == 1) && (fills || dims[0].dst_stride == 1)));
    row.units = units;
    vectors_.push_back({group, row, static_cast<std::uint32_t>(lines)});
    return in_order && ++count_ <= most_rows_;
  }

  // Each vector gets a row, and of those that are left as many as `shares` says. Those that fill come first, those that
  // take last: an SM whose stores wait for the wire lets no load go before them.
  void deal_out() {
    pair_up();
    std::vector<Row> groups[kGroups];
    for (std::size_t g = 0; g < kGroups; ++g)
      for (const One& one : groups_[g]) groups[g].push_back(one.row);
    const std::vector<std::uint64_t> more = shares(most_rows_ - count_);
    for (std::size_t v = 0; v < vectors_.size(); ++v) {
      const Vector& vector = vectors_[v];
      Row row = vector.row;
      row.step = 1 + static_cast<std::uint32_t>(more[v]);
      for (; row.line < row.step; ++row.line) {
        row.lines = (vector.lines - row.line + row.step - 1) / row.step;
        groups[vector.group].push_back(row);
      }
    }
    for (const auto& group : groups) made_.rows.insert(made_.rows.end(), group.begin(), group.end());
    made_.rows.resize((std::max<std::size_t>(1, made_.rows.size()) + kGpuWarps - 1) / kGpuWarps * kGpuWarps);
  }

  // Makes one vector of each that is filled and another one, as long, that is taken, where there are several of both
  // and many lines a row. All warps then keep the wires busy. An allgather of 256 MiB among four H200s took 740 us
  // without that, and takes 630. One pair of vectors gains nothing, and combining between filling costs a tenth.
  void pair_up() {
    std::vector<Vector*> fills;
    std::vector<Vector*> takes;
    std::size_t lines = 0;
    for (Vector& v : vectors_) {
      if (v.row.kind == RowKind::fill) fills.push_back(&v);
      if (v.row.kind == RowKind::unpack && v.row.sends == 0) takes.push_back(&v);
      lines += v.lines;
    }
    if (fills.size() < 2 || fills.size() != takes.size() || lines < kLinesToPair * most_rows_) return;
    for (Vector* fill : fills) {
      const auto take = std::find_if(takes.begin(), takes.end(), [&](const Vector* v) {
        return v->row.kind == RowKind::unpack && v->row.units == fill->row.units;
      });
      if (take == takes.end()) continue;
      const Row& taken = (*take)->row;
      answer_with(fill->row, taken.src, taken.dst, taken.command);
      (*take)->row.kind = RowKind::none;
      --count_;
    }
    std::erase_if(vectors_, [](const Vector& v) { return v.row.kind == RowKind::none; });
  }

  // Shares `left` rows among the vectors, by their lines and what a line takes. A vector gets no more rows than it has
  // lines; the other vectors get the rest.
  std::vector<std::uint64_t> shares(std::uint64_t left) const {
    std::vector<std::uint64_t> more(vectors_.size());
    const auto wants = [&](std::size_t v) { return vectors_[v].lines - 1 - more[v]; };
    const auto weight = [&](std::size_t v) { return work_of(vectors_[v].row) * (vectors_[v].lines - 1); };
    for (bool again = true; again;) {
      std::uint64_t all = 0;
      for (std::size_t v = 0; v < vectors_.size(); ++v) all += wants(v) > 0 ? weight(v) : 0;
      const std::uint64_t given = left;
      again = false;
      for (std::size_t v = 0; v < vectors_.size(); ++v) {
        if (wants(v) == 0) continue;
        const std::uint64_t its = std::min(wants(v), given * weight(v) / all);
        more[v] += its;
        left -= its;
        again = again || wants(v) == 0;
      }
    }
    return more;
  }
  // A warp that fills waits for the wire alone, which few SMs keep busy. One that combines waits for what it loads.
  // Between two H200s a reduce-scatter of 16 MiB took 32 us with equal shares and takes 29.6 with these, an allreduce
  // took 60 us and takes 56. Among four an allreduce by `relay`, which also forwards what it combines, took 104 us with
  // twice the warps of an equal share, 97 with three times, and takes 89 with four times.
  static std::uint64_t work_of(const Row& row) {
    if (row.kind == RowKind::combine) return row.sends > 0 ? 4 : 3;
    return row.kind == RowKind::answer ? 2 : 1;
  }

  bool add(Group group, const One& one) {
    groups_[static_cast<std::size_t>(group)].push_back(one);
    return ++count_ <= most_rows_;
  }

  const GpuProgram& program_;
  const std::vector<GpuTask>& tasks_;
  const bool contiguous_;
  const std::size_t most_rows_;
  std::size_t count_ = 0;
  std::vector<Vector> vectors_;
  std::array<std::vector<One>, kGroups> groups_;
  RowProgram made_;
};

}  // namespace

std::optional<RowProgram> rows_of(const GpuProgram& program, const std::vector<GpuTask>& tasks, int most_blocks) {
  std::optional<RowProgram> made = Cutting(program, tasks, most_blocks, false).run();
  return made ? made : Cutting(program, tasks, most_blocks, true).run();
}

}  // namespace tasuki
