// What a single plan can get wrong by itself. After this check a plan may be indexed freely, and its sizes added up
// without overflow.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "plan/label.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {
namespace {

using detail::label;
__extension__ using Wide = __int128;

/// Larger offsets, strides, counts and sizes are refused, so that sums of products of two of them fit into 128 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 60;

bool plausible(std::int64_t value) {
  return value >= -kLargest && value <= kLargest;
}

template <class T>
bool in_range(std::int64_t index, const std::vector<T>& array) {
  return index >= 0 && index < std::ssize(array);
}

template <class T>
bool in_range(std::int64_t first, std::int64_t count, const std::vector<T>& array) {
  return first >= 0 && count >= 0 && first + count <= std::ssize(array);
}

/// First and one past the last byte that one side of a command touches.
struct Span {
  Wide begin = 0;
  Wide end = 0;

  void extend(std::int64_t count, std::int64_t stride) {
    const Wide reach = Wide{count - 1} * stride;
    (reach < 0 ? begin : end) += reach;
  }
  void extend(const OffsetList& list) {
    if (list.empty()) return;
    begin += list.least();
    end += list.most();
  }
};

/// The name of a value that may be no enumerator.
std::string name(DType type) {
  return type <= DType::i64_i64 ? std::string(to_string(type)) : fmt::format("{}", static_cast<int>(type));
}
std::string name(ReduceOp op) {
  return op <= ReduceOp::negate ? std::string(to_string(op)) : fmt::format("{}", static_cast<int>(op));
}

// What a complaint is about is a function that returns its name: putting names together would take longer than all
// checks, and plans that were just made have nothing to complain about.
class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> run() {
    header();
    buffers();
    for (std::size_t i = 0; i < plan_.copies.size(); ++i) copy_shape(i);
    for (std::size_t i = 0; i < plan_.loops.size(); ++i) {
      if (plan_.loops[i].count < 1 || !plausible(plan_.loops[i].count)) {
        say("rank {} loop {} runs {} times; at least once is meant", plan_.rank, i, plan_.loops[i].count);
      }
    }
    // The later checks index arrays and multiply sizes, so these must be right first.
    if (!found_.empty()) return std::move(found_);
    lanes_and_loops();
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) command(i);
    for (std::size_t i = 0; i < plan_.expects.size(); ++i) expect(i);
    return std::move(found_);
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    found_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void header() {
    if (plan_.ranks < 1) say("plan '{}' is for {} ranks; at least 1 is meant", plan_.operation, plan_.ranks);
    if (plan_.rank < 0 || plan_.rank >= plan_.ranks) {
      say("plan '{}' belongs to rank {}, which is not in 0..{}", plan_.operation, plan_.rank, plan_.ranks - 1);
    }
  }

  void buffers() {
    std::set<std::pair<std::int32_t, detail::BufferKey>> known;
    for (const Buffer& b : plan_.buffers) {
      const auto who = [&] { return fmt::format("rank {}: buffer {}", plan_.rank, label(b)); };
      if (b.purpose == Purpose::user && b.name.empty()) say("{} has no name", who());
      if (!known.emplace(b.rank, detail::key_of(b)).second) say("{} is listed twice", who());
      if (b.rank < 0 || b.rank >= plan_.ranks) say("{} belongs to a rank outside 0..{}", who(), plan_.ranks - 1);
      if (b.role > Role::signal) say("{} has the unknown role {}", who(), static_cast<int>(b.role));
      if (b.ring < 1) say("{} has {} copies (ring); at least 1 is meant", who(), b.ring);
      if (b.role == Role::signal) {
        if (b.ring != 1) say("{} is a counter and has one copy, not ring {}", who(), b.ring);
        if (b.per_epoch < 1)
          say("{} is a signal that advances by {} per epoch; at least 1 is meant", who(), b.per_epoch);
      } else {
        if (b.bytes < 0 || b.bytes > kLargest) say("{} has {} bytes", who(), b.bytes);
        if (b.per_epoch != 0) say("{} is no signal but has per_epoch {}; it must be 0", who(), b.per_epoch);
      }
    }
  }

