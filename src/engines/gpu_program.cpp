// Lowering to a GPU program: see gpu_program.hpp.
#include "engines/gpu_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "engines/message_order.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// So much is worth another thread block: bytes where they lie together, units where each is a memory access of its own.
constexpr std::int64_t kBytesPerBlock = 8 << 10;
constexpr std::int64_t kUnitsPerBlock = 256;
constexpr std::int64_t kMostUnits = std::int64_t{1} << 30;
// So many are enough to keep the way to the host busy, where staging is.
constexpr std::int64_t kStagingBlocks = 16;

GpuDim dim_of(std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride) {
  GpuDim dim;
  dim.count = static_cast<std::uint32_t>(count);
  const auto log = static_cast<std::uint32_t>(std::bit_width(dim.count - 1));  // of the next power of two
  dim.shift = 31 + log;
  dim.magic = static_cast<std::uint32_t>(((std::uint64_t{1} << dim.shift) + dim.count - 1) / dim.count);
  dim.src_stride = src_stride;
  dim.dst_stride = dst_stride;
  return dim;
}

bool moves_data(Verb verb) {
  return verb == Verb::copy || verb == Verb::put || verb == Verb::reduce;
}

// A task while it is put together.
struct Parts {
  std::vector<std::int32_t> ends;
  std::vector<GpuStep> steps;
  std::vector<GpuCopy> copies;
  std::vector<GpuDim> dims;
  std::vector<std::int32_t> deps;
  std::int64_t bytes = 0;  // that it moves
  std::int64_t units = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // blocks that may share it
  bool staging = false;                                          // messages that a thread carries come and go there
  // Thread blocks that it is worth.
  std::int64_t blocks() const {
    return std::min(most, std::max({std::int64_t{1}, bytes / kBytesPerBlock, units / kUnitsPerBlock}));
  }
};

class Lowering {
  struct Lane {
    std::size_t first = 0;
    std::size_t last = 0;  // past the last command
    bool asks = false;     // for messages, while it goes on
  };

