// Lowering to a GPU program: see gpu_program.hpp.
#include "engines/gpu_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kBytesPerBlock = 16 << 10;  // so much is worth another thread block
constexpr std::int64_t kMostUnits = std::int64_t{1} << 30;

GpuDim dim_of(std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride) {
  GpuDim dim;
  dim.count = static_cast<std::uint32_t>(count);
  const auto log = static_cast<std::uint32_t>(std::bit_width(dim.count - 1));  // ceil of the logarithm
  dim.shift = 31 + log;
  dim.magic = static_cast<std::uint32_t>(((std::uint64_t{1} << dim.shift) + dim.count - 1) / dim.count);
  dim.src_stride = src_stride;
  dim.dst_stride = dst_stride;
  return dim;
}

bool moves_data(Verb verb) {
  return verb == Verb::copy || verb == Verb::put || verb == Verb::reduce;
}

class Lowering {
 public:
  Lowering(const Program& program, int most_blocks) : in_(program), plan_(program.plan), most_(most_blocks) {}

  GpuProgram run() {
    places();
    std::vector<bool> awaited(plan_.commands.size(), false);
    for (const auto dep : plan_.deps) awaited[static_cast<std::size_t>(dep)] = true;
    out_.deps = plan_.deps;
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      const Command& c = plan_.commands[i];
      if (out_.lanes.empty() || plan_.commands[static_cast<std::size_t>(out_.lanes.back().first)].lane != c.lane) {
        out_.lanes.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(i), {}});
        bytes_.push_back(0);
      }
      out_.lanes.back().last = static_cast<std::int32_t>(i) + 1;
      out_.steps.push_back(step(c, static_cast<std::int32_t>(i)));
      out_.steps.back().awaited = awaited[i] ? 1 : 0;
    }
    for (auto& lane : out_.lanes) parts(lane);
    deal_out();
    return std::move(out_);
  }

 private:
  void places() {
    for (const Located& where : in_.where) {
      GpuPlace place;
      place.base = where.base;
      place.stride = where.stride;
      place.copies = static_cast<std::uint32_t>(where.copies);
      place.takes_turns = where.takes_turns ? 1 : 0;
      if (where.copies > 1 && where.current != nullptr) {
        const auto known = std::find(out_.pairs.begin(), out_.pairs.end(), where.current);
        place.pair = static_cast<std::int32_t>(known - out_.pairs.begin());
        if (known == out_.pairs.end()) out_.pairs.push_back(where.current);
      }
      out_.places.push_back(place);
    }
    if (out_.pairs.size() > kGpuPairs) {
      throw Error(fmt::format("rank {}: {}: {} fields with two copies; one operation on GPU memory takes at most {}",
                              plan_.rank, plan_.operation, out_.pairs.size(), kGpuPairs));
    }
  }

  GpuStep step(const Command& c, std::int32_t index) {
    if (c.loop >= 0 || in_.channels[static_cast<std::size_t>(index)]) {
      throw Error(fmt::format("rank {}: {}: engine 'stream' cannot run {}; use another path or host memory", plan_.rank,
                              plan_.operation, c.loop >= 0 ? "chunk loops" : "messages through the host"));
    }
    GpuStep s;
    s.verb = c.verb;
    s.dtype = c.dtype;
    s.command = index;
    s.src = c.src;
    s.dst = c.dst;
    s.first_dep = c.first_dep;
    s.deps = c.dep_count;
    if (c.verb == Verb::signal || c.verb == Verb::wait) {
      const auto buffer = static_cast<std::size_t>(c.verb == Verb::signal ? c.dst : c.src);
      s.counter = reinterpret_cast<std::uint64_t*>(in_.where[buffer].base);
      s.per_epoch = static_cast<std::uint64_t>(plan_.buffers[buffer].per_epoch);
      s.index = static_cast<std::uint64_t>(c.index);
      s.lag = static_cast<std::uint64_t>(c.lag);
      s.credit = c.credit ? 1 : 0;
    }
    if (moves_data(c.verb)) {
      bytes_.back() += c.bytes;
      s.first_copy = static_cast<std::int32_t>(out_.copies.size());
      std::int64_t units = 0;
      for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
        units += add(plan_.copies[static_cast<std::size_t>(k)], c);
      }
      s.copies = static_cast<std::int32_t>(out_.copies.size()) - s.first_copy;
      // Few units: one for each thread, all in flight at once. Many: as many as a thread can keep in flight.
      const std::int64_t threads = std::int64_t{kGpuThreads} * std::max<std::int64_t>(1, c.bytes / kBytesPerBlock);
      s.tile_units = static_cast<std::uint32_t>(std::clamp<std::int64_t>(units / threads, 1, kTileUnits));
      for (std::int32_t k = s.first_copy; k < s.first_copy + s.copies; ++k) {
        GpuCopy& copy = out_.copies[static_cast<std::size_t>(k)];
        copy.first_tile = s.tiles;
        const std::uint32_t tile = 32 * s.tile_units;
        s.tiles += (copy.units + tile - 1) / tile;
      }
    }
    return s;
  }

  // Adds the copy in the widest units that its addresses and strides allow; returns how many.
  std::int64_t add(const StridedCopy& copy, const Command& c) {
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
    if (units > kMostUnits) return halves(copy, c);
    if (units == 0) return 0;
    GpuCopy out;
    out.src_offset = copy.src_offset;
    out.dst_offset = copy.dst_offset;
    out.units = static_cast<std::uint32_t>(units);
    out.log_unit = static_cast<std::int16_t>(std::bit_width(static_cast<std::uint64_t>(unit)) - 1);
    out.first_dim = static_cast<std::int32_t>(out_.dims.size());
    if (copy.block > unit || copy.ndims == 0) out_.dims.push_back(dim_of(copy.block / unit, unit, unit));
    for (int d = copy.ndims - 1; d >= 0; --d) {
      out_.dims.push_back(dim_of(copy.dims[d].count, copy.dims[d].src_stride, copy.dims[d].dst_stride));
    }
    out.dims = static_cast<std::int16_t>(static_cast<std::int32_t>(out_.dims.size()) - out.first_dim);
    out_.copies.push_back(out);
    return units;
  }

  // Too large for the kernel's numbers: two of half the size.
  std::int64_t halves(const StridedCopy& copy, const Command& c) {
    StridedCopy first = copy;
    StridedCopy second = copy;
    const int d = static_cast<int>(
        std::find_if(copy.dims.begin(), copy.dims.begin() + copy.ndims, [](const auto& dim) { return dim.count > 1; }) -
        copy.dims.begin());
    if (d == copy.ndims) {
      first.block = copy.block / 32 * 16;
      second.block = copy.block - first.block;
      second.src_offset += first.block;
      second.dst_offset += first.block;
    } else {
      auto& dim = first.dims[static_cast<std::size_t>(d)];
      dim.count /= 2;
      second.dims[static_cast<std::size_t>(d)].count -= dim.count;
      second.src_offset += dim.count * dim.src_stride;
      second.dst_offset += dim.count * dim.dst_stride;
    }
    return add(first, c) + add(second, c);
  }

  // A lane that waits for what it then unpacks, or only waits, belongs to the wait, except for what it tells
  // beforehand.
  void parts(GpuLane& lane) {
    const auto begin = out_.steps.begin() + lane.first;
    const auto end = out_.steps.begin() + lane.last;
    const bool waits = std::any_of(begin, end, [](const GpuStep& s) { return s.verb == Verb::wait; });
    const bool puts = std::any_of(begin, end, [](const GpuStep& s) { return s.verb == Verb::put; });
    const bool depends = std::any_of(begin, end, [](const GpuStep& s) { return s.deps > 0; });
    if ((!waits || puts) && !depends) return;
    auto step = begin;
    while (step != end && step->verb == Verb::signal) ++step;
    for (; step != end; ++step) step->part = kPartWait;
  }

  // Thread blocks by bytes, so that lanes end together; additions keep their order, so their lanes get one.
  void deal_out() {
    for (int parts = 1; parts < 4; ++parts) {
      std::vector<std::int64_t> wanted(out_.lanes.size(), 0);
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < out_.lanes.size(); ++i) {
        const GpuLane& lane = out_.lanes[i];
        std::int64_t moving = 0;
        bool adds = false;
        for (auto s = lane.first; s < lane.last; ++s) {
          const GpuStep& step = out_.steps[static_cast<std::size_t>(s)];
          if ((step.part & parts) == 0 || step.tiles == 0) continue;
          moving = std::max<std::int64_t>(moving, step.tiles);
          adds = adds || step.verb == Verb::reduce;
        }
        if (moving == 0) continue;
        const std::int64_t by_bytes = (bytes_[i] + kBytesPerBlock - 1) / kBytesPerBlock;
        const std::int64_t by_tiles = (moving + kGpuThreads / 32 - 1) / (kGpuThreads / 32);
        wanted[i] = adds ? 1 : std::max<std::int64_t>(1, std::min(by_bytes, by_tiles));
        sum += wanted[i];
      }
      auto& blocks = out_.blocks[parts];
      blocks.push_back({-1, 0});
      for (std::size_t i = 0; i < out_.lanes.size(); ++i) {
        std::int64_t count = wanted[i];
        if (sum > most_ && count > 1) count = std::max<std::int64_t>(1, count * most_ / sum);
        out_.lanes[i].blocks[parts] = static_cast<std::int32_t>(count);
        for (std::int64_t b = 0; b < count; ++b) {
          blocks.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(b)});
        }
      }
    }
  }

  const Program& in_;
  const Plan& plan_;
  int most_;
  GpuProgram out_;
  std::vector<std::int64_t> bytes_;  // per lane
};

}  // namespace

GpuProgram lower(const Program& program, int most_blocks) {
  return Lowering(program, most_blocks).run();
}

std::string describe_failure(const Plan& plan, const Runtime& runtime, std::int32_t command, std::uint64_t epoch,
                             std::uint64_t value, std::uint64_t target) {
  const Command& c = plan.commands[static_cast<std::size_t>(command)];
  const std::string what =
      c.verb == Verb::wait ? plan.buffers[static_cast<std::size_t>(c.src)].name : std::string(to_string(c.verb));
  const std::string dead = runtime.liveness().failure(runtime.everyone());
  return fmt::format("rank {}: {}: epoch {} did not end: the GPU waited for #{} {} with rank {} (at {}, needs {}){}",
                     plan.rank, plan.operation, epoch, command, what, c.peer, value, target,
                     dead.empty() ? fmt::format(" for {} s", runtime.deadline) : "; " + dead);
}

}  // namespace tasuki