  void copy_shape(std::size_t i) {
    const StridedCopy& c = plan_.copies[i];
    const auto who = [&] { return fmt::format("rank {} copy {}", plan_.rank, i); };
    if (c.ndims < 0 || c.ndims > kMaxDims) {
      say("{} has {} dimensions, not 0 to {}", who(), c.ndims, kMaxDims);
      return;
    }
    if (!plausible(c.src_offset) || !plausible(c.dst_offset) || c.block < 1 || c.block > kLargest) {
      say("{} has block {} at offsets {} and {}, which no buffer can hold", who(), c.block, c.src_offset, c.dst_offset);
      return;
    }
    Wide bytes = c.block;
    for (int d = 0; d < kMaxDims; ++d) {
      const StridedCopy::Dim& dim = c.dims[d];
      if (d >= c.ndims) {
        if (dim != StridedCopy::Dim{}) say("{} has a dimension {} beyond its ndims = {}", who(), d, c.ndims);
        continue;
      }
      if (dim.count < 1 || dim.count > kLargest || !plausible(dim.src_stride) || !plausible(dim.dst_stride)) {
        say("{} dimension {} counts {} with strides {} and {}; leave out copies that move nothing", who(), d, dim.count,
            dim.src_stride, dim.dst_stride);
        return;
      }
      bytes *= dim.count;
      if (bytes > kLargest) {
        say("{} moves more than {} bytes", who(), kLargest);
        return;
      }
    }
    list_of(who, c, "src_list", c.src_list, c.dims[0].src_stride);
    list_of(who, c, "dst_list", c.dst_list, c.dims[0].dst_stride);
  }

  void list_of(const auto& who, const StridedCopy& c, std::string_view name, const OffsetList& list,
               std::int64_t stride) {
    if (list.empty()) return;
    if (c.ndims == 0 || list.size() != c.dims[0].count || stride != 0)
      say("{} has {} offsets in {} for {} steps of a stride of {}; as many as steps are meant, and no stride", who(),
          list.size(), name, c.ndims == 0 ? 0 : c.dims[0].count, stride);
    else if (!plausible(list.least()) || !plausible(list.most()))
      say("{} has offsets {} to {} in {}, which no buffer can hold", who(), list.least(), list.most(), name);
  }