 public:
  Lowering(const Program& program, int most_blocks, bool atomics)
      : in_(program),
        plan_(program.plan),
        most_(most_blocks),
        atomics_(atomics),
        awaited_(plan_.commands.size(), false),
        asked_(plan_.commands.size(), false),
        late_(plan_.commands.size(), false) {
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      asked_[i] = in_.channels[i] != nullptr && in_.channels[i]->ended() != nullptr;
      const bool fresh = i == 0 || plan_.commands[i].lane != plan_.commands[i - 1].lane;
      if (fresh) lanes_.push_back({i, i, false});
      lanes_.back().last = i + 1;
      lanes_.back().asks = lanes_.back().asks || asked_[i];
    }
    deps_ = message_order(plan_, asked_);
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      const Command& c = plan_.commands[i];
      for (auto d = c.first_dep; d < c.first_dep + c.dep_count; ++d) {
        deps_[i].push_back(plan_.deps[static_cast<std::size_t>(d)]);
      }
      for (const auto dep : deps_[i]) awaited_[static_cast<std::size_t>(dep)] = true;
    }
    for (const Lane& lane : lanes_) {
      if (lane.asks) find_late(lane);
    }
  }

  GpuProgram run() {
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      if (in_stream(i)) out_.messages.push_back(static_cast<std::int32_t>(i));
    }
    out_.in_line = !out_.messages.empty() &&
                   std::none_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) { return stands_alone(lane); });
    std::int64_t worth[kBoth] = {};
    for (const int parts : {kPartStart, kPartWait, kBoth, kPartPack, kPartUnpack, kBefore, kAfter}) {
      if (parts > kBoth && out_.messages.empty()) break;
      if ((parts == kBefore || parts == kAfter) && !out_.in_line) continue;
      Parts light;
      std::vector<Parts> tasks;
      for (const Lane& lane : lanes_) {
        Parts task;
        Parts asks;
        Parts waits;
        for (std::size_t i = lane.first; i < lane.last; ++i) {
          const auto command = static_cast<std::int32_t>(i);
          if (asked_[i]) {
            if ((part_of(lane, i) & parts) != 0) add_ask(asks, command);
            if ((kPartWait & parts) != 0) add_answer(waits, command);
          } else if ((part_of(lane, i) & parts) != 0) {
            add_step(task, command);
          }
        }
        if (task.units > 0) {
          if (lane.asks) {
            task.staging = true;
            task.most = std::min(task.most, kStagingBlocks);
          }
          task.ends.push_back(static_cast<std::int32_t>(task.steps.size()));
          tasks.push_back(std::move(task));
        } else {
          add_light_lane(light, task);
        }
        add_light_lane(light, asks);
        add_light_lane(light, waits);
      }
      if (parts == kBoth) out_.direct = !tasks.empty() || !light.steps.empty();
      const bool both_want_most = 2 * std::min(worth[kPartStart], worth[kPartWait]) > most_;
      if (parts == kBoth && both_want_most &&
          out_.tasks[kPartStart].size() + out_.tasks[kPartWait].size() <= kGpuTasks) {
        in_rounds();
        continue;
      }
      if (parts < kBoth) worth[parts] = worth_of(tasks);
      tasks.insert(tasks.begin(), std::move(light));
      deal_out(tasks, parts);
    }
    return std::move(out_);
  }

 private:
  // Whether the lane's message cannot stand between two kernels that serve all lanes: it needs something that arrives,
  // or is no message but a copy, which takes long to begin and had better do so while the first kernel works.
  bool stands_alone(const Lane& lane) const {
    bool depends = false;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      depends = depends || plan_.commands[i].dep_count > 0;
      if (in_stream(i) && (depends || plan_.commands[i].verb == Verb::put)) return true;
    }
    return false;
  }

  // Which of the commands of a lane that asks for messages cannot begin before something has arrived.
  void find_late(const Lane& lane) {
    bool moved_late = false;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Command& c = plan_.commands[i];
      if (in_stream(i)) {
        throw Error(fmt::format("rank {}: {}: lane {} has messages of two kinds (a defect in Tasuki)", plan_.rank,
                                plan_.operation, c.lane));
      }
      late_[i] = c.dep_count > 0 || c.verb == Verb::wait || (!asked_[i] && moved_late) ||
                 std::any_of(deps_[i].begin(), deps_[i].end(), [&](std::int32_t dep) {
                   return asked_[static_cast<std::size_t>(dep)] || late_[static_cast<std::size_t>(dep)];
                 });
      moved_late = moved_late || (!asked_[i] && late_[i]);
    }
  }

  // In thread blocks. Without those that receive what is stamped while it comes, and those that send it; and without
  // those whose messages travel meanwhile, which had better pack some while they unpack others.
  static std::int64_t worth_of(const std::vector<Parts>& tasks) {
    std::int64_t sum = 0;
    for (const Parts& task : tasks) {
      const bool stamped = std::any_of(task.steps.begin(), task.steps.end(), [](const auto& s) { return s.stamped; });
      if (!stamped && !task.staging) sum += task.blocks();
    }
    return sum;
  }

  // The two parts one after the other, each by all blocks: they are what they are as kernels of their own.
  void in_rounds() {
    const auto& start = out_.tasks[kPartStart];
    const auto& wait = out_.tasks[kPartWait];
    auto& both = out_.tasks[kBoth];
    both = start;
    both.insert(both.end(), wait.begin(), wait.end());
    out_.blocks[kBoth] = std::max(out_.blocks[kPartStart], out_.blocks[kPartWait]);
    const auto first = static_cast<std::int32_t>(start.size());
    out_.rounds[kBoth] = {{0, first, out_.blocks[kPartStart]},
                          {first, static_cast<std::int32_t>(both.size()), out_.blocks[kPartWait]}};
  }

  bool in_stream(std::size_t command) const { return in_.channels[command] != nullptr && !asked_[command]; }

  // A lane that waits for what it then unpacks, or only waits, belongs to the wait, but for what it tells beforehand.
  int part_of(const Lane& lane, std::size_t command) const {
    if (in_stream(command)) return 0;
    if (lane.asks) return late_[command] ? kPartWait : kPartStart;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      if (in_stream(i)) return command < i ? kPartPack : kPartUnpack;
    }
    const auto begin = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.first);
    const auto end = plan_.commands.begin() + static_cast<std::ptrdiff_t>(lane.last);
    const bool waits = std::any_of(begin, end, [](const Command& c) { return c.verb == Verb::wait; });
    const bool puts = std::any_of(begin, end, [](const Command& c) { return c.verb == Verb::put; });
    const bool depends = std::any_of(begin, end, [](const Command& c) { return c.dep_count > 0; });
    if ((!waits || puts) && !depends) return kPartStart;
    const auto told = std::find_if(begin, end, [](const Command& c) { return c.verb != Verb::signal; });
    return static_cast<std::size_t>(told - plan_.commands.begin()) > command ? kPartStart : kPartWait;
  }

  GpuPlace place(std::int32_t buffer) {
    const Located& where = in_.where[static_cast<std::size_t>(buffer)];
    GpuPlace place;
    place.base = where.base;
    place.stride = where.stride;
    place.copies = static_cast<std::uint32_t>(where.copies);
    place.takes_turns = where.takes_turns ? 1 : 0;
    if (where.copies < 2 || where.current == nullptr) return place;
    const auto known = std::find(out_.pairs.begin(), out_.pairs.end(), where.current);
    place.pair = static_cast<std::int16_t>(known - out_.pairs.begin());
    if (known == out_.pairs.end()) out_.pairs.push_back(where.current);
    if (out_.pairs.size() > kGpuPairs) {
      throw Error(fmt::format("rank {}: {}: {} fields with two copies; one operation on GPU memory takes at most {}",
                              plan_.rank, plan_.operation, out_.pairs.size(), kGpuPairs));
    }
    if (where.takes_turns) out_.turning |= std::uint64_t{1} << place.pair;
    return place;
  }

  // Without what the task's earlier steps have waited for.
  void add_deps(Parts& task, GpuStep& step) const {
    step.first_dep = static_cast<std::int32_t>(task.deps.size());
    for (const auto dep : deps_[static_cast<std::size_t>(step.command)]) {
      if (std::find(task.deps.begin(), task.deps.end(), dep) == task.deps.end()) task.deps.push_back(dep);
    }
    step.deps = static_cast<std::int32_t>(task.deps.size()) - step.first_dep;
  }

  // Asks for a message: its staging has been packed, or is free, because earlier epochs are in the same stream.
  void add_ask(Parts& lane, std::int32_t index) const {
    GpuStep s;
    s.verb = Verb::signal;
    s.command = index;
    s.counter = in_.channels[static_cast<std::size_t>(index)]->asked();
    s.per_epoch = 1;
    s.untold = 1;
    add_deps(lane, s);
    lane.steps.push_back(s);
  }

  // Waits until it has ended. Nobody else looks at the host's word: those who depend on it wait in the GPU's memory.
  void add_answer(Parts& lane, std::int32_t index) const {
    GpuStep s;
    s.verb = Verb::wait;
    s.command = index;
    s.counter = const_cast<std::uint64_t*>(in_.channels[static_cast<std::size_t>(index)]->ended());  // waits only read
    s.per_epoch = 1;
    s.awaited = awaited_[static_cast<std::size_t>(index)] ? 1 : 0;
    lane.steps.push_back(s);
  }

  static void add_light_lane(Parts& light, Parts& lane) {
    if (lane.steps.empty()) return;
    for (GpuStep& step : lane.steps) step.first_dep += static_cast<std::int32_t>(light.deps.size());
    light.steps.insert(light.steps.end(), lane.steps.begin(), lane.steps.end());
    light.deps.insert(light.deps.end(), lane.deps.begin(), lane.deps.end());
    light.ends.push_back(static_cast<std::int32_t>(light.steps.size()));
  }

  void add_step(Parts& task, std::int32_t index) {
    const Command& c = plan_.commands[static_cast<std::size_t>(index)];
    if (c.loop >= 0) {
      throw Error(fmt::format("rank {}: {}: engine 'stream' cannot run chunk loops; use host memory", plan_.rank,
                              plan_.operation));
    }
    GpuStep s;
    s.verb = c.verb;
    s.dtype = c.dtype;
    s.command = index;
    s.awaited = awaited_[static_cast<std::size_t>(index)] ? 1 : 0;
    if (c.verb == Verb::signal || c.verb == Verb::wait) {
      const auto buffer = static_cast<std::size_t>(c.verb == Verb::signal ? c.dst : c.src);
      if (in_.where[buffer].stamped) return;  // the stamps themselves say it
      s.counter = reinterpret_cast<std::uint64_t*>(in_.where[buffer].base);
      s.per_epoch = static_cast<std::uint64_t>(plan_.buffers[buffer].per_epoch);
      s.index = static_cast<std::uint64_t>(c.index);
      s.lag = static_cast<std::uint32_t>(c.lag);
      s.credit = c.credit ? 1 : 0;
    }
    add_deps(task, s);
    if (moves_data(c.verb)) {
      s.src = place(c.src);
      s.dst = place(c.dst);
      if (stamped(c.src)) s.stamped = kStampedSource;
      if (stamped(c.dst)) s.stamped = kStampedTarget;
      s.first_copy = static_cast<std::int32_t>(task.copies.size());
      for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
        task.units += add_copy(task, plan_.copies[static_cast<std::size_t>(k)], c);
      }
      s.copies = static_cast<std::int32_t>(task.copies.size()) - s.first_copy;
      task.bytes += c.bytes;
      // Additions keep their order, and a counter that advances several times in an epoch has no room for shares.
      if (c.verb == Verb::reduce || !may_share(c.lane)) task.most = 1;
    }
    task.steps.push_back(s);
  }

  bool stamped(std::int32_t buffer) const { return in_.where[static_cast<std::size_t>(buffer)].stamped; }

  // Whether several blocks may run the lane and add their shares to its signals.
  bool may_share(std::int32_t lane) const {
    for (const Command& c : plan_.commands) {
      if (c.lane != lane || c.verb != Verb::signal || stamped(c.dst)) continue;
      if (!atomics_ || plan_.buffers[static_cast<std::size_t>(c.dst)].per_epoch > 1) return false;
    }
    return true;
  }

  // Adds the copy in the widest units that its addresses and strides allow; returns how many.
  std::int64_t add_copy(Parts& task, const StridedCopy& copy, const Command& c) {
    std::int64_t unit = c.verb == Verb::reduce ? size_of(c.dtype) : 16;
    if (c.verb != Verb::reduce) {
      const auto fits = [&](std::int64_t value) {
        while (value % unit != 0) unit /= 2;
      };
      for (const auto b : {c.src, c.dst}) {
        const Located& where = in_.where[static_cast<std::size_t>(b)];
        fits(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(where.base) % 16));
        fits(where.copies > 1 ? std::abs(where.stride) : 0);
      }
      fits(copy.src_offset);
      fits(copy.dst_offset);
      fits(copy.block);
      for (int d = 0; d < copy.ndims; ++d) {
        fits(std::abs(copy.dims[d].src_stride));
        fits(std::abs(copy.dims[d].dst_stride));
      }
    }
    const std::int64_t units = copy.bytes() / unit;
    if (units > kMostUnits) return add_halves(task, copy, c);
    if (units == 0) return 0;
    const std::int64_t src_scale = stamped(c.src) ? 2 : 1;
    const std::int64_t dst_scale = stamped(c.dst) ? 2 : 1;
    GpuCopy out;
    out.src_offset = copy.src_offset * src_scale;
    out.dst_offset = copy.dst_offset * dst_scale;
    out.units = static_cast<std::uint32_t>(units);
    out.log_unit = static_cast<std::int16_t>(std::bit_width(static_cast<std::uint64_t>(unit)) - 1);
    out.first_dim = static_cast<std::int32_t>(task.dims.size());
    const auto add_dim = [&](std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride) {
      task.dims.push_back(dim_of(count, src_stride * src_scale, dst_stride * dst_scale));
    };
    if (copy.block > unit || copy.ndims == 0) add_dim(copy.block / unit, unit, unit);
    for (int d = copy.ndims - 1; d >= 0; --d) {
      add_dim(copy.dims[d].count, copy.dims[d].src_stride, copy.dims[d].dst_stride);
    }
    out.dims = static_cast<std::int16_t>(static_cast<std::int32_t>(task.dims.size()) - out.first_dim);
    task.copies.push_back(out);
    return units;
  }

  // Too large for the kernel's numbers: two of half the size.
  std::int64_t add_halves(Parts& task, const StridedCopy& copy, const Command& c) {
    StridedCopy first = copy;
    StridedCopy second = copy;
    const auto end = copy.dims.begin() + copy.ndims;
    const auto d = std::find_if(copy.dims.begin(), end, [](const auto& dim) { return dim.count > 1; });
    if (d == end) {
      first.block = copy.block / 32 * 16;
      second.block = copy.block - first.block;
      second.src_offset += first.block;
      second.dst_offset += first.block;
    } else {
      const auto i = static_cast<std::size_t>(d - copy.dims.begin());
      first.dims[i].count /= 2;
      second.dims[i].count -= first.dims[i].count;
      second.src_offset += first.dims[i].count * d->src_stride;
      second.dst_offset += first.dims[i].count * d->dst_stride;
    }
    return add_copy(task, first, c) + add_copy(task, second, c);
  }

  // Thread blocks in proportion to what the tasks are worth, so that they end together.
  void deal_out(std::vector<Parts>& tasks, int parts) {
    if (tasks.size() > kGpuTasks) {
      throw Error(fmt::format("rank {}: {}: {} lanes move data; one operation on GPU memory takes at most {}",
                              plan_.rank, plan_.operation, tasks.size(), kGpuTasks - 1));
    }
    if (tasks[0].ends.size() > kGpuThreads) {
      throw Error(
          fmt::format("rank {}: {}: {} threads would tell other ranks or wait for them; one operation on GPU "
                      "memory takes at most {}",
                      plan_.rank, plan_.operation, tasks[0].ends.size(), kGpuThreads));
    }
    std::int64_t sum = 0;
    for (const Parts& task : tasks) sum += task.blocks();
    for (Parts& task : tasks) {
      std::int64_t blocks = task.blocks();
      if (sum > most_) blocks = std::max<std::int64_t>(1, blocks * most_ / sum);
      cut(task, blocks);
      GpuTask out;
      out.offset = static_cast<std::uint32_t>(out_.bytes.size());
      out.first_block = out_.blocks[parts];
      write(task);
      out.bytes = static_cast<std::uint32_t>(out_.bytes.size()) - out.offset;
      out_.blocks[parts] += static_cast<int>(blocks);
      out_.tasks[parts].push_back(out);
    }
    out_.rounds[parts] = {{0, static_cast<std::int32_t>(out_.tasks[parts].size()), out_.blocks[parts]}};
  }

  // Tiles of few units if there are few: one for each thread, all in flight at once. Else of as many as a thread can
  // keep in flight.
  static void cut(Parts& task, std::int64_t blocks) {
    const auto units =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(task.units / (kGpuThreads * blocks), 1, kTileUnits));
    for (GpuStep& step : task.steps) {
      step.tile_units = units;
      for (std::int32_t k = step.first_copy; k < step.first_copy + step.copies; ++k) {
        GpuCopy& copy = task.copies[static_cast<std::size_t>(k)];
        copy.first_tile = step.tiles;
        step.tiles += (copy.units + 32 * units - 1) / (32 * units);
      }
    }
  }

  void write(const Parts& task) {
    const std::size_t begin = out_.bytes.size();
    out_.bytes.resize(begin + (sizeof(GpuTaskHeader) + 15) / 16 * 16);
    const auto put = [&](const auto& values) {
      const std::size_t at = out_.bytes.size();
      const std::size_t bytes = values.size() * sizeof(values[0]);
      out_.bytes.resize(at + (bytes + 15) / 16 * 16);
      if (bytes > 0) std::memcpy(out_.bytes.data() + at, values.data(), bytes);
      return static_cast<std::int32_t>(at - begin);
    };
    GpuTaskHeader header;
    header.lanes = static_cast<std::int32_t>(task.ends.size());
    header.ends = put(task.ends);
    header.steps = put(task.steps);
    header.copies = put(task.copies);
    header.dims = put(task.dims);
    header.deps = put(task.deps);
    std::memcpy(out_.bytes.data() + begin, &header, sizeof header);
  }

  const Program& in_;
  const Plan& plan_;
  int most_;
  bool atomics_;
  std::vector<bool> awaited_;  // somebody depends on it
  std::vector<bool> asked_;    // messages that the GPU asks others than the stream for
  std::vector<bool> late_;     // in lanes that ask
  std::vector<std::vector<std::int32_t>> deps_;
  std::vector<Lane> lanes_;
  GpuProgram out_;
};

}  // namespace

GpuProgram lower(const Program& program, int most_blocks, bool atomics) {
  return Lowering(program, most_blocks, atomics).run();
}

std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target) {
  const Command& c = plan.commands[static_cast<std::size_t>(command)];
  const std::string what =
      c.verb == Verb::wait ? plan.buffers[static_cast<std::size_t>(c.src)].name : std::string(to_string(c.verb));
  const std::string dead = runtime.liveness().failure(runtime.everyone());
  return fmt::format("rank {}: {}: epoch {} did not end: the GPU waited for #{} {} with rank {} (at {}, needs {}){}",
                     plan.rank, plan.operation, epoch, command, what, c.peer, value / kSignal, target / kSignal,
                     dead.empty() ? fmt::format(" for {} s", runtime.deadline) : "; " + dead);
}

}  // namespace tasuki