  void lanes_and_loops() {
    std::unordered_set<std::int32_t> lanes_seen, loops_seen;
    std::int32_t lane = -1, loop = -1;
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      const Command& c = plan_.commands[i];
      const bool new_lane = i == 0 || c.lane != lane;
      if (c.lane < 0) say("{} is in lane {}; lanes count from 0", label(plan_, i), c.lane);
      if (new_lane && !lanes_seen.insert(c.lane).second) {
        say("{} returns to lane {}; commands of a lane must be consecutive", label(plan_, i), c.lane);
      }
      if (c.stage < 0) say("{} is in stage {}; stages count from 0", label(plan_, i), c.stage);
      if (!new_lane && c.stage != plan_.commands[i - 1].stage) {
        say("{} is in stage {}, but the command before it in its lane in stage {}", label(plan_, i), c.stage,
            plan_.commands[i - 1].stage);
      }
      if (c.loop < -1 || (c.loop >= 0 && !in_range(c.loop, plan_.loops))) {
        say("{} names loop {}, but the plan has {} loops", label(plan_, i), c.loop, plan_.loops.size());
      } else if (c.loop >= 0 && (new_lane || c.loop != loop) && !loops_seen.insert(c.loop).second) {
        say("{} returns to loop {}; commands of a loop must be consecutive and in one lane", label(plan_, i), c.loop);
      }
      lane = c.lane;
      loop = c.loop;
    }
  }

  /// True if `index` names a buffer. Complains if not, or if the verb does not use a buffer that is named.
  bool names_buffer(std::size_t i, std::int32_t index, std::string_view field, bool used) {
    if (used && !in_range(index, plan_.buffers)) {
      say("{} names buffer {} as {}, but the plan has {} buffers", label(plan_, i), index, field, plan_.buffers.size());
      return false;
    }
    if (!used && index != -1) say("{} has no use for a {}, but names buffer {}", label(plan_, i), field, index);
    return used;
  }

  void command(std::size_t i) {
    const Command& c = plan_.commands[i];
    const auto who = [&] { return label(plan_, i); };
    if (c.verb > Verb::reduce) {
      say("{} has the unknown verb {}", who(), static_cast<int>(c.verb));
      return;
    }
    if (!in_range(c.path, plan_.paths)) say("{} names path {} of {}", who(), c.path, plan_.paths.size());
    if (c.peer < -1 || c.peer >= plan_.ranks) say("{} names rank {} of {}", who(), c.peer, plan_.ranks);
    dependencies(i);

    const bool moves = c.verb == Verb::copy || c.verb == Verb::put || c.verb == Verb::reduce;
    const bool message = c.verb == Verb::send || c.verb == Verb::recv;
    const bool has_src = names_buffer(i, c.src, "source", moves || c.verb == Verb::send || c.verb == Verb::wait);
    const bool has_dst = names_buffer(i, c.dst, "destination", moves || c.verb == Verb::recv || c.verb == Verb::signal);
    if (c.verb != Verb::wait && c.credit) say("{} has credit; only a wait may", who());
    if (!moves && !message && (c.bytes != 0 || c.offset != 0 || c.src_step != 0 || c.dst_step != 0)) {
      say("{} moves nothing but has bytes {}, offset {} and steps {}, {}; they must be 0", who(), c.bytes, c.offset,
          c.src_step, c.dst_step);
    }
    if (!moves && c.copy_count != 0) say("{} does not copy but names {} copies", who(), c.copy_count);
    if (c.verb != Verb::reduce && c.dtype != DType::none) {
      say("{} does not reduce but names the type {}", who(), name(c.dtype));
    }
    if (c.verb != Verb::reduce && c.op != ReduceOp::sum) {
      say("{} does not reduce but names the operator {}", who(), name(c.op));
    }
    if (!plausible(c.src_step) || !plausible(c.dst_step)) say("{} steps by {}, {}", who(), c.src_step, c.dst_step);
    if (c.loop < -1 || (c.loop >= 0 && !in_range(c.loop, plan_.loops))) return;  // already complained about

    if (moves && has_src && has_dst) {
      owners_of_move(i);
      copies_of(who, c.first_copy, c.copy_count, plan_.buffers[c.src], plan_.buffers[c.dst],
                {detail::chunks(plan_, c), c.src_step, c.dst_step}, c.bytes);
      if (c.verb == Verb::reduce) reduction(who, c.first_copy, c.copy_count, c.dtype, c.op);
    }
    if (message && (has_src || has_dst)) message_of(i);
    if ((c.verb == Verb::signal && has_dst) || (c.verb == Verb::wait && has_src)) counter_of(i);
  }

  void dependencies(std::size_t i) {
    const Command& c = plan_.commands[i];
    if (!in_range(c.first_dep, c.dep_count, plan_.deps)) {
      say("{} names dependencies {} to {} of {}", label(plan_, i), c.first_dep,
          std::int64_t{c.first_dep} + c.dep_count - 1, plan_.deps.size());
      return;
    }
    for (std::int32_t d = c.first_dep; d < c.first_dep + c.dep_count; ++d) {
      const std::int32_t on = plan_.deps[d];
      if (!in_range(on, plan_.commands)) {
        say("{} depends on #{}, but the plan has {} commands", label(plan_, i), on, plan_.commands.size());
      } else if (plan_.commands[on].lane == c.lane) {
        say("{} depends on #{} of its own lane; a lane runs in order without", label(plan_, i), on);
      }
    }
  }

  void owners_of_move(std::size_t i) {
    const Command& c = plan_.commands[i];
    const Buffer& src = plan_.buffers[c.src];
    const Buffer& dst = plan_.buffers[c.dst];
    const auto who = [&] { return label(plan_, i); };
    if (src.role == Role::signal) say("{} reads the signal {}; only wait may", who(), label(src));
    if (dst.role == Role::signal) say("{} writes the signal {}; only signal may", who(), label(dst));
    if (dst.role == Role::input) say("{} writes {}, which is an input", who(), label(dst));
    const Buffer& here = c.verb == Verb::put ? src : dst;
    const Buffer& there = c.verb == Verb::put ? dst : src;
    if (here.rank != plan_.rank) {
      say("{}: its {} must be this rank's, not {}", who(), c.verb == Verb::put ? "source" : "destination", label(here));
    }
    if (c.verb == Verb::put && there.rank == plan_.rank)
      say("{} puts into its own {}; copy instead", who(), label(there));
    if (there.rank != plan_.rank && c.peer != there.rank) {
      say("{}: peer is {}, but the other buffer is {}", who(), c.peer, label(there));
    }
    if (there.rank == plan_.rank && here.rank == plan_.rank) local_peer(who, c.peer, src, dst);
  }

  /// A copy inside this rank names the rank for which it packs or unpacks: that of the link whose memory it uses.
  void local_peer(const auto& who, std::int32_t peer, const Buffer& src, const Buffer& dst) {
    for (const Buffer* side : {&src, &dst}) {
      if (side->purpose == Purpose::user) continue;
      if (peer != side->writer) say("{}: peer is {}, but {} is for rank {}", who(), peer, label(*side), side->writer);
      return;
    }
    const bool of_users = src.role != Role::scratch && dst.role != Role::scratch;
    if (of_users && peer != -1 && peer != plan_.rank) {
      say("{}: peer is {}, but both buffers are this rank's user's", who(), peer);
    }
  }

  struct Steps {
    std::int64_t count = 1;
    std::int64_t src = 0;
    std::int64_t dst = 0;
  };

  void copies_of(const auto& who, std::int32_t first, std::int32_t count, const Buffer& src, const Buffer& dst,
                 Steps steps, std::optional<std::int64_t> bytes) {
    if (!in_range(first, count, plan_.copies) || count == 0) {
      say("{} names copies {} to {} of {}", who(), first, std::int64_t{first} + count - 1, plan_.copies.size());
      return;
    }
    Wide total = 0;
    for (std::int32_t i = first; i < first + count; ++i) {
      const StridedCopy& c = plan_.copies[i];
      Span from{c.src_offset, Wide{c.src_offset} + c.block}, to{c.dst_offset, Wide{c.dst_offset} + c.block};
      from.extend(c.src_list);
      to.extend(c.dst_list);
      for (std::int32_t d = 0; d < c.ndims; ++d) {
        from.extend(c.dims[d].count, c.dims[d].src_stride);
        to.extend(c.dims[d].count, c.dims[d].dst_stride);
      }
      from.extend(steps.count, steps.src);
      to.extend(steps.count, steps.dst);
      within([&] { return fmt::format("{} copy {} reads", who(), i); }, from, src);
      within([&] { return fmt::format("{} copy {} writes", who(), i); }, to, dst);
      total += c.bytes();
    }
    if (bytes && total != *bytes) {
      say("{} says that it moves {} bytes, but its copies move {}", who(), *bytes,
          static_cast<std::int64_t>(std::min<Wide>(total, kLargest)));
    }
  }

  void within(const auto& who, Span span, const Buffer& buffer) {
    if (span.begin >= 0 && span.end <= buffer.bytes) return;
    const auto shown = [](Wide v) { return static_cast<std::int64_t>(std::clamp<Wide>(v, INT64_MIN, INT64_MAX)); };
    say("{} bytes {} to {}, which leaves {} ({} bytes)", who(), shown(span.begin), shown(span.end - 1), label(buffer),
        buffer.bytes);
  }

  void reduction(const auto& who, std::int32_t first, std::int32_t count, DType type, ReduceOp op) {
    if (type == DType::none || type > DType::i64_i64) {
      say("{} reduces but names no number type (dtype)", who());
      return;
    }
    if (op == ReduceOp::negate ? !has_sign(type) : !defined(op, type))
      say("{} names the operator {}, which is not defined for {}", who(), name(op), name(type));
    if (!in_range(first, count, plan_.copies)) return;  // already complained about
    for (std::int32_t i = first; i < first + count; ++i) {
      if (plan_.copies[i].block % size_of(type) != 0) {
        say("{} copy {} has blocks of {} bytes, not a whole number of {}", who(), i, plan_.copies[i].block,
            to_string(type));
      }
    }
  }

  void message_of(std::size_t i) {
    const Command& c = plan_.commands[i];
    const bool sends = c.verb == Verb::send;
    const Buffer& buffer = plan_.buffers[sends ? c.src : c.dst];
    const auto who = [&] { return label(plan_, i); };
    if (c.peer < 0 || c.peer == plan_.rank) say("{} needs another rank as its peer, not {}", who(), c.peer);
    if (buffer.rank != plan_.rank) say("{} uses {}, but a message starts and ends at home", who(), label(buffer));
    if (buffer.role == Role::signal) say("{} uses the signal {} as data", who(), label(buffer));
    if (!sends && buffer.role == Role::input) say("{} writes {}, which is an input", who(), label(buffer));
    if (c.bytes < 1 || c.bytes > kLargest || !plausible(c.offset)) {
      say("{} moves {} bytes at offset {}", who(), c.bytes, c.offset);
      return;
    }
    Span span{c.offset, Wide{c.offset} + c.bytes};
    span.extend(detail::chunks(plan_, c), sends ? c.src_step : c.dst_step);
    within([&] { return who() + " uses"; }, span, buffer);
  }

  void counter_of(std::size_t i) {
    const Command& c = plan_.commands[i];
    const bool signals = c.verb == Verb::signal;
    const Buffer& counter = plan_.buffers[signals ? c.dst : c.src];
    const auto who = [&] { return label(plan_, i); };
    if (counter.role != Role::signal) {
      say("{} uses {}, which is no signal but {}", who(), label(counter), to_string(counter.role));
      return;
    }
    if (signals && (counter.rank == plan_.rank || counter.rank != c.peer)) {
      say("{}: the signal must be the peer's, but {} is rank {}'s", who(), label(counter), counter.rank);
    }
    if (!signals && counter.rank != plan_.rank) say("{} waits for {}, which is not its own", who(), label(counter));
    const std::int32_t writer = signals ? plan_.rank : c.peer;
    if (counter.purpose != Purpose::user && counter.writer != writer) {
      say("{} takes rank {} to signal {}, which is rank {}'s to signal", who(), writer, label(counter), counter.writer);
    }
    if (c.index < 0 || std::int64_t{c.index} + detail::chunks(plan_, c) > counter.per_epoch) {
      say("{} has indices {} to {}, but {} advances by {} per epoch", who(), c.index,
          std::int64_t{c.index} + detail::chunks(plan_, c) - 1, label(counter), counter.per_epoch);
    }
    if (signals ? c.lag != 0 : c.lag < 0) say("{} has lag {}", who(), c.lag);
    if (c.credit && c.lag == 0) say("{} has credit for no epochs: its lag is 0", who());
  }

  void expect(std::size_t i) {
    const Expect& e = plan_.expects[i];
    const auto who = [&] { return fmt::format("rank {} expect {}", plan_.rank, i); };
    if (!in_range(e.src, plan_.buffers) || !in_range(e.dst, plan_.buffers)) {
      say("{} names buffers {} and {} of {}", who(), e.src, e.dst, plan_.buffers.size());
      return;
    }
    const Buffer& src = plan_.buffers[e.src];
    const Buffer& dst = plan_.buffers[e.dst];
    if (src.role != Role::input && src.role != Role::inout) {
      say("{} takes bytes from {}, which is {}; only a user's input can be meant", who(), label(src),
          to_string(src.role));
    }
    if (dst.role != Role::output && dst.role != Role::inout) {
      say("{} ends in {}, which is {}; only a user's output can be meant", who(), label(dst), to_string(dst.role));
    }
    if (dst.rank != plan_.rank) say("{} ends in {}; only this rank's buffers can be promised", who(), label(dst));
    copies_of(who, e.first_copy, e.copy_count, src, dst, Steps{}, std::nullopt);
    if (e.dtype != DType::none) {
      reduction(who, e.first_copy, e.copy_count, e.dtype, e.op);
    } else if (e.op != ReduceOp::sum || e.in_order) {
      say("{} names no number type (dtype), so it is a copy and has neither an operator nor an order", who());
    }
  }

  const Plan& plan_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> Plan::complaints() const {
  return Checker(*this).run();
}

}  // namespace tasuki
